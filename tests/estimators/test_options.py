"""Options of the estimators: weights, limits, restarts, messages, storage, normalisation, probabilities."""

from __future__ import annotations

import os
import time
import warnings

import numpy as np
import pytest

import forked
from kernelweave import MKLClassifier, MKLRegressor
from kernelweave import kernels as kw
from kernelweave.exceptions import KernelWeaveConvergenceWarning, MemoryBudgetError

from . import by_hand
from .data import bank


@pytest.fixture(scope="module")
def binary():
    return by_hand.moons(80, noise=0.5)


# ---- class weights -------------------------------------------------------------------------------------------------


def test_class_weights_are_sample_weights(binary):
    X, y = binary
    X, y = X[:60], np.where(np.arange(60) % 5 == 0, "rare", "common")
    rare = y == "rare"
    for class_weight, weight in (
        ({"rare": 4.0, "common": 0.5}, np.where(rare, 4.0, 0.5)),
        ({"rare": 3.0}, np.where(rare, 3.0, 1.0)),
        ("balanced", np.where(rare, 60 / (2 * 12), 60 / (2 * 48))),
    ):
        by_class = MKLClassifier(bank(), class_weight=class_weight).fit(X, y)
        by_sample = MKLClassifier(bank()).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(by_class.dual_coef_, by_sample.dual_coef_)
        both = MKLClassifier(bank(), class_weight={"rare": 2.0}).fit(X, y, sample_weight=weight)
        product = MKLClassifier(bank()).fit(X, y, sample_weight=weight * np.where(rare, 2.0, 1.0))
        np.testing.assert_allclose(both.dual_coef_, product.dual_coef_)


def test_class_weights_move_the_decision(binary):
    X, y = binary
    share = [np.mean(MKLClassifier(bank(), class_weight={1: w}, C=0.1).fit(X, y).predict(X) == 1) for w in (0.3, 1.0, 3.0)]  # fmt: skip
    assert share[0] < share[1] < share[2]


def test_class_weights_with_several_classes():
    X, y = by_hand.blobs(60)
    weight = np.array([1.0, 2.0, 0.5])
    by_class = MKLClassifier(bank(), class_weight=dict(enumerate(weight))).fit(X, y)
    by_sample = MKLClassifier(bank()).fit(X, y, sample_weight=weight[y])
    np.testing.assert_allclose(by_class.dual_coef_, by_sample.dual_coef_)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_a_class_without_weight(class_weight):
    X, y = by_hand.blobs(60)
    weight = (y != 2).astype(float)
    clf = MKLClassifier(kw.gaussian([1.0, 2.0]), class_weight=class_weight).fit(X, y, sample_weight=weight)
    assert np.all(np.isfinite(clf.dual_coef_))
    assert set(clf.predict(X)) == {0, 1}
    two = MKLClassifier(kw.gaussian([1.0, 2.0]), class_weight=class_weight, tol=1e-3).fit(
        X[y != 2], y[y != 2]
    )
    assert np.mean(clf.predict(X[y != 2]) == two.predict(X[y != 2])) > 0.95


# ---- probabilities -------------------------------------------------------------------------------------------------


def test_probabilities_of_two_classes(binary):
    X, y = binary
    clf = MKLClassifier(bank(), loss="logistic", norm=2).fit(X, y)
    found = clf.predict_proba(X)
    assert found.shape == (80, 2)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(found[:, 1], 1 / (1 + np.exp(-clf.decision_function(X))))
    assert np.array_equal(clf.classes_[np.argmax(found, axis=1)], clf.predict(X))
    # the intercept makes the mean probability right on the training samples
    assert found[:, 1].mean() == pytest.approx(np.mean(y > 0), abs=1e-3)


