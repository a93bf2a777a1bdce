"""Files that are wrong, outputs that would destroy something, and names that would command the terminal."""

from __future__ import annotations

import ast
import builtins
import io
import json
import os
import stat
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import forked
import kernelweave.cli
from kernelweave import KernelFeatures, MKLClassifier
from kernelweave import kernels as kw
from kernelweave.cli import main
from kernelweave.cli._tables import TRACEBACK, without_formulas, write_table
from kernelweave.persistence import about, load, save

from .commands import call

CLIPBOARD = "\x1b]52;c;cm0gLXJmIC8\x07"
NAMES = [f"a{CLIPBOARD}", "b\x1b[2J\x9b31m", "c\u202ed\nError: all is well", "d\x7f"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table of sixty rows whose columns and classes have plain names."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    frame["y"] = np.where(frame["a"] > 0, "up", "down")
    frame.to_csv("data.csv", index=False)
    return tmp_path


FIT = ("fit", "data.csv", "--target", "y", "--C", "1", "--quiet")


# ---- outputs ------------------------------------------------------------------------------------------------


def test_a_report_that_fails_does_not_lose_the_model(folder, monkeypatch):
    def fail(*_, **__):
        raise ArithmeticError("no picture today")

    monkeypatch.setattr("kernelweave.report.make_report", fail)
    said = call(*FIT, "--model", "m.skops", "--report", "r.html", code=1).output
    assert "there is no report (the model is written to m.skops)" in said
    assert "no picture today" in said
    assert load("m.skops").predict(pd.read_csv("data.csv")[["a", "b", "c"]]).shape == (60,)
    facts = json.loads(call(*FIT, "--model", "n.skops", "--report", "r.html", "--json", code=1).stdout)
    assert facts["written"] == {"model": "n.skops", "report": None}
    assert "no picture today" in facts["report_error"]


def test_an_interrupted_report_leaves_the_model(folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("kernelweave.report.make_report", interrupted)
    said = call(*FIT, "--model", "m.skops", "--report", "r.html", code=130).output
    assert "interrupted; the model is written to m.skops" in said
    load("m.skops")


def test_a_report_follows_no_order_of_a_file(folder):
    """A search in front of the model is fitted again; one that names a folder of pickles is not even loaded."""
    call(*FIT, "--kernels", "linear", "--model", "m.skops")
    frame = pd.read_csv("data.csv")
    inner = Pipeline([("s", StandardScaler()), ("p", PCA(2))])
    search = GridSearchCV(inner, {"p__n_components": [1, 2]}, cv=2)
    model = Pipeline([load("m.skops").steps[0], ("g", search), ("m", MKLClassifier(kw.linear()))])
    save(model.fit(frame[["a", "b", "c"]], frame["y"]), "honest.skops", note=about("m.skops")["note"])
    call("report", "honest.skops", "data.csv", "-o", "r.html", "--folds", "2", "--quiet")
    assert (folder / "r.html").exists()
    with zipfile.ZipFile("honest.skops") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["schema.json"] = parts["schema.json"].replace(b'"p__n_components"', b'"memory"')
    with zipfile.ZipFile("forged.skops", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    said = call(
        "report", "forged.skops", "data.csv", "-o", "f.html", "--folds", "2", "--quiet", code=1
    ).output
    assert "a value for memory: a file may not say" in said
    assert not (folder / "f.html").exists()


def test_outputs_that_are_each_other(folder):
    for report in ("same.out", "./same.out", folder / "same.out"):
        said = call(*FIT, "--model", "same.out", "--report", report, "--force", code=2).output
        assert "--model and --report are the same file" in said
    assert not (folder / "same.out").exists()


@pytest.mark.parametrize("option", ["--model", "--report"])
def test_outputs_of_a_fit_that_are_inputs(folder, option):
    frame = pd.read_csv("data.csv")
    frame[["y"]].assign(id=range(60)).to_csv("labels.csv", index=False)
    frame[["a", "b"]].assign(id=range(60)).to_csv("view.csv", index=False)
    Path("views.toml").write_text('id = "id"\n[views.v]\nfile = "view.csv"\n')
    os.link("view.csv", "hard.csv")
    command = ("fit", "labels.csv", "--target", "y", "--views", "views.toml", "--C", "1", "--force")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in ("labels.csv", "views.toml", "view.csv", "hard.csv", folder / "sub" / ".." / "labels.csv"):
        (folder / "sub").mkdir(exist_ok=True)
        assert "is a file that is read" in call(*command, option, name, code=2).output
        (folder / "sub").rmdir()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    np.save("k.npy", np.eye(60))
    gram = ("fit", "data.csv", "--target", "y", "--gram", "k.npy", "--force", option, "k.npy")
    assert "is a file that is read" in call(*gram, code=2).output


def test_outputs_of_other_commands_that_are_inputs(folder):
    call(*FIT, "--model", "m.csv")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for command in ("predict", "report"):
        for output in ("m.csv", "data.csv"):
            said = call(command, "m.csv", "data.csv", "-o", output, "--force", code=2).output
            assert "is a file that is read" in said
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_outputs_that_are_no_files(folder):
    os.mkfifo("pipe.csv")
    (folder / "folder.csv").mkdir()
    Path("link.csv").symlink_to("data.csv")
    call(*FIT, "--model", "m.skops")
    for output, what in (("pipe.csv", "is a pipe"), ("/dev/null", "is a device"), ("link.csv", "read")):
        assert what in call(*FIT, "--model", output, "--force", code=2).output
    assert "is a link" in call("predict", "m.skops", "m.csv", "-o", "link.csv", "--force", code=2).output
    for output in ("pipe.csv", "folder.csv"):
        call("predict", "m.skops", "data.csv", "-o", output, "--force", code=2)
    assert "is a device" in call("demo", "--output", "/dev/null", "--force", code=2).output
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_modes_of_files_are_kept(folder):
    call(*FIT, "--model", "m.skops", "--report", "r.html", "--folds", "2")
    call("predict", "m.skops", "data.csv", "-o", "p.csv")
    for name in ("m.skops", "r.html", "p.csv"):
        Path(name).chmod(0o600)
    call(*FIT, "--model", "m.skops", "--report", "r.html", "--folds", "2", "--force")
    call("predict", "m.skops", "data.csv", "-o", "p.csv", "--force")
    assert {stat.S_IMODE(Path(name).stat().st_mode) for name in ("m.skops", "r.html", "p.csv")} == {0o600}


# ---- the terminal -------------------------------------------------------------------------------------------


def hostile(text):
    """Characters that a terminal obeys, or that change what is read."""
    return [c for c in text if not (c.isprintable() or c == "\n")]


@pytest.fixture
def named(folder):
    frame = pd.read_csv("data.csv")
    frame.columns = NAMES
    frame[NAMES[3]] = np.where(frame[NAMES[3]] == "up", f"up{CLIPBOARD}", "down\x1b[8m")
    frame.to_csv("data.csv", index=False)
    return folder


def test_names_do_not_reach_the_terminal_raw(named):
    fit = ("fit", "data.csv", "--target", NAMES[3], "--C", "1", "--model", "m.skops")
    views = [f"--view={name.replace(',', '')}={name}" for name in NAMES[:2]]
    outputs = [call(*fit, *views).output]
    outputs.append(call(*fit, "--force", "--json").output)
    outputs.append(call("inspect", "m.skops").output)
    outputs.append(call("inspect", "m.skops", "--json").output)
    outputs.append(call("predict", "m.skops", "data.csv", "-o", "p.csv", "--json").output)
    for output in outputs:
        assert not hostile(output)
    assert r"\x1b]52;c;" in outputs[2]
    assert "Error: all is well" not in [line.strip() for line in outputs[2].splitlines()]
    assert json.loads(outputs[3])["classes"] == ["down\x1b[8m", f"up{CLIPBOARD}"]
    assert json.loads(outputs[1])["target"] == NAMES[3]


def test_nor_do_names_in_errors_and_warnings(named):
    assert not hostile(call("fit", "data.csv", "--target", f"x{CLIPBOARD}", "--json", code=1).output)
    assert not hostile(call("fit", f"x{CLIPBOARD}.csv", "--target", "y", "--json", code=1).output)
    assert not hostile(call("fit", "data.csv", "--target", "y", "--model", f"{CLIPBOARD}/m", code=2).output)
    pd.DataFrame({NAMES[0]: [1, 2], "y": [0, 1]}).assign(**{NAMES[1]: np.nan}).to_csv("e.csv", index=False)
    said = call("fit", "e.csv", "--target", "y", "--json", code=1).output
    assert "is empty" in said
    assert not hostile(said)
    Path("views.toml").write_text('[views.a]\ncolumns = ["\\u001b]52;c;x\\u0007"]\n')
    assert not hostile(
        call("fit", "data.csv", "--target", NAMES[3], "--views", "views.toml", "--json", code=1).output
    )


def test_warnings_of_a_forged_version(folder):
    call(*FIT, "--model", "m.skops")
    relabel("m.skops", lambda label: label["note"].pop("facts"))  # the model itself is asked
    with zipfile.ZipFile("m.skops") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    text = parts["schema.json"].decode()
    import sklearn

    forged = json.dumps(json.dumps(f"1.0{CLIPBOARD}"))
    text = text.replace(json.dumps(json.dumps(sklearn.__version__)), forged)
    assert forged in text
    with zipfile.ZipFile("m.skops", "w") as archive:
        for name, content in (parts | {"schema.json": text}).items():
            archive.writestr(name, content)
    # in a process of its own: warnings are errors in the tests
    done = forked.run("from kernelweave.cli import main; main()", "inspect", "m.skops")
    assert "warning: m.skops was written with scikit-learn" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not hostile(done.stdout + done.stderr)


def test_one_function_prints():
    """Nothing in the commands prints but the two functions that make texts visible."""
    for path in Path(kernelweave.cli.__file__).parent.glob("*.py"):
        if path.name == "_terminal.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            assert name not in (
                "print",
                "click.echo",
                "click.secho",
                "sys.stdout.write",
                "sys.stderr.write",
            ), path.name


# ---- formulas -----------------------------------------------------------------------------------------------


def test_formulas_in_predictions(folder):
    frame = pd.read_csv("data.csv")
    frame["y"] = np.where(frame["y"] == "up", "=cmd|'/C calc'!A0", "@SUM(A1)")
    frame["id"] = [f"+a{i}" for i in range(60)]
    frame.to_csv("data.csv", index=False)
    call(*FIT, "--id", "id", "--model", "m.skops")
    call("predict", "m.skops", "data.csv", "-o", "plain.csv")
    call("predict", "m.skops", "data.csv", "-o", "safe.csv", "--spreadsheet")
    plain, safe = (pd.read_csv(name, dtype=str) for name in ("plain.csv", "safe.csv"))
    assert plain["predicted y"].str.startswith(("=", "@")).all()
    assert safe["predicted y"].str.startswith(("'=", "'@")).all()
    assert (safe["id"] == "'" + plain["id"]).all()
    decisions = [name for name in plain if name.startswith("decision")]
    assert (safe[decisions] == plain[decisions]).all().all(), "numbers stay numbers"
    assert (plain[decisions].astype(float) < 0).any().all()


def test_every_beginning_of_a_formula():
    cells = ["=1", "+1", "-1", "@a", "\tx", "\rx", "x=1", "", "-", "ok"]
    made = without_formulas(pd.DataFrame({"=name": cells, "-n": np.arange(10.0) - 5}))
    assert list(made.columns) == ["'=name", "'-n"]
    assert made.iloc[:6, 0].tolist() == ["'" + cell for cell in cells[:6]]
    assert made.iloc[6:, 0].tolist() == ["x=1", "", "'-", "ok"]
    assert made["'-n"].tolist() == (np.arange(10.0) - 5).tolist()


# ---- tables that are wrong ----------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_torn_arrays(folder, share):
    np.savez_compressed("x.npz", x=np.random.default_rng(0).normal(size=(60, 3)), y=np.arange(60) % 2)
    np.save("x.npy", np.random.default_rng(0).normal(size=(60, 60)))
    for name in ("x.npz", "x.npy"):
        content = Path(name).read_bytes()
        Path(name).write_bytes(content[: int(share * len(content))])
        assert f"cannot read {name}" in call("fit", name, "--target", "y", "--json", code=1).output
        assert f"cannot read {name}" in call(*FIT, "--gram", name, "--json", code=1).output


def test_flipped_bits_in_arrays(folder):
    np.savez_compressed("x.npz", x=np.random.default_rng(0).normal(size=(60, 3)), y=np.arange(60) % 2)
    content = bytearray(Path("x.npz").read_bytes())
    rng = np.random.default_rng(1)
    for _ in range(20):
        damaged = bytearray(content)
        for at in rng.integers(0, len(content), 4):
            damaged[at] ^= 0xFF
        Path("x.npz").write_bytes(bytes(damaged))
        done = CliRunner().invoke(main, ["fit", "x.npz", "--target", "y", "--C", "1", "--json"])
        assert isinstance(done.exception, SystemExit | None)
        assert "unexpectedly" not in done.output


def test_a_nul_in_a_name(folder):
    Path("nul.csv").write_bytes(b"a\0b,y\n1,0\n2,1\n3,0\n4,1\n")
    said = call("fit", "nul.csv", "--target", "y", "--json", code=1).output
    assert r"a column 'a\x00b', with a NUL in its name" in said
    with pytest.raises(ValueError, match="with a NUL in its name"):
        write_table(pd.DataFrame({"a\0b": [1.0]}), Path("o.npz"))
    assert not Path("o.npz").exists()


def test_a_column_called_file_in_an_archive(folder):
    write_table(pd.DataFrame({"file": [1.0], "allow_pickle": ["x"]}), Path("o.npz"))
    with np.load("o.npz") as made:
        assert made["file"].tolist() == [1.0]
        assert made["allow_pickle"].tolist() == ["x"]


@pytest.mark.parametrize("C", ["-1e308", "0", "nan", "inf"])
def test_numbers_that_cannot_be_meant(folder, C):
    assert "--C takes a number" in call("fit", "data.csv", "--target", "y", "--C", C, "--json", code=2).output


@pytest.mark.parametrize("C", ["1e308", "1e-320"])
def test_numbers_at_the_edge(folder, C):
    done = CliRunner().invoke(main, ["fit", "data.csv", "--target", "y", "--C", C, "--json"])
    assert isinstance(done.exception, SystemExit | None), done.exception
    assert done.exit_code in (0, 1, 3)
    assert "Traceback" not in done.output
    assert len(done.stderr.splitlines()) <= 2


def test_deep_files(folder):
    Path("views.toml").write_text("a = " + "[" * 5000 + "]" * 5000)
    said = call(*FIT, "--views", "views.toml", "--json", code=1).output
    assert "nested too deeply" in said


def relabel(path, change):
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    label = json.loads(parts["kernelweave.json"])
    change(label)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (parts | {"kernelweave.json": json.dumps(label)}).items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda label: label.pop("note"), "does not say 'note'"),
        (lambda label: label.pop("scikit-learn"), "does not say 'scikit-learn'"),
        (lambda label: label["note"].pop("gram"), "does not say 'gram' as this version needs it"),
        (lambda label: label["note"].update(columns={"a": "dates"}), "does not say 'columns'"),
        (lambda label: label["note"].update(id=3), "does not say 'id'"),
        (lambda label: label["note"].update(rows="many"), "does not say 'rows'"),
        (lambda label: label["note"].update(task="ranking"), "does not say 'task'"),
        (lambda label: label["note"].update(strip="yes"), "does not say 'strip'"),
        (lambda label: label["note"].update(reading=["a"]), "does not say 'reading'"),
        (lambda label: label["note"].update(reading={"renamed": {"a": []}}), "does not say 'reading'"),
        (lambda label: label.update(note={}), "was not written by 'kernelweave fit'"),
    ],
)
def test_labels_of_another_version(folder, change, said):
    call(*FIT, "--model", "m.skops")
    relabel("m.skops", change)
    assert said in call("predict", "m.skops", "data.csv", "-o", "p.csv", code=1).output
    assert said in call("report", "m.skops", "data.csv", "-o", "r.html", code=1).output
    done = CliRunner().invoke(main, ["inspect", "m.skops"])
    assert isinstance(done.exception, SystemExit | None)


