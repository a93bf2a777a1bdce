"""``device=...``: the same answers as without, exact certificates, and a sentence for everything that is missing."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification

from kernelweave import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV
from kernelweave import kernels as kw
from kernelweave.banks import BoundKernels, Computed, Gram
from kernelweave.norms import AtMost, Block, Elastic, ElasticBlocks, ElasticNet, Grouped
from kernelweave.problems import MKLProblem

torch = pytest.importorskip("torch")

from kernelweave.banks import bound, torch_bank  # noqa: E402
from kernelweave.banks.torch_bank import DeviceFeatures, DeviceMatrices  # noqa: E402

BANK = kw.gaussian([0.5, 1.0, 2.0], relative=True) + kw.linear()


def _iris():
    X, y = load_iris(return_X_y=True)
    return X[::2], y[::2]


def _binary():
    X, y = make_classification(80, 6, n_informative=4, random_state=0)
    return X, y


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (_iris, {"norm": Block(4 / 3), "solver": "lp_analytic"}),
        (_iris, {"norm": Block(4 / 3), "solver": "working_set"}),
        (_iris, {"norm": 2.0, "fit_intercept": False}),
        (_binary, {"norm": "l1"}),
        (_binary, {"norm": "l1", "solver": "nesterov"}),
        (_binary, {"norm": "l1", "solver": "mirror_prox"}),
        (_binary, {"norm": 2.0, "loss": "logistic"}),
        (_binary, {"norm": 2.0, "loss": "squared_hinge", "solver": "lbfgs", "fit_intercept": False}),
        (_binary, {"norm": "l1", "center": True}),
        (_binary, {"norm": "l1", "normalize": "cosine"}),
        (_binary, {"norm": ElasticNet(0.5)}),
        (_binary, {"norm": ElasticBlocks(0.5), "fit_intercept": False}),
        (_binary, {"norm": Elastic(1.0, 2.0)}),
        (_binary, {"norm": Grouped("l1", 2, list("aabb"))}),
        (_binary, {"norm": AtMost(2)}),
    ],
)
def test_the_device_and_numpy_agree(data, options):
    X, y = data()
    host = MKLClassifier(BANK, tol=1e-4, **options).fit(X, y)
    device = MKLClassifier(BANK, tol=1e-4, device="cpu", **options).fit(X, y)
    assert device.certificate_.relative_gap <= 1.1e-4
    assert device.certificate_.primal == pytest.approx(host.certificate_.primal, rel=3e-4)
    assert np.mean(device.predict(X) == host.predict(X)) > 0.97


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("storage", ["dense", "lazy"])
def test_the_certificate_is_of_exact_kernels_whatever_was_stored(dtype, storage):
    X, y = _binary()
    clf = MKLClassifier(BANK, norm=2.0, C=5.0, device="cpu", dtype=dtype, storage=storage, tol=2e-2).fit(X, y)
    # the certificate once more, from nothing but the kernels in double precision and the fitted attributes
    kernels = clf.kernels_
    fresh = MKLClassifier(BANK, norm=2.0, C=5.0).fit(X, y)
    bank = Gram(Computed(kernels, X, len(y), fresh._function.terms[0].kernels.normaliser))
    problem = MKLProblem(bank, clf.loss_, Block(4 / 3), np.where(y == 1, 1.0, -1.0), 5.0)
    from kernelweave.problems import Point

    again = problem.certificate(Point(clf.dual_coef_, clf.weights_))
    assert isinstance(clf._function.terms[0].kernels, BoundKernels)
    assert clf.certificate_.primal == pytest.approx(again.primal, rel=1e-9)
    assert clf.certificate_.dual >= again.dual - 1e-9 * abs(again.dual)
    assert clf.certificate_.dual <= clf.certificate_.primal


def test_tensors_in_choose_the_device_and_numpy_comes_out():
    X, y = _binary()
    clf = MKLClassifier(BANK).fit(torch.asarray(X), torch.asarray(y))
    assert isinstance(clf.predict(torch.asarray(X)), np.ndarray)
    np.testing.assert_array_equal(clf.predict(torch.asarray(X)), clf.predict(X))


def test_precomputed_matrices():
    X, y = _binary()
    stack = np.stack([kernel(X) for kernel in (kw.gaussian(1.0), kw.gaussian(3.0), kw.linear())])
    host = MKLClassifier("precomputed").fit(stack, y)
    device = MKLClassifier("precomputed", device="cpu").fit(stack, y)
    assert device.certificate_.primal == pytest.approx(host.certificate_.primal, rel=2e-3)
    assert device.certificate_.relative_gap <= 1.1e-3


def test_regression():
    X, y = _binary()
    target = X[:, 0] + 0.1 * y
    host = MKLRegressor(BANK, norm=2.0).fit(X, target)
    device = MKLRegressor(BANK, norm=2.0, device="cpu").fit(X, target)
    assert device.certificate_.primal == pytest.approx(host.certificate_.primal, rel=2e-3)


def test_the_parameter_is_cloned():
    assert clone(MKLClassifier(device="cpu")).device == "cpu"


def test_no_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'kernelweave\[torch\]'"):
        MKLClassifier(device="cuda").fit(*_binary())


def test_no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="torch sees no GPU"):
        MKLClassifier(device="cuda").fit(*_binary())


def test_a_gpu_that_is_not_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match=r"device='cuda:7' was asked for, but torch sees 2 GPU\(s\)"):
        MKLClassifier(device="cuda:7").fit(*_binary())


def test_no_apple_gpu(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(ValueError, match="no Apple GPU"):
        MKLClassifier(device="mps").fit(*_binary())


def test_mixed_devices():
    X, y = _binary()
    with pytest.raises(ValueError, match="several devices"):
        MKLClassifier().fit(torch.asarray(X), torch.empty(len(y), device="meta"))
    with pytest.raises(ValueError, match="move X"):
        MKLClassifier(device="cpu").fit(torch.empty(X.shape, device="meta"), y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "gpu"}, "device must be one of cuda, cpu, mps or None"),
        (
            {"device": "cpu", "storage": "family"},
            "storage must be one of auto, dense, lazy, lowrank with a device",
        ),
        ({"device": "cpu", "dtype": "int8"}, "dtype must be one of float64, float32, float16, bfloat16"),
        ({"dtype": "float16"}, "dtype must be float64 or float32"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        MKLClassifier(**options).fit(*_binary())


def test_a_fit_on_half_precision_goes_on_until_the_exact_gap_is_there():
    X, y = _binary()
    model = MKLClassifier(BANK, norm=2.0, C=50.0, device="cpu", dtype="bfloat16", storage="dense", tol=1e-3)
    assert clone(model).fit(X, y).certificate_.relative_gap <= 1.01e-3
    # what the solver took for enough on the stored kernels was not
    asked = []  # after every step that was not the last on these kernels
    longer = clone(model).set_params(callback=lambda row: asked.append(row) and False).fit(X, y)
    assert longer.trace_["relative_gap"].iloc[len(asked)] <= 1e-3
    assert longer.n_iter_ > len(asked) + 1


@pytest.mark.parametrize("storage", ["auto", "lowrank"])
@pytest.mark.parametrize(
    "options",
    [
        {"loss": "logistic"},
        {"loss": "squared_hinge", "fit_intercept": False},
        {"loss": "logistic", "multi_class": "shared"},
    ],
)
def test_explicit_features_live_on_the_device(options, storage):
    X, y = _iris() if "multi_class" in options else _binary()
    bank = kw.linear() + kw.random_fourier(2.0, n_features=16)
    options = {"norm": 1.5, "tol": 1e-4, **options}
    host = MKLClassifier(bank, solver="lbfgs", **options).fit(X, y)
    device = MKLClassifier(bank, device="cpu", storage=storage, **options).fit(X, y)
    assert device.solver_ == "lbfgs"
    width = 16 + X.shape[1]
    assert device.bank_bytes_ == len(X) * width * (8 if storage == "lowrank" else 4)
    assert device.certificate_.relative_gap <= 1.1e-4
    assert device.certificate_.primal == pytest.approx(host.certificate_.primal, rel=2e-4)
    np.testing.assert_allclose(device.decision_function(X), host.decision_function(X), atol=0.05)


def test_features_on_a_device_say_what_they_need():
    X, y = _binary()
    options = {"norm": 2, "loss": "logistic", "device": "cpu", "storage": "lowrank"}
    with pytest.raises(ValueError, match="storage='lowrank' needs explicit features, which 'gaussian"):
        MKLClassifier(kw.gaussian(1.0), **options).fit(X, y)
    with pytest.raises(ValueError, match="without centring"):
        MKLClassifier(kw.linear(), **options, center=True).fit(X, y)
    with pytest.raises(MemoryError, match="device=None"):
        MKLClassifier(kw.linear(), **options, memory_budget=100).fit(X, y)


@pytest.mark.parametrize(
    # unnormalised kernels are ill-conditioned, and how far the fit goes is not what is tested
    "options",
    [{}, {"norm": 2, "multi_class": "ovr"}, {"center": True}, {"normalize": None, "tol": 0.1}],
)
def test_prediction_runs_where_the_fit_ran(options, monkeypatch):
    X, y = _iris()
    bank = BANK + kw.laplacian(1.0) + kw.polynomial(2).on([0, 1]) + kw.function(np.dot)
    clf = MKLClassifier(bank, device="cpu", **options).fit(X, y)
    ran = []
    on_device = torch_bank.device_decision
    monkeypatch.setattr(torch_bank, "device_decision", lambda *given: ran.append(given) or on_device(*given))
    monkeypatch.setattr(torch_bank, "HOST_BLOCK", 900)  # several blocks
    new, _ = load_iris(return_X_y=True)
    values = clf.decision_function(new)
    assert bool(ran) == ("center" not in options)  # row means of new rows are the host's business
    np.testing.assert_allclose(clf.decision_function(torch.as_tensor(new)), values, atol=1e-6)
    clf.device = None
    np.testing.assert_allclose(values, clf.decision_function(new), atol=2e-4)


@pytest.mark.parametrize("shared", [True, False])
def test_values_along_a_direction_are_of_features_that_the_device_makes(shared, monkeypatch):
    X, y = _iris()
    bank = kw.linear() + kw.random_fourier(2.0, n_features=16)
    options = {} if shared else {"multi_class": "ovr"}
    clf = MKLClassifier(bank, loss="logistic", norm=1.5, device="cpu", storage="lowrank", **options).fit(X, y)
    new, _ = load_iris(return_X_y=True)
    clf.device = None
    values = clf.decision_function(new)
    clf.device = "cpu"
    monkeypatch.setattr(bound, "stack_features", None)  # what the host would make them with
    monkeypatch.setattr(torch_bank, "HOST_BLOCK", 900)  # several blocks
    np.testing.assert_allclose(clf.decision_function(new), values, rtol=1e-10, atol=1e-12)


def test_a_search_keeps_its_kernels_on_the_device(monkeypatch):
    X, y = _binary()
    made = []
    of_matrices = DeviceMatrices.__init__
    monkeypatch.setattr(DeviceMatrices, "__init__", lambda *given: made.append(given) or of_matrices(*given))
    monkeypatch.setattr(DeviceMatrices, "mix_block", None)  # the mixed kernel does not come to the host
    settings = {"norm": 2.0, "Cs": [0.1, 1.0], "cv": 3, "tol": 1e-4, "scoring": "roc_auc"}
    host = MKLClassifierCV(kw.gaussian([1.0, 3.0]), **settings).fit(X, y)
    device = MKLClassifierCV(kw.gaussian([1.0, 3.0]), device="cpu", **settings).fit(X, y)
    assert len([given for given in made if len(given) == 3 and given[2] is not None]) == 1
    assert device.C_ == host.C_
    assert device.certificate_.primal == pytest.approx(host.certificate_.primal, rel=3e-4)
    np.testing.assert_allclose(device.best_score_, host.best_score_, atol=2e-3)
    np.testing.assert_allclose(device.predict_proba(X), host.predict_proba(X), atol=5e-3)


def test_a_search_makes_features_on_the_device_once(monkeypatch):
    X, y = _binary()
    kept = []
    subset = DeviceFeatures.subset
    monkeypatch.setattr(
        DeviceFeatures, "subset", lambda self, rows: kept.append(rows.size) or subset(self, rows)
    )
    of_features = DeviceFeatures.__init__
    stored = []
    monkeypatch.setattr(
        DeviceFeatures, "__init__", lambda *given: stored.append(len(given)) or of_features(*given)
    )
    bank = kw.random_fourier(2.0, n_features=16)
    settings = {"loss": "logistic", "norm": 2.0, "Cs": [0.1, 1.0], "cv": 3, "storage": "lowrank"}
    device = MKLClassifierCV(bank, device="cpu", **settings).fit(X, y)
    assert stored.count(4) == 1  # those that are kept
    assert device.C_ == MKLClassifierCV(bank, **settings).fit(X, y).C_


def test_a_search_of_a_regression_on_a_device():
    X, _ = _binary()
    target = X[:, 0] + 0.3 * np.random.default_rng(0).standard_normal(len(X))
    settings = {"norms": ["l1", "uniform"], "Cs": [0.1, 1.0], "cv": 3, "tol": 1e-4}
    host = MKLRegressorCV(BANK, **settings).fit(X, target)
    device = MKLRegressorCV(BANK, device="cpu", **settings).fit(X, target)
    assert device.C_ == host.C_
    np.testing.assert_allclose(device.predict(X), host.predict(X), atol=0.02)


def test_a_model_from_a_gpu_predicts_anywhere():
    X, y = _binary()
    clf = MKLClassifier(BANK, device="cpu").fit(X, y)
    values = clf.decision_function(X)
    clf.device = "mps"  # not here
    np.testing.assert_allclose(clf.decision_function(X), values, atol=1e-4)


def test_samples_that_are_no_table_of_numbers_are_decided_on_the_host():
    X, y = _binary()
    rows = sp.csr_matrix(np.where(X > 0, X, 0.0))
    clf = MKLClassifier(BANK, device="cpu").fit(rows, y)
    values = clf.decision_function(rows)
    clf.device = None
    np.testing.assert_allclose(values, clf.decision_function(rows), atol=2e-4)


def test_kernels_are_not_completed_on_a_device():
    X, y = _binary()
    X[::7, :3] = np.nan
    views = kw.per_view({"a": slice(0, 3), "b": slice(3, 6)}, kw.linear())
    with pytest.raises(ValueError, match="missing='mean' completes kernels in memory: pass X as an array of"):
        MKLClassifier(views, missing="mean").fit(torch.tensor(X), y)
