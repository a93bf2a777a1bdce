"""The two problems of ``rivals.py`` and the programs that take part; rivals are imported when they are run."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelweave import MeanKernelRidgeClassifier, MKLClassifier
from kernelweave import kernels as kw
from kernelweave.banks import build_bank
from kernelweave.losses import Hinge
from kernelweave.norms import L1
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, choose_solver, make_solver, solve
from kernelweave_studies.datasets import load_uci

C, TOL = 1.0, 1e-3
WIDTHS = 2.0 ** np.arange(-3, 7)
#: random weightings that himalaya tries
RANDOM_SEARCH = {"small": 20, "mid": 5}

# ---- the two problems ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """Standardised training and test rows, labels -1 and 1, and a sentence about where they come from."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    source: str

    @property
    def title(self) -> str:
        """Name and sizes."""
        n, d = self.X.shape
        return f"{self.name} (n = {n}, m = {10 * (d + 1)})"


def _data(name: str, X: Any, y: Any, source: str, **split: Any) -> Data:
    X, X_test, y, y_test = train_test_split(X, y, random_state=0, **split)
    scaler = StandardScaler().fit(X)
    positive = np.unique(y)[1]
    signs = [np.where(labels == positive, 1.0, -1.0) for labels in (y, y_test)]
    return Data(name, scaler.transform(X), signs[0], scaler.transform(X_test), signs[1], source)


def small() -> Data:
    """80 % of ionosphere, or a generated problem of that size."""
    try:
        X, y = load_uci("ionosphere", return_X_y=True, download=False)
        source = "ionosphere (UCI), 80 % stratified, n = 280, m = 340, tested on the other 71"
    except FileNotFoundError:
        X, y = make_classification(351, 33, n_informative=6, flip_y=0.05, class_sep=0.8, random_state=0)
        source = (
            "a GENERATED stand-in for ionosphere (not in KERNELWEAVE_DATA), 80 % stratified, n = 280, m = 340"
        )
    return _data("small", X, y, source, train_size=0.8, stratify=y)


def mid() -> Data:
    """A nonlinear rule in five of ten features, 10 % of the labels flipped."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 10))
    rule = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * (X[:, 3] ** 2 - 1) + 0.5 * X[:, 4]
    y = np.sign(rule) * np.where(rng.random(4000) < 0.1, -1.0, 1.0)
    source = "generated: the sign of sin(2 x0) + x1 x2 + (x3^2 - 1)/2 + x4/2, 10 normal features, 10 % of the labels "
    return _data("mid", X, y, source + "flipped, n = 2,000, m = 110, tested on 2,000", train_size=2000)


PROBLEMS = {"small": small, "mid": mid}


# ---- kernel matrices for those who need them -----------------------------------------------------------------------


def gaussians(A: np.ndarray, B: np.ndarray) -> Iterator[np.ndarray]:
    """The kernel matrices one by one: all widths on all features, then on each."""
    views = [slice(None), *([j] for j in range(A.shape[1]))]
    for view in views:
        a, b = A[:, view], B[:, view]
        squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2.0 * (a @ b.T)
        np.maximum(squares, 0.0, out=squares)
        for width in WIDTHS:
            yield np.exp(squares * (-0.5 / width**2))


def stack(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """All of them in one array."""
    out = np.empty((len(WIDTHS) * (A.shape[1] + 1), len(A), len(B)))
    for j, K in enumerate(gaussians(A, B)):
        out[j] = K
    return out


def mean_kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Their mean, with one matrix at a time in memory."""
    out, count = np.zeros((len(A), len(B))), 0
    for K in gaussians(A, B):
        out += K
        count += 1
    return out / count


