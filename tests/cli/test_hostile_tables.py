"""Tables as they come: each is read, or refused with the way out, and what was done to it is said and kept."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from kernelweave.cli import main
from kernelweave.cli._delimited import decode, separator_of
from kernelweave.persistence import about

from .commands import call

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "hostile_tables.py"
spec = importlib.util.spec_from_file_location("hostile_tables", SCRIPT)
assert spec is not None
assert spec.loader is not None
tables = importlib.util.module_from_spec(spec)
sys.modules["hostile_tables"] = tables  # dataclasses look themselves up
spec.loader.exec_module(tables)


@pytest.mark.parametrize("case", tables.CASES, ids=lambda case: case.name)
def test_what_is_said(case, tmp_path):
    code, said = tables.run(case, tmp_path)
    assert code == case.code, said
    assert case.said in said.replace("\n", " ")
    if not case.said:
        assert said == ""


@pytest.mark.parametrize(
    ("name", "options"), [("semicolons.csv", {"sep": ";", "decimal": ","}), ("tabs.csv", {"sep": "\t"})]
)
def test_the_numbers_are_those_of_the_plain_table(name, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("plain.csv").write_bytes(tables.csv())
    Path(name).write_bytes(tables.csv(encoding="utf-16", **options))
    words = ("--target", "y", "--kernels", "linear", "--C", "1", "--json")
    one, other = (json.loads(call("fit", table, *words).stdout) for table in ("plain.csv", name))
    assert one["certificate"] == other["certificate"]


def test_what_was_done_is_in_the_label(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = tables.frame()
    made = frame.assign(b=tables.some(tables.CODES, "?"), a=tables.some(frame["a"], ""))
    text = made.to_csv(index=False, sep=";", decimal=",").replace("a;b", "a;a;b", 1)
    rows = text.split("\n")
    Path("data.csv").write_text(
        "\n".join([rows[0], *(f"1;{row}" for row in rows[1:] if row)]), encoding="latin-1"
    )
    said = call(
        "fit", "data.csv", "--target", "y", "--C", "1", "--kernels", "linear", "--model", "m.skops"
    ).stderr
    for words in ("cp1252", "semicolon", "'a.1'", "'?' (4 times)"):
        assert words in said
    reading = about("m.skops")["note"]["reading"]
    assert reading["files"] == {"data.csv": "cp1252, columns separated by semicolon"}
    assert reading["renamed"] == {"a.1": "a"}
    assert reading["numbers_as_categories"] == {"b": {"?": 4}}
    assert reading["imputed"] == {"a.1": 4}
    text = call("inspect", "m.skops").output
    assert "'?' (4 times)" in text
    # new rows: codes are texts still, where no question mark is among them any more
    new = made.assign(b=tables.CODES).iloc[:10]
    new["b"] = new["b"].astype(float).where(new.index != 3)  # written as 0.0, 1.0, ... and one empty
    new.insert(0, "a.1", new["a"])
    new.assign(a=1).to_csv("new.csv", index=False)
    said = call("predict", "m.skops", "new.csv", "-o", "out.csv").stderr
    assert "missing texts are a category of their own: 'b' 1 of 10 rows" in said
    assert len(pd.read_csv("out.csv")) == 10


def test_standard_input_and_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    words = ["fit", "-", "--target", "y", "--kernels", "linear", "--C", "1", "--model", "m.skops"]
    done = runner.invoke(main, words, input=tables.csv(sep="\t", encoding="utf-16"))
    assert done.exit_code == 0, done.output
    assert "# the table came from the standard input" in about("m.skops")["note"]["command"]
    done = runner.invoke(main, ["predict", "m.skops", "-", "-o", "-"], input=tables.csv())
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    table = pd.read_csv(io.StringIO(done.stdout))
    assert list(table["predicted y"].unique()) == ["up", "down"] or len(table) == tables.N
    assert runner.invoke(main, ["predict", "m.skops", "-", "-o", "-", "--json"]).exit_code == 2
    assert runner.invoke(main, ["report", "m.skops", "-", "-o", "r.html"]).exit_code == 2


def test_new_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 6)), columns=[f"rna_{j}" for j in range(4)] + ["age", "bmi"])
    frame["y"] = np.where(frame["rna_0"] > 0, "up", "down")
    frame.to_csv("data.csv", index=False)
    views = ("--view", "rna=rna_*", "--view", "clinic=age,bmi", "--kernels", "linear")
    call("fit", "data.csv", "--target", "y", *views, "--C", "1", "--model", "m.skops")
    frame.assign(**{f"rna_{j}": np.nan for j in range(4)}).to_csv("empty.csv", index=False)
    said = call("predict", "m.skops", "empty.csv", "-o", "o.csv", code=1).output
    assert "view 'rna' is missing in the new table for 40 of 40 rows (its 4 columns are empty)" in said
    frame.drop(columns=["rna_1", "rna_2"]).to_csv("less.csv", index=False)
    said = call("predict", "m.skops", "less.csv", "-o", "o.csv", code=1).output
    assert "no column 'rna_1', which the model needs for view 'rna' (2 of its 4 columns are missing)" in said
    frame.assign(age=["old"] + [1] * 39).to_csv("text.csv", index=False)
    said = call("predict", "m.skops", "text.csv", "-o", "o.csv", code=1).output
    assert "column 'age' should hold numbers, as in the training table; row 0 has 'old'" in said
    frame.assign(age=np.nan).to_csv("gap.csv", index=False)  # one column of a view can be filled
    assert "'age' 40 of 40 rows" in call("predict", "m.skops", "gap.csv", "-o", "o.csv").stderr


def test_unknown_categories_are_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_bytes(tables.csv())
    call("fit", "data.csv", "--target", "y", "--C", "1", "--kernels", "linear", "--model", "m.skops")
    tables.frame().assign(site="Bonn").iloc[:7].to_csv("new.csv", index=False)
    said = call("predict", "m.skops", "new.csv", "-o", "o.csv").stderr
    assert "categories that the training table did not have count as none: 'site' 7 of 7 rows" in said


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"]
)
def test_encodings(encoding):
    text = "größe,y\n1,a\n2,b\n"
    assert decode(text.encode(encoding), "x.csv")[0] == text
    assert decode(text.encode(encoding), "x.csv", encoding)[0] == text


def test_encodings_that_are_wrong():
    with pytest.raises(ValueError, match="there is no encoding 'utf-7000'"):
        decode(b"a", "x.csv", "utf-7000")
    with pytest.raises(ValueError, match=r"x.csv is not in the encoding utf-8"):
        decode(b"\xff\xfe\x00", "x.csv", "utf-8")


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ('name,note\n"a;b;c",1\n"d;e;f",2\n', ","),
        ("height, cm;weight, kg\n1,5;2,5\n", ";"),
        ("a\tb,c\n1\t2,5\n", "\t"),
        ("a|b|c\n1|2|3\n", "|"),
        ("one\n1\n", ","),
    ],
)
def test_separators(text, separator):
    assert separator_of(text) == separator
