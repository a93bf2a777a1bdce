"""Bad input: a ValueError that says what is wrong and what to do, before any kernel is computed."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from kernelweave import MKLClassifier, MKLRegressor, losses, norms, solvers
from kernelweave import kernels as kw
from kernelweave.banks import Bank

from . import by_hand
from .data import bank, spectrum


@pytest.fixture(autouse=True)
def no_work(monkeypatch):
    """Whatever is refused here must be refused before a bank is built."""

    def never(*args, **kwargs):
        raise AssertionError("a bank was built although the input is bad")

    monkeypatch.setattr(Bank, "__init__", never)


@pytest.fixture(scope="module")
def data():
    return by_hand.moons(40)


@pytest.fixture(scope="module")
def stack(data):
    return by_hand.raw_stack(data[0], data[0])


def refused(estimator, X, y, *words, **options):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        estimator.fit(X, y, **options)
    message = str(caught.value)
    for word in words:
        assert re.search(word, message, re.IGNORECASE | re.DOTALL), f"{word!r} is not in: {message}"
    assert not hasattr(estimator, "dual_coef_")


def test_the_fixture_bites(data):
    with pytest.raises(AssertionError, match="although the input is bad"):
        MKLClassifier(bank()).fit(*data)


# ---- samples and labels --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [MKLClassifier, MKLRegressor])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite(data, make, value):
    X, y = data[0].copy(), data[1]
    X[3, 1] = value
    word = "NaN" if np.isnan(value) else "infinity"
    refused(make(bank()), X, y, "X contains", word)
    refused(make(bank()), pd.DataFrame(X, columns=list("abcd")), y, "X contains", word)
    refused(make(kw.gaussian()), sp.csr_array(X), y, "X contains", word)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_targets_that_are_not_finite(data, value):
    X, y = data[0], data[1].astype(float)
    y[2] = value
    refused(MKLClassifier(bank()), X, y, "y contains", "NaN|infinity")
    refused(MKLRegressor(bank()), X, y, "y contains", "NaN|infinity")


def test_one_class(data):
    X, _ = data
    refused(MKLClassifier(bank()), X, np.ones(40), "at least two classes", "only one class", r"1\.")
    refused(MKLClassifier(bank()), X, ["yes"] * 40, "at least two classes", "yes")
    y = np.repeat([0, 1], 20)
    refused(
        MKLClassifier(bank()), X, y, "two classes", "positive weight", sample_weight=(y == 0).astype(float)
    )
    refused(MKLClassifier(bank(), class_weight={0: 1.0, 1: 0.0}), X, y, "two classes", "positive weight")


def test_labels_of_the_wrong_kind(data):
    X, _ = data
    refused(MKLClassifier(bank()), X, np.linspace(0, 1, 40), "continuous")
    refused(MKLClassifier(bank()), X, None, "requires y", "None")
    refused(MKLRegressor(bank()), X, None, "requires y", "None")
    refused(MKLRegressor(bank()), X, ["a"] * 40, "float|numeric|convert")
    refused(MKLClassifier(bank()), X, np.arange(80).reshape(40, 2), "1d array|shape")


@pytest.mark.parametrize("make", [MKLClassifier, MKLRegressor])
def test_mismatched_lengths(data, make):
    X, y = data
    refused(make(bank()), X, y[:30], "inconsistent numbers of samples", "40", "30")
    refused(make(kw.function(spectrum)), ["abc", "abd", "bcd"], y[:2], "inconsistent", "3", "2")
    refused(make(bank()), X, y, "sample_weight", sample_weight=np.ones(39))
    refused(make(bank()), X, y, "negative|non-negative", sample_weight=-np.ones(40))
    refused(make(bank()), X, y, "NaN", sample_weight=np.full(40, np.nan))
    refused(make(bank()), X, y, "zero|two classes|positive", sample_weight=np.zeros(40))


def test_shapes_of_samples(data):
    X, y = data
    refused(MKLClassifier(bank()), X[:, 0], y, "2D array", r"reshape\(-1, 1\)")
    refused(MKLClassifier(bank()), list(X[:, 0]), y, "2D array", r"reshape\(-1, 1\)")
    refused(MKLClassifier(bank()), np.empty((0, 4)), [], "0 sample|at least|minimum")
    refused(MKLClassifier(bank()), np.empty((40, 0)), y, "0 feature")
    refused(MKLClassifier(bank()), np.stack([X, X]), y, "dim 3", "precomputed")
    refused(MKLClassifier(bank()), [X, X], y[:2], "precomputed")
    refused(MKLClassifier(kw.gaussian().on(7)), X, y, "no column 7", "4 features")
    refused(MKLClassifier(kw.gaussian()), ["abc", "abd", "bcd"], [0, 1, 1], "rows of numbers", "gaussian")
    refused(MKLClassifier(kw.gaussian()), np.array([["a", "b"], ["c", "d"]]), [0, 1], "convert|numeric")
    refused(MKLClassifier(kw.per_feature(spectrum)), ["abc", "abd"], [0, 1], "per_feature", "features")


def test_new_samples_that_do_not_fit(data, monkeypatch):
    monkeypatch.undo()
    X, y = data
    clf = MKLClassifier(bank()).fit(X, y)
    with pytest.raises(ValueError, match="3 features, but MKLClassifier is expecting 4"):
        clf.predict(X[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        clf.decision_function(np.full((1, 4), np.nan))
    stack = by_hand.raw_stack(X, X)
    clf = MKLClassifier("precomputed").fit(stack, y)
    for wrong in (stack[:9], stack[:, :5, :30], stack[0]):
        with pytest.raises(
            ValueError, match=r"\(10, n_new, 40\): one matrix a kernel, one column a training"
        ):
            clf.predict(wrong)
    with pytest.raises(ValueError, match="NaN"):
        clf.predict(np.full((10, 2, 40), np.nan))
    holder = MKLClassifier(kw.held(stack)).fit(np.arange(40)[:, None], y)
    with pytest.raises(ValueError, match="0 to 39, but X asks for sample 40"):
        holder.predict([[40]])
    with pytest.raises(ValueError, match="whole numbers"):
        holder.predict([[0.5]])


# ---- precomputed kernels -------------------------------------------------------------------------------------------


def test_matrices_that_are_not_square(data, stack):
    _, y = data
    clf = MKLClassifier("precomputed")
    refused(clf, stack[:, :, :30], y, "square", "40 x 30", "held")
    refused(clf, stack[:, :30, :30], y, "30 x 30", "y has 40", "held")
    refused(clf, [stack[0], stack[1][:30, :30]], y, "one shape", r"\(30, 30\)")
    refused(clf, stack[None], y, r"\(m, n, n\)")
    refused(clf, data[0], y, "square", "40 x 4")


def test_matrices_that_are_not_symmetric(data, stack):
    _, y = data
    crooked = stack.copy()
    crooked[3, 5, 9] += 0.5
    refused(MKLClassifier("precomputed"), crooked, y, "kernel 3", "not symmetric", r"\(S \+ S\.T\) / 2")
    refused(MKLClassifier("precomputed"), list(crooked), y, "kernel 3", "not symmetric")


def test_matrices_that_are_indefinite(data, stack):
    """The message counts the negative eigenvalues, gives the smallest, and names tools that exist."""
    _, y = data
    values, vectors = np.linalg.eigh(stack[2])
    values[0], values[1] = -0.3, -0.1
    bad = stack.copy()
    bad[2] = (vectors * values) @ vectors.T
    bad[2] = (bad[2] + bad[2].T) / 2
    with pytest.raises(ValueError, match="semi-definite") as caught:
        MKLClassifier("precomputed").fit(bad, y)
    message = str(caught.value)
    assert "kernel 2" in message
    assert "2 of 40" in message
    assert "-0.3" in message
    tools = re.findall(r"kernelweave\.(\w+)\.(\w+)", message)
    assert tools
    import kernelweave

    for room, tool in tools:
        assert hasattr(getattr(kernelweave, room), tool), (
            f"the message names {room}.{tool}, which is not there"
        )
    refused(MKLRegressor("precomputed"), bad, y.astype(float), "semi-definite")


def test_held_matrices_are_checked_as_well(data, stack, monkeypatch):
    _, y = data
    crooked, bad = stack.copy(), stack.copy()
    crooked[3, 5, 9] += 0.5
    values, vectors = np.linalg.eigh(stack[2])
    values[0] = -0.3
    bad[2] = (vectors * values) @ vectors.T
    index = np.arange(40)[:, None]
    with pytest.raises(ValueError, match="symmetric"):
        MKLClassifier(kw.held(crooked)).fit(index, y)
    with pytest.raises(ValueError, match="semi-definite"):
        MKLClassifier(kw.held((bad + bad.transpose(0, 2, 1)) / 2)).fit(index, y)
    with pytest.raises(ValueError, match="square"):
        kw.held(stack[:, :, :30])
    monkeypatch.undo()
    with pytest.raises(ValueError, match="asks for sample 40"):
        MKLClassifier(kw.held(stack)).fit(index + 1, y)


def test_slightly_indefinite_matrices_are_fine(data, stack, monkeypatch):
    """Rounding makes every singular kernel a little indefinite; that is no reason to refuse."""
    monkeypatch.undo()
    _, y = data
    low = stack[4] - 1e-12 * np.eye(40)
    assert np.linalg.eigvalsh(low)[0] < 0
    assert MKLClassifier("precomputed").fit([low, stack[2]], y).status_ == "converged"


def test_matrices_that_are_not_finite_or_not_numbers(data, stack):
    _, y = data
    broken = stack.copy()
    broken[1, 2, 3] = np.nan
    refused(MKLClassifier("precomputed"), broken, y, "kernel 1", "NaN")
    broken[1, 2, 3] = np.inf
    refused(MKLClassifier("precomputed"), broken, y, "kernel 1", "infinite")
    refused(MKLClassifier("precomputed"), [np.full((40, 40), "a")], y, "not numeric")
    refused(MKLClassifier("precomputed"), stack * 1j, y, "not numeric|complex")


def test_a_stack_where_kernels_are_expected(data, stack):
    X, y = data
    refused(MKLClassifier(stack), X, y, r"kernels\.held\(stack\)", "sample indices as X")


# ---- banks ---------------------------------------------------------------------------------------------------------


def test_empty_banks(data):
    X, y = data
    refused(MKLClassifier([]), X, y, "bank is empty", "at least one")
    refused(MKLClassifier(kw.Stack()), X, y, "bank is empty")
    refused(MKLClassifier("precomputed"), [], y, "none at all|empty")
    refused(MKLClassifier("precomputed"), np.empty((0, 40, 40)), y, "empty")


def test_duplicate_names(data):
    X, y = data
    refused(
        MKLClassifier(kw.gaussian(1.0) + kw.gaussian(1.0)), X, y, r"same name: 'gaussian\(width=1\)'", "named"
    )
    refused(MKLClassifier(kw.linear().named("a") + kw.gaussian().named("a")), X, y, "same name: 'a'")


@pytest.mark.parametrize("what", [3, object(), kw.Kernel, {"a": 1}])
def test_things_that_are_no_kernels(data, what):
    refused(MKLClassifier(what), *data, "kernels? must be|kernel")


def test_unknown_preset(data):
    refused(MKLClassifier("stpmk"), *data, "unknown preset 'stpmk'", "did you mean 'stpmkl'")


def test_parameters_of_kernels_set_afterwards(data, monkeypatch):
    """A search can put a bad value into a kernel that was made with a good one."""
    monkeypatch.undo()
    clf = MKLClassifier(kw.gaussian(1.0)).set_params(kernels__width=-1.0)
    with pytest.raises(ValueError, match="width of a gaussian kernel must be"):
        clf.fit(*data)


# ---- parameters ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [MKLClassifier, MKLRegressor])
@pytest.mark.parametrize("name", ["C", "tol", "max_seconds"])
@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "1", True])
def test_numbers_out_of_range(data, make, name, value):
    refused(make(bank(), **{name: value}), *data, rf"^{name} must be a finite number > 0")


@pytest.mark.parametrize("value", [0, -3, 2.5, "10"])
def test_max_iter(data, value):
    refused(MKLClassifier(bank(), max_iter=value), *data, "max_iter must be a whole number >= 1")


@pytest.mark.parametrize(
    ("parameter", "value", "words"),
    [
        ("solver", "levle", ["unknown solver 'levle'", "did you mean 'level'", "simplemkl"]),
        ("solver", "Newton", ["did you mean 'newton'"]),
        ("solver", 7, ["solver must be a name"]),
        ("loss", "hing", ["unknown loss 'hing'", "did you mean 'hinge'"]),
        ("loss", None, ["loss must be a name"]),
        ("norm", "l3x", ["unknown norm"]),
        ("norm", "unifrom", ["did you mean 'uniform'"]),
        ("norm", 0.5, ["p > 1", "0.5"]),
        ("norm", -1, ["p > 1"]),
        ("norm", norms.Lp(0.5), ["p > 1"]),
        ("norm", norms.Fixed([1.0, 2.0]), ["2 weights", "10 kernels"]),
        ("norm", norms.Entropy(-1.0), ["smoothing > 0"]),
        ("normalize", "max", ["'trace', 'cosine' or None"]),
        ("storage", "disk", ["auto", "family", "lowrank"]),
        ("dtype", "float16", ["float64 or float32"]),
        ("dtype", "double trouble", ["float64 or float32"]),
        ("memory_budget", "a lot", ["memory_budget", "2GB"]),
        ("multi_class", "crammer", ["multi_class must be one of joint, shared, ovr"]),
        ("class_weight", "balance", ["class_weight"]),
        ("class_weight", {1: -2.0}, ["class weights must be"]),
    ],
)
def test_unknown_options(data, parameter, value, words):
    refused(MKLClassifier(bank(), **{parameter: value}), *data, *words)


def test_parameters_of_losses(data):
    refused(MKLClassifier(bank(), loss=losses.HuberHinge(0.0)), *data, "width > 0")
    refused(MKLRegressor(bank(), loss=losses.EpsilonInsensitive(-0.1)), *data, "epsilon >= 0")


@pytest.mark.parametrize(
    ("options", "words", "fitting"),
    [
        (
            {"solver": "simplemkl", "norm": 2},
            ["'simplemkl' needs norm='l1'", "l2"],
            ["newton", "lp_analytic"],
        ),
        ({"solver": "level", "norm": "uniform"}, ["'level' needs norm='l1'"], ["fixed_weights"]),
        ({"solver": "lp_analytic"}, ["closed-form weights"], ["newton", "level", "silp"]),
        ({"solver": "lbfgs", "norm": 2}, ["smooth loss"], ["newton", "lp_analytic"]),
        ({"solver": "lbfgs", "loss": "logistic"}, ["norm with a gradient"], ["newton"]),
        ({"solver": "newton", "norm": "max"}, ["convex in the weights"], ["lp_analytic"]),
        ({"solver": "fixed_weights"}, ["'uniform'"], ["newton"]),
        ({"solver": "subgradient", "norm": "entropy"}, ["projected"], ["newton"]),
        ({"solver": solvers.registry["silp"](), "norm": 1.5}, ["'silp' needs norm='l1'"], ["newton"]),
    ],
)
def test_combinations_that_do_not_fit(data, options, words, fitting):
    """What is missing is said, and every solver that is named as fitting does fit."""
    X, y = data
    refused(MKLClassifier(bank(), **options), X, y, *words, "Solvers that fit: ", *fitting)
    with pytest.raises(ValueError, match="Solvers that fit") as caught:
        MKLClassifier(bank(), **options).fit(X, y)
    for name in re.findall(r"'(\w+)'", str(caught.value).split("Solvers that fit:")[1]):
        MKLClassifier(bank(), **{**options, "solver": name})._plan()


def test_losses_of_the_other_task(data):
    X, y = data
    refused(MKLRegressor(bank(), loss="hinge"), X, y, "not for regression", "squared", "epsilon_insensitive")
    refused(
        MKLClassifier(bank(), loss="epsilon_insensitive"), X, y, "not for classification", "hinge", "logistic"
    )


# ---- sparse --------------------------------------------------------------------------------------------------------


def test_sparse_where_a_kernel_needs_dense_samples(data):
    X, y = data
    for kernel in (kw.laplacian(1.0), kw.chi2(), kw.tanimoto(), kw.laplacian(1.0).on([0, 1])):
        spec = kw.gaussian() + kernel
        refused(MKLClassifier(spec), sp.csr_array(np.abs(X)), y, "does not take sparse input", r"toarray\(\)")


def test_kernels_that_need_counts(data, monkeypatch):
    monkeypatch.undo()
    with pytest.raises(ValueError, match="non-negative"):
        MKLClassifier(kw.chi2()).fit(*data)


def test_not_fitted():
    from sklearn.exceptions import NotFittedError

    for method in ("predict", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(MKLClassifier(bank()), method)(np.zeros((1, 4)))
    for options in ({}, {"return_std": True}):
        with pytest.raises(NotFittedError):
            MKLRegressor(bank()).predict(np.zeros((1, 4)), **options)


def test_a_kernel_that_takes_no_sparse_samples_is_named(data):
    X, y = data
    refused(
        MKLClassifier(kw.linear() + kw.periodic(1.0)), sp.csr_matrix(X), y,
        r"'periodic.*' does not take sparse input \(1 of 2", "densify",
    )  # fmt: skip


def test_coefficients_of_columns_before_a_fit():
    with pytest.raises(AttributeError, match="once the estimator is fitted"):
        MKLClassifier(kw.linear()).coef_  # noqa: B018
