"""Tables as they come from spreadsheets, registries and other programs: what ``kernelweave fit`` says to each.

    python benchmarks/hostile_tables.py

Writes ``docs/results/hostile_tables.md`` and ``.csv``.  ``--quick`` takes five tables and writes nothing.
``tests/cli/test_hostile_tables.py`` runs the same tables.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

N = 40


@dataclass(frozen=True)
class Case:
    """A table, what it is, and what is to be said of it."""

    name: str
    what: str
    content: Callable[[], bytes]
    code: int
    said: str
    options: tuple[str, ...] = ()


def frame() -> pd.DataFrame:
    """Two numbers, a category and two classes."""
    rng = np.random.default_rng(0)
    made = pd.DataFrame({"a": rng.normal(size=N).round(3), "b": rng.normal(size=N).round(3)})
    made["site"] = np.array(["Köln", "Ulm"], dtype=object)[np.arange(N) % 2]
    made["y"] = np.where(made["a"] + 0.3 * rng.normal(size=N) > 0, "up", "down")
    return made


def csv(table: pd.DataFrame | None = None, encoding: str = "utf-8", **options: object) -> bytes:
    """A table as CSV."""
    text = (frame() if table is None else table).to_csv(index=False, **options)
    return text.encode(encoding)


def changed(**columns: object) -> bytes:
    """The table with some columns replaced."""
    return csv(frame().assign(**columns))


def with_header(header: str) -> bytes:
    """The table under another first line."""
    return (header + "\n" + csv().decode().split("\n", 1)[1]).encode()


def some(values: object, other: object, every: int = 9) -> list[object]:
    """Values with another one in the place of some of them."""
    return [other if k % every == 4 else value for k, value in enumerate(values)]


CODES = [str(k % 5) for k in range(N)]
CASES = [
    Case("semicolons.csv", "semicolons and decimal commas", lambda: csv(sep=";", decimal=","), 0,
         "decimal commas were read as decimal points in 'a', 'b'"),
    Case("tabs.csv", "tabs in a file called .csv", lambda: csv(sep="\t"), 0, "columns separated by tab"),
    Case("latin.csv", "Latin-1", lambda: csv(encoding="latin-1"), 0, "was read as cp1252"),
    Case("utf16.csv", "UTF-16, as spreadsheets write it", lambda: csv(encoding="utf-16"), 0, "was read as utf-16"),
    Case("mark.csv", "UTF-8 with a byte order mark", lambda: csv(encoding="utf-8-sig"), 0, ""),
    Case("packed.csv.gz", "compressed", lambda: gzip.compress(csv()), 0, ""),
    Case("question.csv", "? among codes", lambda: changed(b=some(CODES, "?")), 0,
         "column 'b' holds numbers and also '?' (4 times): it is treated as categories"),
    Case("question_na.csv", "the same with --na ?", lambda: changed(b=some(CODES, "?")), 0,
         "missing numbers became the median of the training table: 'b' 4 of 40 rows", ("--na", "?")),
    Case("texts.csv", "n.d. among 36 different numbers", lambda: changed(b=some(frame()["b"], "n.d.")), 1,
         "column 'b' holds numbers, but 4 of its cells are not, such as 'n.d.': --na 'n.d.'"),
    Case("thousands.csv", "1,234: thousands or decimals?",
         lambda: changed(b=[f"{k + 1},{100 + k}" for k in range(N)]), 1, "say with --decimal , that these are"),
    Case("twice.csv", "a name twice", lambda: with_header("a,a,site,y"), 0,
         "the header has 'a' more than once: one of these columns is called 'a.1' here"),
    Case("index.csv", "row numbers without a name",
         lambda: frame().to_csv().encode(), 0, "a column without a name is called 'Unnamed: 0' here"),
    Case("short_header.csv", "one name too few", lambda: with_header("a,b,y"), 1,
         "the header has 3 names and the next line 4 fields"),
    Case("long_line.csv", "one line too long", lambda: csv() + b"1,2,Ulm,up,5,6\n", 1, "Expected 4 fields in line 42"),
    Case("gaps.csv", "empty cells", lambda: changed(a=some(frame()["a"], ""), site=some(frame()["site"], "", 13)), 0,
         "missing numbers became the median of the training table: 'a' 4 of 40 rows"),
    Case("empty_column.csv", "a column without any value", lambda: changed(b=""), 1, "column 'b' is empty"),
    Case("infinite.csv", "an infinite number", lambda: changed(b=some(frame()["b"], "inf")), 1,
         "column 'b' holds infinite numbers"),
    Case("dates.csv", "dates", lambda: changed(b=pd.date_range("2024-01-01", periods=N)), 1,
         "column 'b' holds dates, such as '2024-01-01': leave it out with --drop 'b'"),
    Case("few_dates.csv", "five dates, repeated", lambda: changed(b=[f"{1 + k % 5}.1.2024" for k in range(N)]), 1,
         "column 'b' holds dates, such as '1.1.2024'"),
    Case("notes.csv", "texts that hardly repeat", lambda: changed(b=[f"case {k}" for k in range(N)]), 1,
         "column 'b' has 40 different texts, more than 30: leave it out with --drop 'b'"),
    Case("percent.csv", "numbers with a unit", lambda: changed(b=[f"{k}.5 %" for k in range(N)]), 1,
         "column 'b' holds numbers that are written with other characters, such as '0.5 %'"),
    Case("few_thousands.csv", "thousands that repeat", lambda: changed(b=[f"1,{100 + k % 5}" for k in range(N)]), 0,
         "column 'b' holds numbers with commas, such as '1,100': it is treated as categories; --decimal ,"),
    Case("large.csv", "one number of 1e300", lambda: changed(b=some(frame()["b"], 1e300, 40)), 1,
         "column 'b' holds a number too large to compute with, 1e+300 in row 4"),
    Case("spaces.csv", "columns separated by spaces", lambda: csv(sep=" "), 1,
         "its columns look separated by spaces: --separator space"),
    Case("spaces_said.csv", "the same with --separator space", lambda: csv(sep=" "), 0,
         "columns separated by spaces", ("--separator", "space")),
    Case("carets.csv", "columns separated by carets", lambda: csv(sep="^"), 1, "--separator '^'"),
    Case("comments.csv", "comments above the header", lambda: b"# made by hand\n# 2024\n" + csv(), 1,
         "starts with 2 lines that begin with '#', above the names of the columns: --comment '#'"),
    Case("comments_said.csv", "the same with --comment #", lambda: b"# made by hand\n# 2024\n" + csv(), 0, "",
         ("--comment", "#")),
    Case("end.csv", "a comment at the end", lambda: csv() + b"# 40 rows\n", 1, "line 42 begins with '#'"),
    Case("title.csv", "a title above the header", lambda: b"Results\n" + csv(), 1, "'y' is in line 2: if that names"),
    Case("sep.csv", "sep=; as spreadsheets write it", lambda: b"sep=;\n" + csv(sep=";"), 0, "separated by semicolon"),
    Case("no_header.csv", "no header", lambda: csv().split(b"\n", 1)[1], 1, "should hold the names of the columns"),
    Case("page.csv", "a web page", lambda: b"<!DOCTYPE html><html></html>", 1, "is HTML or XML, no table"),
    Case("sheet.csv", "a spreadsheet called .csv", lambda: b"PK\x03\x04...", 1, "save the sheet as CSV"),
    Case("target_twice.csv", "two columns called like the target", lambda: with_header("a,b,y,y"), 1,
         "has two columns called 'y': rename one of them"),
    Case("label_spaces.csv", "'down' and 'down '", lambda: changed(y=[f"{y} " if k % 9 == 4 else y
         for k, y in enumerate(frame()["y"])]), 0,
         "column 'y' has 'down' and 'down ', which differ only by spaces around them and count as different: --strip"),
    Case("label_stripped.csv", "the same with --strip", lambda: changed(y=[f"{y} " if k % 9 == 4 else y
         for k, y in enumerate(frame()["y"])]), 0, "", ("--strip",)),
    Case("site_case.csv", "'Ulm' and 'ULM'", lambda: changed(site=["Ulm", "ULM"] * (N // 2)), 0,
         "column 'site' has 'ULM' and 'Ulm', which differ only by upper and lower case"),
    Case("label_text.csv", "n.d. among 36 numbers to predict", lambda: changed(y=some(frame()["b"], "n.d.")), 1,
         "the target 'y' holds numbers, but 4 of its cells are not, such as 'n.d.'"),
    Case("label.csv", "a label missing", lambda: changed(y=some(frame()["y"], "", 40)), 1,
         "the target 'y' is missing in 1 rows, first in row 4"),
    Case("header_only.csv", "nothing but a header", lambda: b"a,b,site,y\n", 1, "has no rows"),
]  # fmt: skip


def run(case: Case, folder: Path) -> tuple[int, str]:
    """Fit the table in a folder; return the exit code and what was said on the standard error."""
    from click.testing import CliRunner

    from kernelweave.cli import main

    (folder / case.name).write_bytes(case.content())
    before = Path.cwd()
    os.chdir(folder)
    try:
        words = [
            "fit",
            case.name,
            "--target",
            "y",
            "--kernels",
            "linear",
            "--C",
            "1",
            "--json",
            *case.options,
        ]
        done = CliRunner().invoke(main, words)
    finally:
        os.chdir(before)
    return done.exit_code, done.stderr.strip()


def main() -> None:
    """Run all tables and write what was said."""
    from _measure import show, write_table

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="five tables, nothing is written")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES[:5] if options.quick else CASES:
            code, said = run(case, Path(folder))
            command = " ".join(["fit", case.name, *case.options])
            rows.append(
                {
                    "table": case.what,
                    "command": command,
                    "exit code": code,
                    "said": said.replace("\n", "<br>") or "(nothing)",
                }
            )
    if options.quick:
        show(rows)
        return
    note = f"Each table has {N} rows; `--target y --kernels linear --C 1 --json` was given, too."
    write_table("hostile_tables", rows, "python benchmarks/hostile_tables.py", note)


if __name__ == "__main__":
    main()