@pytest.mark.parametrize("shared", [False, True])
def test_probabilities_of_several_classes(shared):
    X, y = by_hand.blobs(60)
    clf = MKLClassifier(bank(), loss="logistic", norm=2, multi_class="shared" if shared else "ovr").fit(X, y)
    found = clf.predict_proba(X)
    assert found.shape == (60, 3)
    assert np.all(found >= 0)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.array_equal(np.argmax(found, axis=1), clf.predict(X))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "squared", "huber_hinge"])
def test_no_probabilities_for_other_losses(binary, loss):
    clf = MKLClassifier(bank(), loss=loss)
    assert not hasattr(clf, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        clf.fit(*binary).predict_proba(binary[0])
    assert "CalibratedClassifierCV" in f"{caught.value} {caught.value.__cause__}"


# ---- limits --------------------------------------------------------------------------------------------------------


def test_max_iter(binary):
    X, y = binary
    clf = MKLClassifier(bank(), solver="level", tol=1e-8, max_iter=3)
    with pytest.warns(
        KernelWeaveConvergenceWarning,
        match=r"iterations allowed.*relative gap.*tol=1e-08.* 3 iterations of 'level'.* raise max_iter or max_seconds",
    ):
        clf.fit(X, y)
    assert clf.status_ == "max_iter"
    assert clf.n_iter_ == len(clf.trace_) == 3
    assert clf.certificate_.relative_gap > 1e-8
    assert clf.predict(X).shape == (80,)
    full = MKLClassifier(bank(), tol=1e-6).fit(X, y).certificate_
    assert clf.certificate_.dual <= full.primal  # not converged, yet valid
    assert clf.certificate_.primal >= full.dual


def test_max_seconds(binary):
    X, y = binary
    clf = MKLClassifier(
        bank(), solver="silp", tol=1e-12, max_seconds=0.05, callback=lambda row: time.sleep(0.02)
    )
    began = time.perf_counter()
    with pytest.warns(KernelWeaveConvergenceWarning, match=r"time allowed.* raise max_iter or max_seconds"):
        clf.fit(X, y)
    assert 0.04 <= time.perf_counter() - began < 5  # a tenth may be kept for the certificate
    assert clf.status_ == "max_seconds"


def test_the_class_is_named_where_one_of_several_did_not_converge():
    X, y = by_hand.blobs(60)
    clf = MKLClassifier(bank(), solver="silp", tol=1e-9, max_iter=2, multi_class="ovr")
    with pytest.warns(KernelWeaveConvergenceWarning) as caught:
        clf.fit(X, np.array(list("abc"))[y])
    assert [str(w.message)[:11] for w in caught] == ["class 'a': ", "class 'b': ", "class 'c': "]
    assert clf.status_ == "max_iter"


def test_no_warning_on_success(binary):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for solver in ("auto", "level", "simplemkl"):
            assert MKLClassifier(bank(), solver=solver).fit(*binary).status_ == "converged"


def test_keyboard_interrupt_keeps_the_best_point(binary):
    def interrupt(row):
        if row["iteration"] == 2:
            raise KeyboardInterrupt

    clf = MKLClassifier(bank(), solver="level", tol=1e-9, callback=interrupt)
    with pytest.warns(KernelWeaveConvergenceWarning, match="interrupted from the keyboard"):
        clf.fit(*binary)
    assert clf.status_ == "interrupted"
    assert clf.n_iter_ == 2
    assert clf.score(*binary) > 0.7


# ---- callback and messages -----------------------------------------------------------------------------------------


def test_callback_sees_every_row(binary):
    rows = []
    clf = MKLClassifier(bank(), solver="level", callback=rows.append).fit(*binary)
    # the loop ends before it asks after the row that reached the tolerance
    assert len(rows) >= len(clf.trace_) - 1 > 2
    assert list(rows[0]) == list(clf.trace_.columns)
    np.testing.assert_allclose([row["primal"] for row in rows], clf.trace_["primal"][: len(rows)])


def test_callback_can_stop(binary):
    clf = MKLClassifier(bank(), solver="level", tol=1e-9, callback=lambda row: row["relative_gap"] < 0.1)
    with pytest.warns(KernelWeaveConvergenceWarning, match="callback asked to stop"):
        clf.fit(*binary)
    assert clf.status_ == "stopped"
    assert 1e-9 < clf.certificate_.relative_gap < 0.1


def test_silence_by_default(binary, capfd):
    MKLClassifier(bank()).fit(*binary).predict(binary[0])
    assert capfd.readouterr() == ("", "")


def test_progress_bar_goes_to_stderr(binary, capfd):
    MKLClassifier(bank(), solver="level", verbose=1).fit(*binary)
    out, err = capfd.readouterr()
    assert out == ""
    assert "level" in err
    assert "gap" in err
    assert "passes" in err
    assert "100%" in err or "█" in err or "#" in err


def test_a_line_an_iteration(binary, capfd):
    clf = MKLClassifier(bank(), solver="level", verbose=2).fit(*binary)
    lines = capfd.readouterr().out.strip().splitlines()
    assert len(lines) == clf.n_iter_
    assert all("primal" in line and "dual" in line and "gap" in line for line in lines)


# ---- restarts ------------------------------------------------------------------------------------------------------


def test_warm_start(binary):
    X, y = binary
    options = {"solver": "level", "tol": 1e-5}
    clf = MKLClassifier(bank(), warm_start=True, **options).fit(X, y)
    cold = clf.n_iter_
    assert cold > 4
    again = clf.fit(X, y)
    assert again.n_iter_ < 0.5 * cold
    assert again.certificate_.relative_gap <= 1e-5
    warm = clf.set_params(C=1.02).fit(X, y)
    fresh = MKLClassifier(bank(), C=1.02, **options).fit(X, y)
    assert warm.n_iter_ < 0.8 * fresh.n_iter_
    assert warm.certificate_.primal == pytest.approx(fresh.certificate_.primal, rel=2e-5)
    restarted = clf.set_params(warm_start=False).fit(X, y)
    assert restarted.n_iter_ == fresh.n_iter_


@pytest.mark.parametrize("shared", [False, True])
def test_warm_start_with_several_classes(shared):
    X, y = by_hand.blobs(60)
    clf = MKLClassifier(
        bank(), solver="level", tol=1e-5, warm_start=True, multi_class="shared" if shared else "ovr"
    ).fit(X, y)
    cold = clf.n_iter_
    assert clf.fit(X, y).n_iter_ < cold
    assert all(c.relative_gap <= 1e-5 for c in clf.certificates_)


def test_warm_start_on_other_data_starts_afresh(binary):
    X, y = binary
    clf = MKLClassifier(bank(), warm_start=True, multi_class="ovr").fit(X, y)
    fewer = clf.fit(X[:50], y[:50])
    np.testing.assert_allclose(fewer.weights_, MKLClassifier(bank()).fit(X[:50], y[:50]).weights_)
    clf.set_params(kernels=kw.gaussian([0.5, 1.0]))
    assert clf.fit(X[:50], y[:50]).weights_.shape == (2,)
    A, labels = by_hand.blobs(50, features=4)
    assert clf.fit(A, labels).weights_.shape == (3, 2)
    assert clf.fit(X[:50], y[:50]).weights_.shape == (2,)
    assert clf.set_params(multi_class="shared").fit(A, labels).weights_.shape == (2,)
    assert clf.set_params(multi_class="joint").fit(A, labels).weights_.shape == (2,)
    assert clf.certificate_.relative_gap <= 1e-3


class Stop(Exception):
    pass


def stop_at(iteration):
    def callback(row):
        if row["iteration"] == iteration:
            raise Stop

    return callback


def test_checkpoint_resumes(binary, tmp_path):
    X, y = binary
    path = tmp_path / "fit.npz"
    options = {"solver": "level", "tol": 1e-6, "checkpoint": path}
    whole = MKLClassifier(bank(), solver="level", tol=1e-6).fit(X, y)
    half = max(3, whole.n_iter_ // 2)
    with pytest.raises(Stop):
        MKLClassifier(bank(), callback=stop_at(half), **options).fit(X, y)
    assert path.exists()
    resumed = MKLClassifier(bank(), **options).fit(X, y)
    assert resumed.certificate_.relative_gap <= 1e-6
    assert resumed.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2e-6)
    # the table goes on where it stopped
    assert list(resumed.trace_["iteration"]) == list(range(1, resumed.n_iter_ + 1))
    assert resumed.n_iter_ > half
    assert np.all(np.diff(resumed.trace_["seconds"]) > 0)
    # resuming from the end is soon over
    again = MKLClassifier(bank(), **options).fit(X, y)
    assert again.n_iter_ - resumed.n_iter_ < 0.5 * whole.n_iter_


def test_checkpoint_of_a_killed_process(tmp_path):
    """A process that dies without any chance to clean up has left a file to resume from."""
    path = tmp_path / "fit.npz"
    script = f"""
        import os
        from kernelweave import MKLClassifier
        from tests.estimators.by_hand import moons
        from tests.estimators.data import bank
        MKLClassifier(bank(), solver="level", tol=1e-6, checkpoint={str(path)!r},
                      callback=lambda row: os._exit(9) if row["iteration"] == 3 else None).fit(*moons(80, noise=0.5))
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = forked.run(script, folder=root, check=False)
    assert done.returncode == 9
    assert path.exists()
    rows = []
    clf = MKLClassifier(bank(), solver="level", tol=1e-6, checkpoint=path, callback=rows.append)
    clf.fit(*by_hand.moons(80, noise=0.5))
    assert rows[0]["iteration"] > 1
    assert clf.certificate_.relative_gap <= 1e-6


def test_checkpoint_of_another_problem_is_refused(binary, tmp_path):
    X, y = binary
    path = tmp_path / "fit.npz"
    MKLClassifier(bank(), checkpoint=path).fit(X, y)
    for other in ({"C": 2.0}, {"norm": 2}, {"loss": "logistic"}, {"fit_intercept": False}):
        with pytest.raises(ValueError, match="another problem"):
            MKLClassifier(bank(), checkpoint=path, **other).fit(X, y)
    with pytest.raises(ValueError, match="another problem"):
        MKLClassifier(bank(), checkpoint=path).fit(X, -y)
    with pytest.raises(ValueError, match="another problem"):
        MKLClassifier(bank(), checkpoint=path).fit(X * 1.1, y)
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(ValueError, match="damaged"):
        MKLClassifier(bank(), checkpoint=path).fit(X, y)
    with pytest.raises(ValueError, match="does not exist"):
        MKLClassifier(bank(), checkpoint=tmp_path / "nowhere" / "fit.npz").fit(X, y)


def test_checkpoints_of_several_classes(tmp_path):
    X, y = by_hand.blobs(60)
    options = {"solver": "level", "tol": 1e-5, "checkpoint": str(tmp_path / "fit.npz"), "multi_class": "ovr"}
    seen = []

    def third_class(row):
        seen.append(row)
        if len([r for r in seen if r["iteration"] == 2]) == 3:
            raise Stop

    with pytest.raises(Stop):
        MKLClassifier(bank(), callback=third_class, **options).fit(X, y)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fit-0.npz", "fit-1.npz", "fit-2.npz"]
    resumed = MKLClassifier(bank(), **options).fit(X, y)
    whole = MKLClassifier(bank(), solver="level", tol=1e-5, multi_class="ovr").fit(X, y)
    assert resumed.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2e-5)


# ---- storage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"center": True}, {"normalize": "cosine"}, {"normalize": None}])
def test_storage_does_not_change_the_answer(binary, options):
    X, y = binary
    found = {}
    for storage in ("auto", "family", "dense", "lazy"):
        clf = MKLClassifier(bank(), norm=2, tol=1e-8, storage=storage, **options).fit(X, y)
        found[storage] = (clf.certificate_.primal, clf.weights_, clf.decision_function(X[:20]))
    for storage, (primal, weights, values) in found.items():
        assert primal == pytest.approx(found["dense"][0], rel=1e-7), storage
        np.testing.assert_allclose(weights, found["dense"][1], atol=1e-4)
        np.testing.assert_allclose(values, found["dense"][2], atol=1e-3)


def test_low_rank_storage(binary):
    X, y = binary
    spec = kw.linear() + kw.polynomial(2) + kw.per_feature(kw.linear()) + kw.random_fourier(1.0, 30)
    dense = MKLClassifier(spec, norm=2, tol=1e-8, storage="dense").fit(X, y)
    low = MKLClassifier(spec, norm=2, tol=1e-8, storage="lowrank").fit(X, y)
    assert low.certificate_.primal == pytest.approx(dense.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(low.decision_function(X), dense.decision_function(X), atol=1e-3)
    with pytest.raises(ValueError, match="needs explicit features"):
        MKLClassifier(bank(), storage="lowrank").fit(X, y)


def test_bytes_that_storage_takes(binary):
    X, y = binary
    spec = kw.gaussian(2.0 ** np.arange(-2, 4))  # six widths, one chain of squares
    sizes = {s: MKLClassifier(spec, storage=s).fit(X, y).bank_bytes_ for s in ("family", "dense", "lazy")}
    triangle = 8 * 80 * 81 // 2
    assert sizes["dense"] == 6 * triangle
    assert sizes["family"] == triangle
    assert sizes["lazy"] == 0
    assert MKLClassifier(spec, storage="dense", dtype="float32").fit(X, y).bank_bytes_ == 3 * triangle


@pytest.mark.parametrize("dtype", ["float32", np.float32])
@pytest.mark.parametrize("spec", [bank(), kw.gaussian(2.0 ** np.arange(-3, 7))])
def test_single_precision(binary, dtype, spec):
    """Stored in single precision, judged in double: the certificate is that of the true kernels."""
    X, y = binary
    single = MKLClassifier(spec, norm=1.5, dtype=dtype).fit(X, y)
    double = MKLClassifier(spec, norm=1.5, tol=1e-6).fit(X, y)
    assert single.bank_bytes_ < double.bank_bytes_
    assert single.weights_.dtype == single.dual_coef_.dtype == np.float64
    assert single.certificate_.relative_gap <= 1.01e-3
    # the certificate, evaluated at the same point on the double precision bank
    from kernelweave.banks import build_bank
    from kernelweave.losses import Hinge
    from kernelweave.norms import Lp
    from kernelweave.problems import MKLProblem, Point

    exact = build_bank(None, np.stack([kernel(X) for kernel in double.kernels_]), normalize="trace")
    problem = MKLProblem(exact, Hinge(), Lp(1.5), y)
    assert single.certificate_.primal == pytest.approx(
        problem.primal(Point(single.dual_coef_, single.weights_))[0], rel=1e-11
    )
    assert single.certificate_.dual == pytest.approx(problem.dual(single.certificate_.dual_point), rel=1e-11)
    assert single.certificate_.dual <= double.certificate_.primal
    assert double.certificate_.dual <= single.certificate_.primal


@pytest.mark.parametrize("norm", ["l1", 1.5])
def test_where_the_mixed_kernel_does_not_fit_that_of_a_working_set_does(binary, monkeypatch, norm):
    X, y = binary
    monkeypatch.setattr("kernelweave.banks.decide.LEAST_WORKING_SET", 20)
    spec = kw.gaussian([1.0, 2.0]) + kw.laplacian(1.0)
    tight = MKLClassifier(spec, norm=norm, memory_budget=16 * len(X) ** 2 - 1).fit(X, y)
    assert tight.solver_ == "working_set"
    assert tight.bank_bytes_ == 0
    roomy = MKLClassifier(spec, norm=norm).fit(X, y)
    assert roomy.solver_ == "newton"
    assert tight.certificate_.relative_gap <= tight.tol
    assert tight.certificate_.primal == pytest.approx(roomy.certificate_.primal, rel=2 * tight.tol)
    # a solver that was asked for mixes all samples, and is refused
    with pytest.raises(MemoryBudgetError):
        MKLClassifier(spec, norm=norm, solver="newton", memory_budget=16 * len(X) ** 2 - 1).fit(X, y)


def test_memory_budget(binary):
    X, y = binary
    with pytest.raises(
        MemoryBudgetError, match=r"memory_budget is 50\.0 kB.*Ways out: .*raise memory_budget"
    ):
        MKLClassifier(bank(), memory_budget="50KB").fit(X, y)
    with pytest.raises(ValueError, match=r"[\d,]+ bytes"):
        MKLClassifier(bank(), memory_budget=50_000, storage="dense").fit(X, y)
    with pytest.raises(MemoryBudgetError, match="precomputed"):
        MKLClassifier("precomputed", memory_budget=50_000).fit(by_hand.raw_stack(X, X), y)
    # what does not fit is computed on the way where that is allowed
    tight = MKLClassifier(bank(), memory_budget=120_000, tol=1e-8).fit(X, y)
    assert tight.bank_bytes_ < 120_000
    roomy = MKLClassifier(bank(), tol=1e-8).fit(X, y)
    assert roomy.bank_bytes_ > tight.bank_bytes_
    np.testing.assert_allclose(tight.weights_, roomy.weights_, atol=1e-6)
    with pytest.raises(MemoryBudgetError):
        MKLClassifier(bank(), memory_budget=120_000, storage="dense").fit(X, y)
    for wrong in ("two gigabytes", -5, 0):
        with pytest.raises(ValueError, match="memory_budget"):
            MKLClassifier(bank(), memory_budget=wrong).fit(X, y)


def test_threads_do_not_change_the_answer(binary):
    X, y = binary
    one = MKLClassifier(bank(), tol=1e-6).fit(X, y)
    two = MKLClassifier(bank(), tol=1e-6, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(two.weights_, one.weights_, atol=1e-9)
    np.testing.assert_allclose(two.decision_function(X), one.decision_function(X), atol=1e-9)
    assert two.n_passes_ == pytest.approx(one.n_passes_)


# ---- normalisation -------------------------------------------------------------------------------------------------


def centred(stack, cross):
    """Rows of new samples, in feature space minus the mean of the training samples."""
    return np.stack(
        [
            C - C.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
            for K, C in zip(stack, cross, strict=True)
        ]
    )


@pytest.mark.parametrize("normalize", ["trace", "cosine", None, "none"])
@pytest.mark.parametrize("center", [False, True])
def test_normalisation_by_hand(binary, normalize, center):
    X, y = binary
    X_new = by_hand.moons(21, seed=4)[0]
    clf = MKLClassifier(bank(), norm=1.5, normalize=normalize, center=center).fit(X, y)
    train, cross = by_hand.raw_stack(X, X), by_hand.raw_stack(X_new, X)
    own = np.stack([np.diag(K) for K in by_hand.raw_stack(X_new, X_new)])
    if center:
        means = cross.mean(axis=2)
        own = own - 2 * means + train.mean(axis=(1, 2))[:, None]
        train, cross = centred(train, train), centred(train, cross)
    diagonal = np.stack([np.diag(K) for K in train])
    if normalize == "trace":
        cross = cross / diagonal.mean(axis=1)[:, None, None]
    elif normalize == "cosine":
        cross = cross / np.sqrt(own[:, :, None] * diagonal[:, None, :])
    by = sum(d * (K @ clf.dual_coef_) for d, K in zip(clf.weights_, cross, strict=True)) + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(X_new), by, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("normalize", ["trace", "cosine", None])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(
    "spec", [None, bank(), kw.gaussian([0.5, 1.0], relative=True) + kw.nystroem(kw.gaussian(1.0), 12)]
)
def test_new_rows_do_not_see_each_other(binary, normalize, center, spec):
    """A prediction depends on its own row alone: nothing is learnt from new data."""
    X, y = binary
    X_new = 3 * by_hand.moons(15, seed=4)[0]
    clf = MKLClassifier(spec, norm=2, normalize=normalize, center=center).fit(X, y)
    together = clf.decision_function(X_new)
    alone = np.concatenate([clf.decision_function(row[None]) for row in X_new])
    np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(clf.decision_function(X_new[::-1])[::-1], together, rtol=1e-9, atol=1e-10)


def test_centring_with_an_intercept_changes_nothing_for_one_kernel(binary):
    """With a free intercept the SVM does not see where the origin is."""
    X, y = binary
    plain = MKLClassifier(kw.linear(), normalize=None, tol=1e-9).fit(X, y)
    moved = MKLClassifier(kw.linear(), normalize=None, center=True, tol=1e-9).fit(X + 3.0, y)
    np.testing.assert_allclose(plain.decision_function(X), moved.decision_function(X + 3.0), atol=1e-4)


def test_trace_normalisation_makes_the_scale_of_a_kernel_irrelevant(binary):
    X, y = binary
    stack = by_hand.raw_stack(X, X)
    scaled = stack * np.logspace(-3, 3, 10)[:, None, None]
    one = MKLClassifier("precomputed", tol=1e-6).fit(stack, y)
    two = MKLClassifier("precomputed", tol=1e-6).fit(scaled, y)
    np.testing.assert_allclose(one.weights_, two.weights_, atol=1e-6)
    raw = MKLClassifier("precomputed", tol=1e-6, normalize=None).fit(scaled, y)
    assert np.abs(raw.weights_ - one.weights_).max() > 0.1


# ---- the regressor shares all of it --------------------------------------------------------------------------------


def test_regressor_options(tmp_path, capfd):
    X, y = by_hand.curve(60)
    plain = MKLRegressor(bank(), C=5.0).fit(X, y)
    assert plain.solver_ == "newton"
    assert plain.score(X, y) > 0.9
    again = MKLRegressor(bank(), C=5.0, warm_start=True).fit(X, y).fit(X, y)
    assert again.n_iter_ == 1
    MKLRegressor(bank(), C=5.0, verbose=1, checkpoint=tmp_path / "r.npz").fit(X, y)
    assert "gap" in capfd.readouterr().err
    assert (tmp_path / "r.npz").exists()
    with pytest.warns(KernelWeaveConvergenceWarning):
        MKLRegressor(bank(), C=5.0, max_iter=1, tol=1e-9).fit(X, y)
    shifted = MKLRegressor(bank(), C=5.0, tol=1e-8).fit(X, y + 100.0)
    straight = MKLRegressor(bank(), C=5.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(shifted.predict(X) - 100.0, straight.predict(X), atol=1e-3)


def test_without_support_the_function_is_its_intercept():
    """One class has next to no weight: the best function is a constant, and prediction must say so."""
    X = np.arange(12.0)[:, None]
    y = np.repeat([0, 1], 6)
    weight = np.where(y == 0, 1.0, 1e-12)
    clf = MKLClassifier(kw.gaussian([1.0, 2.0]), C=1e-3).fit(X, y, sample_weight=weight)
    clf.dual_coef_[:] = 0.0
    (term,) = clf._function.terms
    clf._function.terms[:] = term.kernels.restrict(np.arange(term.index.size), term.weights, 0.0 * term.coef)
    np.testing.assert_array_equal(clf.decision_function(X), np.full(12, clf.intercept_))