def test_models_without_a_certificate(folder):
    save(KernelFeatures(kw.linear()).fit(np.eye(4)), "f.skops")
    assert (
        "no certificate to tell of: the model is a KernelFeatures"
        in call("inspect", "f.skops", code=1).output
    )


def test_what_goes_wrong_unexpectedly_is_a_sentence(folder, monkeypatch):
    def fail(*_, **__):
        raise KeyError("surprise")

    call(*FIT, "--model", "m.skops")
    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    said = call("predict", "m.skops", "data.csv", "-o", "p.csv", code=1).output
    assert "this went wrong unexpectedly (KeyError: 'surprise'); KERNELWEAVE_TRACEBACK=1 shows where" in said
    monkeypatch.setenv(TRACEBACK, "1")
    with pytest.raises(KeyError, match="surprise"):
        call("predict", "m.skops", "data.csv", "-o", "p.csv")


def test_the_report_obeys_no_parameter_of_the_file(folder, monkeypatch):
    """Forged past the loader: the report itself clears what would start processes or write files."""
    call(*FIT, "--model", "m.skops")
    kept = kernelweave.persistence.loaded

    def forged(path):
        model, label = kept(path)
        return model.set_params(memory="cache", model__checkpoint="victim.npz", model__n_jobs=500), label

    Path("victim.npz").write_text("precious")
    monkeypatch.setattr(kernelweave.persistence, "loaded", forged)
    call("report", "m.skops", "data.csv", "-o", "r.html", "--folds", "2", "--quiet")
    assert Path("victim.npz").read_text() == "precious"
    assert not Path("cache").exists()


def test_a_model_file_is_read_once(folder, monkeypatch):
    call(*FIT, "--model", "m.skops")
    opened = []
    for module, opens in ((os, os.open), (io, io.open), (builtins, open)):

        def watched(path, *arguments, opens=opens, **options):
            opened.extend([path] * str(path).endswith("m.skops"))
            return opens(path, *arguments, **options)

        monkeypatch.setattr(module, "open", watched)
    for words in (("inspect", "m.skops"), ("predict", "m.skops", "data.csv", "-o", "p.csv")):
        opened.clear()
        call(*words)
        assert len(opened) == 1
    assert about("m.skops")["model"] == "Pipeline"
    assert MKLClassifier.__name__ in repr(load("m.skops"))
