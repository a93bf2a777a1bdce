"""``inspect`` reads what ``fit`` noted, and a model only where there is no such note."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from faults import children
from kernelweave import MKLRegressorCV
from kernelweave import kernels as kw
from kernelweave.persistence import save

from .commands import call


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspect")
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=np.where(X[:, 0] > 0, "up", "down"))
    frame.to_csv(folder / "data.csv", index=False)
    call("fit", folder / "data.csv", "--target", "y", "--C", "1", "--model", folder / "m.skops")
    return folder / "m.skops"


def relabelled(model, path, change):
    with zipfile.ZipFile(model) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    label = json.loads(parts["kernelweave.json"])
    change(label["note"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (parts | {"kernelweave.json": json.dumps(label)}).items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda note: note.pop("facts"),
        lambda note: note.update(facts=3),
        lambda note: note["facts"].pop("certificate"),
        lambda note: note["facts"].update(weights=[1, 2]),
        lambda note: note["facts"].update(C=[None]),
        lambda note: note["facts"].update(views={"a": "b", "c": 1}),
    ],
)
def test_a_model_says_what_its_label_says(model, tmp_path, change):
    other = relabelled(model, tmp_path / "other.skops", change)
    assert call("inspect", other).output == call("inspect", model).output
    told, loaded = (json.loads(call("inspect", path, "--json").output) for path in (model, other))
    assert told == loaded


def test_nothing_heavy_is_imported(model):
    children.run(
        f"""
        import sys
        from kernelweave.cli import main
        main(["inspect", {str(model)!r}], standalone_mode=False)
        heavy = {{"numpy", "scipy", "sklearn", "skops", "pandas", "numba"}} & set(sys.modules)
        assert not heavy, heavy
        """
    )


def test_what_the_scores_leave_open_comes_before_the_weights(tmp_path):
    """Weights of views at choices of C that score as well; C at the end of its grid changes no exit code."""
    rng = np.random.default_rng(103)
    y = rng.permutation(np.repeat(["sick", "well"], 30))
    first = rng.normal(size=(60, 4)) + np.where(y == "sick", 1.5, 0.0)[:, None]
    second = first + 0.7 * rng.normal(size=(60, 4))
    columns = [f"a_{j}" for j in range(4)] + [f"b_{j}" for j in range(4)]
    pd.DataFrame(np.hstack([first, second]), columns=columns).assign(y=y).to_csv(
        tmp_path / "t.csv", index=False
    )
    model = tmp_path / "m.skops"
    fitted = call(
        "fit", tmp_path / "t.csv", "--target", "y", "--view", "first=a_*", "--view", "second=b_*",
        "--kernels", "linear", "--model", model,
    )  # fmt: skip
    shown = call("inspect", model)
    facts = json.loads(call("inspect", model, "--json").stdout)
    ties = facts["tied_choices"]
    assert len(ties["choices"]) > 1
    for text in (fitted.output, shown.output):
        assert f"among {len(ties['choices'])} tied choices of C" in text
        for low, high in ties["views"].values():
            assert f"{low:.3f} to {high:.3f}" in text
        if facts.get("findings"):
            assert text.index("finding: ") < text.index("kernels have weight")
    low, high = ties["views"]["first"]
    assert low <= facts["views"]["first"] <= high
    moved = [sentence for sentence in facts.get("findings", ()) if "not decided by the scores" in sentence]
    assert bool(moved) == (high - low > 0.1)


def test_a_model_that_was_saved_from_python(tmp_path):
    X, y = load_iris(return_X_y=True)
    fitted = MKLRegressorCV(kw.linear() + kw.gaussian(1.0), Cs=[1.0, 10.0]).fit(X, y)
    save(fitted, tmp_path / "m.skops")
    lines = call("inspect", tmp_path / "m.skops").stdout.splitlines()
    assert fitted.decision_.reason in lines
    place = lines.index("MKLRegressorCV (a number)")
    assert lines[place + 1].startswith("norm ")
    assert "auto" not in lines[place + 1].partition(",")[0]  # the one that was chosen
