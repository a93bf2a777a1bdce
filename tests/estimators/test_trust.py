"""What a fit says about itself is true: status, warnings, certificate, what it can do, and what a failed fit leaves."""

from __future__ import annotations

import re
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    NoisyLabelMKLClassifier,
    SimilarityClassifier,
    losses,
    mkl_path,
    norms,
)
from kernelweave import kernels as kw
from kernelweave.exceptions import (
    CertificateError,
    KernelWeaveConvergenceWarning,
    KernelWeaveWarning,
    NotFiniteError,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def data(rng):
    X = rng.normal(size=(40, 3))
    return X, (X[:, 0] > 0).astype(int)


# ---- the final certificate decides ---------------------------------------------------------------------------------


def test_single_precision_goes_on_until_the_certificate_in_double_precision_agrees(rng):
    X = rng.normal(size=(60, 8))
    fit = MKLRegressor(loss="epsilon_insensitive", norm="uniform", C=1e6, dtype="float32").fit(
        X, np.sin(X[:, 0])
    )
    assert fit.status_ == "converged"
    assert fit.certificate_.relative_gap <= 1e-3


def test_a_solver_that_flatters_itself_is_not_believed(data, monkeypatch):
    """Caches that promise a gap of zero do not make a fit converged."""
    from dataclasses import replace

    from kernelweave.banks import Gram
    from kernelweave.problems import MKLProblem
    from kernelweave.solvers import registry

    honest, last, over = MKLProblem.certificate, Gram.judged, []

    def flattering(self, point):
        judged = honest(self, point)
        return judged if over else replace(judged, dual=judged.primal)

    monkeypatch.setattr(MKLProblem, "certificate", flattering)
    # the last certificate alone asks the bank for all that it reads
    monkeypatch.setattr(Gram, "judged", lambda *given: over.append(True) or last(*given))

    class Again(registry["silp"]):
        def init(self, *given):
            over.clear()
            return super().init(*given)

    with pytest.warns(
        KernelWeaveConvergenceWarning, match=r"recomputed from the kernels.* scale the features"
    ):
        fit = MKLClassifier(solver=Again()).fit(*data)
    assert fit.status_ == "imprecise"
    assert fit.certificate_.relative_gap > 1e-3


class Lying(losses.Hinge):
    """Its conjugate does not belong to its value."""

    def conjugate(self, y, u):
        return super().conjugate(y, u) - 1.0


class LyingNorm(norms.L1):
    """Its conjugate is a tenth of what it should be."""

    def conjugate(self, s):
        return 0.1 * super().conjugate(s)


@pytest.mark.parametrize("solver", ["silp", "auto"])
@pytest.mark.parametrize(("parameter", "name"), [("loss", "Lying"), ("norm", "LyingNorm")])
def test_bounds_that_cross_are_an_error_that_names_the_culprit(data, parameter, name, solver):
    what = {"loss": Lying(), "norm": LyingNorm()}[parameter]
    with pytest.raises(CertificateError, match=rf"lies above the objective .* {name}\(\)"):
        MKLClassifier(**{parameter: what}, solver=solver, max_iter=30).fit(*data)


def test_one_problem_that_did_not_converge_is_the_status_of_the_fit(rng):
    """One against the rest: the status of the fit is the first that is not ``converged``."""
    X = rng.normal(size=(60, 3))
    y = rng.integers(0, 3, 60)
    with pytest.warns(KernelWeaveConvergenceWarning):
        fit = MKLClassifier(multi_class="ovr", max_iter=1, tol=1e-9, solver="silp").fit(X, y)
    assert fit.status_ == "max_iter"


# ---- numbers that are not finite ----------------------------------------------------------------------------------

KERNELS = {
    "linear": kw.linear(),
    "cosine": kw.cosine(),
    "polynomial": kw.polynomial([2]),
    "laplacian": kw.laplacian(1.0),
    "random_fourier": kw.random_fourier(1.0, 8),
    "nystroem": kw.nystroem(kw.gaussian(1.0), 5),
    "linear on a column": kw.linear().on("a"),
    "gaussian on columns": kw.gaussian(1.0).on(["a", "b"]),
}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", KERNELS)
def test_samples_that_are_not_finite_are_refused_by_every_kernel(rng, name, bad):
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    frame["word"] = ["u", "v"] * 20
    y = (frame.a > 0).astype(int)
    bank = KERNELS[name] if "on" in name.split() else KERNELS[name].on(["a", "b"])
    bank = bank + kw.function(lambda p, q: float(p == q), name="same").on("word")
    spoiled = frame.assign(a=frame.a.where(frame.index != 3, bad))
    with pytest.raises(ValueError, match="NaN or infinity"):
        MKLClassifier(bank).fit(spoiled, y)
    fit = MKLClassifier(bank).fit(frame, y)
    with pytest.raises(ValueError, match=r"NaN or infinity|not finite"):
        fit.predict(spoiled)


def test_sparse_samples_that_are_not_finite_are_refused(data):
    X, y = data
    fit = MKLClassifier(kw.linear()).fit(sp.csr_matrix(X), y)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        MKLClassifier(kw.linear()).fit(sp.csr_matrix(X), y)
    with pytest.raises(ValueError, match="NaN"):
        fit.predict(sp.csr_matrix(X))


def test_a_decision_that_is_not_finite_is_never_a_label(data):
    X, y = data
    fit = MKLClassifier(kw.polynomial([3])).fit(X, y)
    with pytest.raises(NotFiniteError, match="row 1 is not finite"):
        fit.predict(np.vstack([X[:1], 1e120 * X[:1]]))


@pytest.mark.parametrize("norm", ["uniform", 4.0, "l1"])
def test_single_precision_does_not_overflow(rng, norm):
    X = rng.normal(size=(30, 3)) * 1e7
    y = (X[:, 0] > 0).astype(int)
    bank = kw.polynomial([1, 2, 3])
    single = MKLClassifier(bank, norm=norm, loss="squared_hinge", dtype="float32").fit(X, y)
    double = MKLClassifier(bank, norm=norm, loss="squared_hinge").fit(X, y)
    np.testing.assert_array_equal(single.predict(X), double.predict(X))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda X, y: MKLClassifier().fit(X * 1e200, y),
        lambda X, y: MKLClassifier(kw.linear()).fit(X * 1e200, y),
        lambda X, y: MKLClassifier(kw.gaussian(1e-300)).fit(X, y),
        lambda X, y: MKLClassifier(kw.gaussian(1e300)).fit(X, y),
        lambda X, y: MKLClassifier(norm=norms.Entropy(np.inf)).fit(X, y),
        lambda X, y: MKLRegressor().fit(X, X[:, 0] * 1e200),
        lambda X, y: MKLClassifier(center="no").fit(X, y),
        lambda X, y: MKLClassifier(fit_intercept="yes").fit(X, y),
    ],
)
def test_numbers_out_of_reach_are_a_sentence_with_a_way_out(data, make):
    with pytest.raises(ValueError, match=r"scale|choose a width|infinitely|True or False") as caught:
        make(*data)
    assert type(caught.value) is not np.linalg.LinAlgError


