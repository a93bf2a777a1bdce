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
from kernelweave.persistence import about, load

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
def test_encodings(encoding, tmp_path):
    (tmp_path / "x.csv").write_bytes("größe,y\n1,a\n2,b\n".encode(encoding))
    for more in ((), ("--encoding", encoding)):
        said = call("fit", tmp_path / "x.csv", "--target", "größ", *more, "--json", code=1).output
        assert "Did you mean 'größe'?" in said


def test_encodings_that_are_wrong(tmp_path):
    for content, encoding, code, said in (
        (b"a", "utf-7000", 2, "there is no encoding 'utf-7000'"),
        (b"\xff\xfe\x00", "utf-8", 1, "x.csv is not in the encoding utf-8"),
    ):
        (tmp_path / "x.csv").write_bytes(content)
        words = ("fit", tmp_path / "x.csv", "--target", "y", "--encoding", encoding, "--json")
        assert said in call(*words, code=code).output


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('name,note\n"a;b;c",1\n"d;e;f",2\n', ["name", "note"]),
        ("height, cm;weight, kg\n1,5;2,5\n", ["height, cm", "weight, kg"]),
        ("alpha\tbeta,gamma\n1\t2,5\n", ["alpha", "beta,gamma"]),
        ("alpha|beta|gamma\n1|2|3\n", ["alpha", "beta", "gamma"]),
        ("one\n1\n", ["one"]),
    ],
)
def test_separators(text, names, tmp_path):
    (tmp_path / "x.csv").write_text(text)
    for name in names:
        said = call("fit", tmp_path / "x.csv", "--target", f"{name}_", "--json", code=1).output
        assert f"Did you mean {name!r}?" in said


def said_of(values, folder):
    """What a fit says of a table with these values in a column: its next column is empty, and refused in any case."""
    nothing, y = np.full(len(values), np.nan), np.arange(len(values)) % 2
    path = folder / "x.parquet"
    pd.DataFrame({"when": values, "nothing": nothing, "y": y}).to_parquet(path)
    return call("fit", path, "--target", "y", "--json", code=1).output


@pytest.mark.parametrize(
    "date",
    ["2024-01-31", "2024/1/31", "31.01.2024", "1.2.2024", "1/31/2024", "31/1/24", "01.02.24", "31-12-1999",
     "2024-01-31T10:00", "2024-01-31 10:00:01.25", "2024-01-31T10:00:00Z", "2024-01-31T10:00:00+01:00",
     "31 Jan 2024", "31-Jan-24", "Jan 31, 2024", "2024-Jan-31", "January 31, 2024", "1/2/2024 3:04 PM"],
)  # fmt: skip
def test_dates(date, tmp_path):
    found = f"column 'when' holds dates, such as {date!r}: "
    for dtype in ("str", "category"):
        assert found in said_of(pd.Series([date, None, date], dtype=dtype), tmp_path)
        others = pd.Series([date, f"{date}x", "unknown"], dtype=dtype)
        assert "column 'nothing' is empty" in said_of(others, tmp_path)  # most are something else


@pytest.mark.parametrize(
    "text", ["1.2.3", "10.0.1", "1:20", "2024", "2024-13-01", "32.01.2024", "1/2", "3/4/5", "12-15", "A-2024-01-01",
             "2010-11", "mar", "0.5", "1,234", "10:30", "555-1234", "192.168.1.1"],
)  # fmt: skip
def test_what_is_no_date(text, tmp_path):
    assert "column 'nothing' is empty" in said_of(pd.Series([text, text]), tmp_path)