# ---- who takes part ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """A program.

    ``whole(data)`` goes from samples to a model, ``kernels(data)`` computes what ``fit(data, kernels)`` is given, and
    ``labels(data, model)`` predicts the test rows.
    """

    name: str
    whole: Callable[[Data], Any]
    labels: Callable[[Data, Any], np.ndarray]
    kernels: Callable[[Data], Any] | None = None
    fit: Callable[[Data, Any], Any] | None = None
    certified: bool = False
    package: str | None = None
    problems: tuple[str, ...] = ("small", "mid")

    @property
    def installed(self) -> bool:
        """Whether the package is there."""
        return self.package is None or importlib.util.find_spec(self.package) is not None


def on_matrices(name: str, kernels: Any, fit: Any, predict: Any, package: str | None = None) -> Method:
    """A program that is given matrices, in training and for new rows."""
    return Method(
        name,
        lambda data: fit(data, kernels(data.X, data.X)),
        lambda data, model: predict(model, kernels(data.X_test, data.X)),
        lambda data: kernels(data.X, data.X),
        fit,
        package=package,
    )


def ours(solver: str, problems: tuple[str, ...] = ("small", "mid")) -> Method:
    """The estimator; with the bank given, the solver and the certificates on its way."""

    def bank(data: Data) -> Any:
        return build_bank(kw.preset("stpmkl").expand(kw.Schema(data.X.shape[1])), data.X)[0]

    def solve_on(data: Data, bank: Any) -> Any:
        problem = MKLProblem(bank, Hinge(), L1(), data.y, C)
        auto = solver == "auto"
        chosen = choose_solver(Hinge(), L1(), bank) if auto else make_solver(solver, Hinge(), L1())
        return solve(problem, chosen, Stop(TOL))

    return Method(
        f"kernelweave, {solver}",
        lambda data: MKLClassifier("stpmkl", C=C, solver=solver, tol=TOL).fit(data.X, data.y),
        lambda data, model: model.predict(data.X_test),
        bank,
        solve_on,
        certified=True,
        problems=problems,
    )


def easymkl(data: Data, matrices: np.ndarray) -> Any:
    """EasyMKL of MKLpy, with its default parameters."""
    import torch
    from MKLpy.algorithms import EasyMKL

    torch.set_num_threads(1)
    return EasyMKL(lam=0.1).fit([torch.from_numpy(K) for K in matrices], torch.from_numpy(data.y))


def easymkl_labels(model: Any, matrices: np.ndarray) -> np.ndarray:
    """Its labels for new rows."""
    import torch

    return np.asarray(model.predict([torch.from_numpy(K) for K in matrices]))


def himalaya(data: Data, matrices: np.ndarray) -> Any:
    """Random search over kernel weights with ridge, by himalaya on numpy."""
    from himalaya.backend import set_backend
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    set_backend("numpy")
    options = {"n_iter": RANDOM_SEARCH[data.name], "alphas": np.logspace(-3, 3, 7), "progress_bar": False}
    model = MultipleKernelRidgeCV(
        kernels="precomputed",
        solver="random_search",
        solver_params=options,
        fit_intercept=True,
        cv=5,
        random_state=0,
    )
    return model.fit(matrices, data.y)


def nystroem_blocks(data: Data) -> tuple[list[Any], np.ndarray]:
    """Twenty Nystroem features per kernel, side by side, and the maps that made them."""
    from sklearn.kernel_approximation import Nystroem

    maps, blocks = [], []
    for view in [slice(None), *([j] for j in range(data.X.shape[1]))]:
        for width in WIDTHS:
            feature_map = Nystroem(gamma=0.5 / width**2, n_components=20, random_state=0)
            blocks.append(feature_map.fit_transform(data.X[:, view]))
            maps.append((view, feature_map))
    return maps, np.asfortranarray(np.hstack(blocks))


def skglm(data: Data, given: tuple[list[Any], np.ndarray]) -> Any:
    """Group lasso with the squared loss on those features, a group a kernel: l1-MKL of approximated kernels."""
    from skglm import GroupLasso

    maps, Z = given
    gradient = (Z - Z.mean(axis=0)).T @ data.y / len(data.y)
    strongest = float(np.max(np.linalg.norm(gradient.reshape(-1, 20), axis=1)))
    return maps, GroupLasso(groups=20, alpha=0.05 * strongest, tol=1e-4).fit(Z, data.y)


def skglm_labels(data: Data, fitted: Any) -> np.ndarray:
    """Its labels for new rows."""
    maps, model = fitted
    Z = np.hstack([feature_map.transform(data.X_test[:, view]) for view, feature_map in maps])
    return np.asarray(np.sign(model.predict(Z)))


METHODS = [
    ours("auto"),
    on_matrices(
        "SVC on the mean kernel",
        mean_kernel,
        lambda data, K: SVC(kernel="precomputed", C=C).fit(K, data.y),
        lambda model, K: model.predict(K),
    ),
    Method(
        "ridge on the mean kernel, leave-one-out",
        lambda data: MeanKernelRidgeClassifier("stpmkl", tol=TOL).fit(data.X, data.y),
        lambda data, model: model.predict(data.X_test),
        certified=True,
    ),
    on_matrices("MKLpy EasyMKL", stack, easymkl, easymkl_labels, "MKLpy"),
    on_matrices(
        "himalaya random search", stack, himalaya, lambda model, K: np.sign(model.predict(K)), "himalaya"
    ),
    Method(
        "skglm group lasso, 20 Nystroem features a kernel",
        lambda data: skglm(data, nystroem_blocks(data)),
        skglm_labels,
        nystroem_blocks,
        skglm,
        package="skglm",
    ),
    *(ours(solver, ("small",)) for solver in ("level", "silp", "simplemkl")),
]
