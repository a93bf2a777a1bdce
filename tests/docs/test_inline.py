"""Code in the running text and in tables is run, too: a cell of a table is what people copy.

A span is taken for a call of the library where its function is one.  Functions and keywords have to exist; where every
name in the span is known here and nothing is left out (``...``), the span is run, and an estimator that it makes is
fitted.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import kernelweave
import kernelweave.similarity.solvers
from kernelweave import (
    MKLSurvival,
    SimilarityClassifier,
    displays,
    inspection,
    kernels,
    losses,
    norms,
    omics,
    solvers,
    survival,
)

from .test_blocks import relative
from .test_pages import PAGES

RNG = np.random.default_rng(0)
N = 40
COLUMNS = ["a", "b", "c", "d"]
#: names that the pages use for what a reader has
GIVEN = {
    "X": RNG.normal(size=(N, 4)),
    "K": None,
    "gammas": [0.5, 1.0],
    "widths": [1.0, 2.0],
    "width": 1.0,
    "columns": [0, 1],
    "views": {"one": [0, 1], "two": [2, 3]},
    "a": 2.0,
    "w": [0.5, 0.5],
    "C": 1.0,
    "p": 1.5,
    "np": np,
    "pd": pd,
    "f": lambda one, other: float(one[0] * other[0] + 1.0),
    "k1": kernels.linear(),
    "k2": kernels.gaussian(1.0),
    "kernel": kernels.gaussian(1.0),
    "bank": kernels.gaussian([1.0, 2.0]),
    "KFold": KFold,
    "GroupKFold": GroupKFold,
    "make_pipeline": make_pipeline,
    "StandardScaler": StandardScaler,
    "SVC": SVC,
}
GIVEN["y"] = np.where(GIVEN["X"][:, 0] + 0.3 * RNG.normal(size=N) > 0, 1, 0)
GIVEN["times"] = survival(RNG.exponential(size=N), RNG.random(N) < 0.7)
GIVEN["K"] = np.stack([kernel(GIVEN["X"]) for kernel in GIVEN["bank"]], axis=2)
GIVEN["KL"] = list(np.moveaxis(GIVEN["K"], 2, 0))
GIVEN["stack"] = np.stack(GIVEN["KL"])
MODULES = {"kw": kernels, "kernels": kernels, "norms": norms, "losses": losses, "inspection": inspection}
MODULES |= {"displays": displays, "solvers": solvers, "omics": omics, "kernelweave": kernelweave}
OURS = {name: getattr(kernelweave, name) for name in kernelweave.__all__} | MODULES
OURS |= {name: getattr(displays, name) for name in displays.__all__}
KNOWN = vars(builtins) | OURS | GIVEN


def spans(page):
    """Inline code outside of blocks, with what the table means by an escaped bar."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [span.replace("\\|", "|") for span in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose)]


def call_of_ours(code):
    """Return the expression of a span that calls something of the library; None for any other span."""
    try:
        tree = ast.parse(code.strip(), mode="eval")
    except SyntaxError:
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return tree if any(root(call.func) in OURS for call in calls) else None


def root(node):
    """Name that an attribute hangs on."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def resolved(node):
    """Return what a dotted name stands for, None where it is not one of the library."""
    if isinstance(node, ast.Name):
        return OURS.get(node.id)
    if isinstance(node, ast.Attribute) and (owner := resolved(node.value)) is not None:
        assert hasattr(owner, node.attr), f"{ast.unparse(node)} does not exist"
        return getattr(owner, node.attr)
    return None


SPANS = sorted(
    {
        (relative(page), code)
        for page in PAGES
        if page.name != "CHANGELOG.md"
        for code in spans(page)
        if call_of_ours(code)
    }
)


def test_there_are_spans_to_test():
    assert len(SPANS) > 100
    assert any("from_svc" in page and ".fit(stack, y)" in code for page, code in SPANS)


@pytest.mark.parametrize(("page", "code"), SPANS, ids=[f"{page}: {code}" for page, code in SPANS])
def test_spans_are_what_the_library_has(page, code):
    for call in (node for node in ast.walk(call_of_ours(code)) if isinstance(node, ast.Call)):
        function = resolved(call.func)
        if function is None:
            continue
        parameters = inspect.signature(function).parameters
        if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
            unknown = {keyword.arg for keyword in call.keywords} - set(parameters) - {None}
            assert not unknown, f"{ast.unparse(call.func)} has no {unknown}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("page", "code"),
    [
        (page, code)
        for page, code in SPANS
        if "..." not in code
        and {node.id for node in ast.walk(call_of_ours(code)) if isinstance(node, ast.Name)} <= set(KNOWN)
        and not re.search(r"device=|datasets\.load", code)  # which not every machine has
    ],
)
def test_spans_run(page, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = eval(compile(call_of_ours(code), page, "eval"), dict(KNOWN))
    if hasattr(made, "fit") and hasattr(made, "predict") and not hasattr(made, "dual_coef_"):
        X, y = GIVEN["X"], GIVEN["y"]
        X = GIVEN["KL"][0] if isinstance(made, SimilarityClassifier) else X
        numbers = GIVEN["times"] if isinstance(made, MKLSurvival) else X[:, 0]
        if getattr(made, "kernels", None) == "precomputed":
            X = GIVEN["stack"]
        made.fit(X, y if is_classifier(made) else numbers).predict(X)