@pytest.mark.parametrize(
    "made",
    [
        pd.date_range("2024-01-01", periods=40),
        pd.date_range("2024-01-01", periods=40, tz="UTC"),
        pd.date_range("2024-01-01", periods=40).date,  # date32 in Parquet, objects in pandas
        pd.date_range("2024-01-01", periods=40).strftime("%Y-%m-%d"),
    ],
)
def test_dates_of_parquet(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables.frame().assign(seen=made).to_parquet("data.parquet")
    words = ("fit", "data.parquet", "--target", "y", "--C", "1", "--kernels", "linear", "--json")
    said = call(*words, code=1).stderr
    assert "column 'seen' " in said
    assert "date" in said
    assert "--drop 'seen'" in said
    call(*words, "--drop", "seen")
    words = ("fit", "data.parquet", "--target", "seen", "--drop", "y", "--json")
    assert "the target 'seen' holds dates, such as '2024-01-01" in call(*words, code=1).stderr


@pytest.mark.parametrize("number", ["1e300", "-1e200", "inf", "-inf", 10**300, 10**400])
def test_numbers_beyond_reach_are_named_before_any_work(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("plain.csv").write_bytes(tables.csv())
    words = ("--target", "y", "--C", "1", "--kernels", "linear", "--model", "m.skops")
    call("fit", "plain.csv", *words)
    frame = tables.frame().astype({"b": object})
    frame.loc[7, "b"] = number
    frame.to_csv("data.csv", index=False)
    refused = (
        call("fit", "data.csv", *words, "--force", code=1),
        call("predict", "m.skops", "data.csv", "-o", "out.csv", code=1),
        call("report", "m.skops", "data.csv", "-o", "out.html", code=1),
    )
    for done in refused:
        assert "column 'b' holds " in done.stderr
        assert "in row 7" in done.stderr
        for word in ("NaN", "HistGradientBoosting", "StandardScaler", "\n\n"):
            assert word not in done.stderr
        # only a fit can leave a column out
        assert ("--drop 'b'" in done.stderr) == (done is refused[0])
    frame.assign(y=frame["b"], b=0.5).to_csv("target.csv", index=False)
    said = call("fit", "target.csv", "--target", "y", "--json", code=1).stderr
    assert "the target 'y' holds " in said
    assert "in row 7" in said


def test_numbers_that_can_be_computed_with_are_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = tables.frame()
    frame.assign(b=1e140 * frame["b"]).to_csv("data.csv", index=False)
    tables.frame().to_csv("plain.csv", index=False)
    words = ("--target", "y", "--C", "1", "--kernels", "linear", "--json")
    one, other = (json.loads(call("fit", name, *words).stdout) for name in ("data.csv", "plain.csv"))
    assert one["certificate"]["primal"] == pytest.approx(other["certificate"]["primal"], rel=1e-3)


def test_whole_numbers_of_any_size_and_decimals_are_numbers(tmp_path, monkeypatch):
    from decimal import Decimal

    monkeypatch.chdir(tmp_path)
    tables.frame().assign(b=[10**30 + k * 10**28 for k in range(tables.N)]).to_csv("data.csv", index=False)
    tables.frame().assign(b=[Decimal(k) / 4 for k in range(tables.N)]).to_parquet("data.parquet")
    for name in ("data.csv", "data.parquet"):
        words = ("--target", "y", "--C", "1", "--kernels", "linear", "--model", "m.skops", "--force")
        call("fit", name, *words)
        assert about("m.skops")["note"]["columns"]["b"] == "numbers"


def test_texts_that_look_the_same_are_noted_and_can_be_stripped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = tables.frame()
    y = [f"{label} " if k % 9 == 4 else label for k, label in enumerate(frame["y"])]
    sites = ["Köln", "Ko\u0308ln", "Ulm", "ULM"] * 10
    frame.assign(y=y, site=sites, who=["a", "a ", "b", "c"] * 10).to_csv("data.csv", index=False)
    words = ("--target", "y", "--C", "1", "--kernels", "linear", "--fold-groups", "who")
    said = call("fit", "data.csv", *words, "--model", "m.skops").stderr
    assert "column 'y' has 'down' and 'down ', which differ only by spaces around them" in said
    assert "column 'who' has 'a' and 'a ', which differ only by spaces around them" in said
    assert "column 'site' has 'ULM' and 'Ulm', which differ only by upper and lower case" in said
    assert "which differ only by spaces, letter case or the encoding of letters" in said
    assert load("m.skops")[-1].classes_.tolist() == sorted(set(y))
    assert "'down' and 'down '" in call("inspect", "m.skops").stdout  # kept in the label
    said = call("fit", "data.csv", *words, "--model", "s.skops", "--strip").stderr
    assert "spaces around" not in said
    assert load("s.skops")[-1].classes_.tolist() == ["down", "up"]
    # the model knows that it was so
    call("report", "s.skops", "data.csv", "-o", "r.html", "--folds", "2", "--quiet")
    assert "no samples" not in Path("r.html").read_text()
    frame.assign(site=[f" {site} " for site in sites]).to_csv("new.csv", index=False)
    assert "did not have" in call("predict", "m.skops", "new.csv", "-o", "o.csv").stderr
    assert "did not have" not in call("predict", "s.skops", "new.csv", "-o", "o.csv", "--force").stderr


def test_a_name_twice_in_a_new_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_bytes(tables.csv())
    words = ("--target", "y", "--C", "1", "--kernels", "linear")
    call("fit", "data.csv", *words, "--model", "m.skops")
    text = tables.csv().decode().replace("a,b,", "a,a,", 1)
    Path("twice.csv").write_text(text)
    said = call("predict", "m.skops", "twice.csv", "-o", "o.csv", code=1).stderr
    assert "twice.csv has two columns called 'a': rename one of them" in said
    # where the training table had it twice, both are columns of the model
    call("fit", "twice.csv", *words, "--model", "n.skops")
    assert "'a.1'" in call("predict", "n.skops", "twice.csv", "-o", "o.csv").stderr
    call("fit", "twice.csv", *words, "--drop", "a.1", "--model", "n.skops", "--force")
    assert "'a.1'" in call("predict", "n.skops", "twice.csv", "-o", "o.csv", "--force").stderr


def test_options_for_tables_are_in_every_command_that_reads_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_bytes(b"%made\n" + tables.csv(sep=" ") + b"% the end\n")
    form = ("--comment", "%", "--separator", "space")
    words = ("--target", "y", "--C", "1", "--kernels", "linear")
    call("fit", "data.csv", *words, *form, "--model", "m.skops")
    Path("plain.csv").write_bytes(tables.csv())
    call("predict", "m.skops", "data.csv", *form, "-o", "one.csv")
    call("predict", "m.skops", "plain.csv", "-o", "other.csv")
    assert Path("one.csv").read_text() == Path("other.csv").read_text()
    call("report", "m.skops", "data.csv", *form, "-o", "r.html", "--folds", "2", "--quiet")
    said = call("predict", "m.skops", "data.csv", "--comment", "%", "-o", "three.csv", code=1).stderr
    assert "its columns look separated by spaces: --separator space" in said
    assert "--comment '%'" in call("predict", "m.skops", "data.csv", "-o", "three.csv", code=1).stderr


@pytest.mark.parametrize(
    ("given", "other"), [(";", "--separator ','"), ("|", "--separator ','"), ("^", "','")]
)
def test_a_separator_that_is_not_that_of_the_table(given, other, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_bytes(tables.csv())
    said = call("fit", "data.csv", "--target", "y", "--separator", given, "--json", code=1).stderr
    assert "data.csv has a single column, 'a,b,site,y'; its columns look separated by comma" in said
    assert other in said


def test_texts_in_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = tables.frame()
    arrays = {"a": frame["a"].to_numpy(), "b": frame["b"].to_numpy()}
    arrays |= {name: np.char.encode(frame[name].to_numpy(dtype=str), "utf-8") for name in ("site", "y")}
    arrays["who"] = np.array([f"{k:04d}" for k in range(tables.N)], dtype="S4")
    np.savez("data.npz", **arrays)
    call(
        "fit",
        "data.npz",
        "--target",
        "y",
        "--id",
        "who",
        "--C",
        "1",
        "--kernels",
        "linear",
        "--model",
        "m.skops",
    )
    assert load("m.skops")[-1].classes_.tolist() == ["down", "up"]
    call("predict", "m.skops", "data.npz", "-o", "o.csv")
    assert pd.read_csv("o.csv", dtype=str)["who"].tolist() == [f"{k:04d}" for k in range(tables.N)]


def test_a_header_that_begins_with_a_mark_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("--target", "y", "--C", "1", "--kernels", "linear")
    Path("hash.csv").write_bytes(b"#" + tables.csv())
    call("fit", "hash.csv", *words, "--model", "m.skops")
    assert "#a" in about("m.skops")["note"]["columns"]
    call("predict", "m.skops", "hash.csv", "-o", "o.csv")
    Path("vcf.csv").write_bytes(b"##one\n##two\n#" + tables.csv(sep="\t"))
    said = call("fit", "vcf.csv", *words, "--json", code=1).stderr
    assert "2 lines that begin with '##'" in said
    call("fit", "vcf.csv", *words, "--comment", "##", "--json")
    # rows that begin with a mark are rows
    ids = tables.frame()
    ids.insert(0, "id", [f"#{k}" for k in range(tables.N)])
    ids.to_csv("ids.csv", index=False)
    call("fit", "ids.csv", *words, "--id", "id", "--json")


def test_a_table_of_one_column_is_no_mistake(tmp_path, monkeypatch):
    """Labels for kernel matrices: a column with spaces in its name and in its cells."""
    monkeypatch.chdir(tmp_path)
    frame = tables.frame()
    pd.DataFrame({"the state": np.where(frame["a"] > 0, "was well", "was sick")}).to_csv("y.csv", index=False)
    np.save("k.npy", np.outer(frame["a"], frame["a"]))
    call("fit", "y.csv", "--target", "the state", "--gram", "k.npy", "--C", "1", "--json")


def test_many_classes_are_noted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tables.frame().assign(y=[f"c{k}" for k in range(tables.N)]).to_csv("data.csv", index=False)
    words = ("fit", "data.csv", "--target", "y", "--C", "1", "--kernels", "linear", "--json")
    assert "the target 'y' has 40 classes in 40 rows" in call(*words).stderr