# ---- a fit that raises leaves the old model -----------------------------------------------------------------------


def _interrupting(row):
    raise RuntimeError("enough")


@pytest.mark.parametrize(
    "make", [MKLClassifier, MKLClassifierCV, NoisyLabelMKLClassifier], ids=lambda make: make.__name__
)
def test_a_refused_fit_leaves_the_old_model(data, make):
    X, y = data
    fit = make().fit(X, y)
    before, state = fit.predict(X), dict(vars(fit))
    spoiled = X.copy()
    spoiled[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        fit.fit(spoiled, np.where(y, "a", "b"))
    assert vars(fit).keys() == state.keys()
    assert all(vars(fit)[name] is state[name] for name in state)
    np.testing.assert_array_equal(fit.predict(X), before)


def test_a_fit_that_a_callback_aborts_leaves_the_old_model(data):
    X, y = data
    fit = MKLClassifier().fit(X, y)
    before = fit.predict(X)
    fit.set_params(callback=_interrupting)
    with pytest.raises(RuntimeError, match="enough"):
        fit.fit(X[:, :2], np.where(y, "a", "b"))
    np.testing.assert_array_equal(fit.predict(X), before)


def test_a_similarity_that_is_refused_leaves_the_old_model(rng):
    Z = rng.normal(size=(30, 2))
    S, y = Z @ Z.T, (Z[:, 0] > 0).astype(int)
    fit = SimilarityClassifier(method="denoise").fit(S, y)
    before = fit.predict(S)
    with pytest.raises(ValueError, match=r"NaN|infinite"):
        fit.fit(np.full((30, 30), np.nan), np.where(y, "a", "b"))
    np.testing.assert_array_equal(fit.predict(S), before)


def test_nothing_is_fitted_where_the_first_fit_is_refused():
    fresh = MKLClassifier()
    with pytest.raises(ValueError, match="NaN"):
        fresh.fit(np.full((4, 1), np.nan), [0, 1, 0, 1])
    assert not hasattr(fresh, "classes_")


# ---- fitted state decides ------------------------------------------------------------------------------------------


def test_what_was_fitted_decides_whether_there_are_probabilities(data):
    hinge = MKLClassifier().fit(*data).set_params(loss="logistic")
    assert not hasattr(hinge, "predict_proba")
    logistic = MKLClassifier(loss="logistic").fit(*data).set_params(loss="hinge")
    assert logistic.predict_proba(data[0]).shape == (40, 2)
    assert hasattr(MKLClassifier(loss="logistic"), "predict_proba")


def test_the_entropy_norm_can_be_recomputed_from_fitted_attributes(data):
    X, y = data
    Z = np.random.default_rng(1).normal(size=(3, 40, 4))
    stack = [z @ z.T for z in Z]
    fit = MKLClassifier("precomputed", norm="entropy", normalize=None, C=0.7).fit(stack, y)
    beta, d = fit.dual_coef_, fit.weights_
    s = np.array([beta @ K @ beta for K in stack])
    f = sum(weight * (K @ beta) for weight, K in zip(d, stack, strict=True)) + fit.intercept_
    sign = np.where(y == 1, 1.0, -1.0)
    value = (
        0.5 * d @ s + 0.5 * fit.lam_ * np.sum(d * np.log(3 * d)) + 0.7 * np.sum(np.maximum(0, 1 - sign * f))
    )
    assert value == pytest.approx(fit.certificate_.primal, rel=1e-9)
    ovr = MKLClassifier(norm="entropy", multi_class="ovr").fit(X, np.arange(40) % 3)
    assert ovr.lam_.shape == (3,)
    assert not hasattr(MKLClassifier().fit(X, y), "lam_")


def test_a_budget_is_not_lost_where_there_are_several_classes(rng):
    X = rng.normal(size=(60, 3))
    y = rng.integers(0, 3, 60)
    budgeted = MKLClassifier(loss=losses.BudgetedHinge(0.9)).fit(X, y)
    assert isinstance(budgeted.loss_, losses.BudgetedHinge)
    each = MKLClassifier(loss=losses.BudgetedHinge(0.9), multi_class="shared").fit(X, y)
    assert budgeted.certificate_.primal == pytest.approx(each.certificate_.primal, rel=1e-9)


# ---- ill-scaled problems -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [1e5, 1e6, 1e7, 1e8])
@pytest.mark.parametrize("storage", ["auto", "dense", "lazy"])
def test_centring_does_not_feel_the_origin(rng, offset, storage):
    Z = rng.normal(size=(60, 3))
    y = np.sin(Z[:, 0])
    bank = kw.linear() + kw.gaussian([1.0, 2.0]) + kw.laplacian(2.0).on([0])
    here = MKLRegressor(bank, center=True, C=10.0, storage=storage).fit(Z, y)
    there = MKLRegressor(bank, center=True, C=10.0, storage=storage).fit(Z + offset, y)
    assert there.certificate_.primal == pytest.approx(here.certificate_.primal, rel=2e-3)
    np.testing.assert_allclose(there.predict(Z + offset), here.predict(Z), atol=0.05)
    alone = [there.predict(Z[i : i + 1] + offset)[0] for i in range(5)]
    np.testing.assert_allclose(alone, there.predict(Z + offset)[:5], atol=1e-6)


def test_centring_says_where_digits_are_gone(rng):
    X = rng.normal(size=(60, 3)) + 1e6
    with pytest.warns(KernelWeaveWarning, match="digits"):
        MKLRegressor(kw.rational_quadratic(1e6), center=True, storage="dense").fit(X, np.sin(X[:, 0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", KernelWeaveWarning)
        # features are centred themselves, polynomials are computed around the mean, and a constant column has nothing
        # to lose
        MKLRegressor(kw.polynomial([2]), center=True).fit(X, np.sin(X[:, 0]))
        MKLRegressor(kw.polynomial([2]), center=True, storage="dense").fit(X, np.sin(X[:, 0]))
        MKLRegressor(kw.per_feature(kw.linear()), center=True).fit(
            np.column_stack([X, np.ones(60)]), X[:, 1] - 1e6
        )


@pytest.mark.parametrize(("normalize", "share"), [("trace", np.mean), ("cosine", np.min)])
def test_the_digits_that_centring_leaves_are_those_of_the_diagonal(rng, normalize, share):
    """Of its mean, or of the sample with the least left where every sample is brought to length one."""
    X = rng.normal(size=(40, 2)) * np.geomspace(0.1, 10.0, 40)[:, None]
    t = ((X[:, None] - X[None]) ** 2).sum(axis=-1) / (2 * 1e6**2)
    H = np.eye(40) - 1.0 / 40
    left = float(share(np.diagonal(-H @ (t / (1 + t)) @ H)))  # centring takes the constant out of 1 / (1 + t)
    with pytest.warns(KernelWeaveWarning, match="of its 16 digits") as caught:
        MKLRegressor(kw.rational_quadratic(1e6), center=True, normalize=normalize, storage="dense").fit(
            X, X[:, 0]
        )
    told = next(
        re.search(r"leaves (\S+) of kernel .* about (\d+) of its 16", str(one.message))
        for one in caught
        if "digits" in str(one.message)
    )
    assert float(told[1]) == pytest.approx(left, rel=0.2)
    assert abs(int(told[2]) - (np.log10(left) + 16)) <= 1


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize(("make", "loss"), [(MKLRegressor, "squared"), (MKLClassifier, "logistic")])
@pytest.mark.parametrize("norm", ["l1", 2.0])
def test_kernels_of_raw_data_converge(rng, scale, make, loss, norm):
    X = rng.normal(size=(50, 4))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=50)
    target = y if make is MKLRegressor else (y > 0).astype(int)
    fit = make(loss=loss, normalize=None, norm=norm).fit(X * scale, target)
    assert fit.status_ == "converged"


def test_kernels_without_any_size_converge():
    """A constant column: distances of zero, a linear kernel of ones."""
    y = np.array([0, 1, 1, 0, 1, 0])
    for loss in ("hinge", "squared_hinge", "logistic"):
        for norm in ("l1", 2.0, "max", "entropy"):
            for constant in (0.0, 1.0, 1000003.0):
                fit = MKLClassifier(loss=loss, norm=norm).fit(np.full((6, 1), constant), y)
                assert fit.status_ == "converged", (loss, norm, constant)


def test_fits_in_threads_do_not_disturb_each_other(data):
    X, y = data
    alone = {C: MKLClassifier(C=C).fit(X, y).certificate_.primal for C in (0.1, 1.0, 10.0)}
    together = {}
    threads = [
        threading.Thread(target=lambda C=C: together.update({C: MKLClassifier(C=C).fit(X, y)})) for C in alone
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for C, value in alone.items():
        assert together[C].certificate_.primal == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_kernels_of_one_feature_each_take_few_iterations(rng, C):
    """Fewer kernels than samples, each of rank one: the objective is made of planes."""
    X = rng.normal(size=(200, 40))
    y = (X[:, :5].sum(axis=1) + 0.5 * rng.normal(size=200) > 0).astype(int)
    fit = MKLClassifier(kw.per_feature(kw.linear()), C=C).fit(X, y)
    assert fit.status_ == "converged"
    assert fit.n_iter_ <= 120


BLOCKS = np.stack([np.eye(30) + 0.2, np.eye(30) - 0.1])
SHORT = {"max_iter": 1, "tol": 1e-12}
CUT_SHORT = {
    "classifier": lambda X, y: MKLClassifier(**SHORT).fit(X, y > 0),
    "one-vs-rest": lambda X, y: MKLClassifier(multi_class="ovr", **SHORT).fit(X, np.digitize(y, [-0.5, 0.5])),
    "in a pipeline": lambda X, y: make_pipeline(StandardScaler(), MKLClassifier(**SHORT)).fit(X, y > 0),
    "search": lambda X, y: MKLClassifierCV(Cs=[1.0], cv=2, **SHORT).fit(X, y > 0),
    "regression": lambda X, y: MKLRegressor(**SHORT).fit(X, y),
    "evidence": lambda X, y: MKLRegressorCV(criterion="reml", max_seconds=1e-9).fit(X, y),
    "noisy labels": lambda X, y: NoisyLabelMKLClassifier(method="stochastic", **SHORT).fit(X, y > 0),
    "path": lambda X, y: mkl_path(X, y > 0, Cs=[1.0, 10.0], **SHORT),
    "similarities": lambda X, y: SimilarityClassifier(method="eskl", **SHORT).fit(BLOCKS, y > 0),
}


@pytest.mark.parametrize("what", CUT_SHORT)
def test_warnings_point_at_the_line_that_called(what):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CUT_SHORT[what](X, X[:, 0] + 0.3 * rng.normal(size=30))
    told = [w for w in caught if issubclass(w.category, KernelWeaveConvergenceWarning)]
    assert told
    assert {w.filename for w in told} == {__file__}
