"""Hard problems by number: case ``i`` of seed ``s`` is the same everywhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .bounds import KernelCase, LossCase

BINARY = [
    "hinge",
    "squared_hinge",
    "huber_hinge",
    "logistic",
    "squared",
    "budgeted_hinge",
    "multiclass_hinge",
]
SEVERAL = [
    "hinge",
    "hinge",
    "multiclass_hinge",
    "squared_hinge",
    "huber_hinge",
    "logistic",
    "squared",
    "budgeted_hinge",
]
REGRESSION = ["squared", "epsilon_insensitive"]
NORMS = ["l1", "l1", 1.1, 1.5, 2.0, 4.0, np.inf, "uniform", "entropy", "max", "fixed"]


@dataclass
class Case:
    """One fit to be judged: the data, the parameters of the estimator, and what the judge needs to know of them."""

    seed: int
    index: int
    task: str
    X: Any
    y: np.ndarray
    sample_weight: np.ndarray | None
    kernels: list[KernelCase] | None
    stack: list[np.ndarray] | None
    loss: str
    numbers: tuple[float, ...]
    norm: Any
    given: tuple[float, ...]
    parameters: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)

    @property
    def default(self) -> bool:
        """Whether solver and limits are those that users get without asking."""
        return self.parameters["solver"] == "auto"

    @property
    def raw(self) -> bool:
        """Whether kernels are taken as they come, whatever their size."""
        return self.parameters["normalize"] is None

    def __str__(self) -> str:
        shape = (
            np.shape(self.X) if self.stack is None else f"{len(self.stack)} matrices {self.stack[0].shape}"
        )
        return (
            f"case {self.index} of seed {self.seed}: {self.task}, {shape}, loss {self.loss} {self.numbers}, "
            f"norm {self.norm}, {self.parameters}, {', '.join(self.tags)}"
        )


def make_case(seed: int, index: int) -> Case:
    """Return case ``index`` of a seed."""
    rng = np.random.default_rng([seed, index])
    task = rng.choice(["binary", "several", "regression"], p=[0.45, 0.3, 0.25])
    n = int(np.round(4 * 20 ** rng.uniform()))  # 4..80, small ones as often as large ones
    if task == "several":
        n = max(n, 6)
    tags: list[str] = []
    y, codes = _targets(rng, task, n, tags)
    X = _samples(rng, n, codes, tags)
    if task == "regression":
        y = _regression_target(rng, X, n, tags)
    elif rng.random() < 0.1:
        _contradict(rng, X, tags)
    kernels, stack = _kernels(rng, X, tags)
    m = len(kernels) if kernels is not None else len(stack)
    names = {"binary": BINARY, "several": SEVERAL, "regression": REGRESSION}[task]
    loss = str(rng.choice(names)) if rng.random() < 0.7 else names[0]
    numbers = _numbers(rng, loss)
    norm = NORMS[int(rng.integers(len(NORMS)))]
    given = tuple(float(v) for v in rng.choice([0.0, 0.3, 1.0, 2.5], m)) if norm == "fixed" else ()
    if norm == "fixed" and not any(given):
        given = (1.0, *given[1:])
    parameters = _parameters(rng, task, loss, norm, stack is not None, X)
    weight = _weights(rng, n, tags)
    return Case(
        seed, index, str(task), X, y, weight, kernels, stack, loss, numbers, norm, given, parameters, tags
    )


def _targets(rng, task, n, tags):
    if task == "regression":
        return np.zeros(n), np.zeros(n, dtype=int)
    k = 2 if task == "binary" else int(rng.integers(3, 6))
    shares = np.full(k, 1.0 / k)
    if rng.random() < 0.3:
        tags.append("1:50")
        shares = np.r_[0.96, np.full(k - 1, 0.04 / (k - 1))]
    codes = np.r_[np.arange(k), rng.choice(k, max(n - k, 0), p=shares)][:n]
    rng.shuffle(codes)
    return codes, codes


def _samples(rng, n, codes, tags):
    columns = int(rng.integers(1, 9))
    kind = rng.choice(
        ["normal", "constant", "duplicated", "grid", "heavy", "offset"], p=[0.45, 0.07, 0.15, 0.13, 0.1, 0.1]
    )
    X = (
        rng.normal(size=(n, columns))
        + rng.choice([0.0, 0.8, 3.0]) * rng.normal(size=(codes.max() + 1, columns))[codes]
    )
    if kind == "constant":
        X = np.full((n, columns), float(rng.choice([0.0, 1.0, 1000003.0])))
    elif kind == "duplicated":
        X = X[rng.integers(0, max(1, n // 3), n)]
    elif kind == "grid":
        X = rng.integers(0, 3, size=(n, columns)).astype(float)
    elif kind == "heavy":
        X = rng.standard_t(1.5, size=(n, columns))
    elif kind == "offset":
        X = X + 10.0 ** rng.integers(2, 8)
    if kind != "normal":
        tags.append(str(kind))
    if rng.random() < 0.35:
        scale = 10.0 ** float(rng.integers(-8, 9))
        X, _ = X * scale, tags.append(f"scale {scale:g}")
    if rng.random() < 0.05:
        X[:, 0] = 0.0
    return np.ascontiguousarray(X)


def _regression_target(rng, X, n, tags):
    with np.errstate(all="ignore"):
        z = (X[:, 0] - X[:, 0].mean()) / (X[:, 0].std() or 1.0)
    kind = rng.choice(["smooth", "noise", "constant", "scaled", "outlier"])
    y = np.sin(z) + 0.1 * rng.normal(size=n)
    if kind == "noise":
        y = rng.normal(size=n)
    elif kind == "constant":
        y = np.full(n, float(rng.choice([0.0, 2.5])))
    elif kind == "scaled":
        y = y * 10.0 ** float(rng.integers(-6, 7))
    elif kind == "outlier":
        y[0] = 1e4
    tags.append(f"target {kind}")
    return y


def _contradict(rng, X, tags):
    """Pairs of equal samples, whatever their labels."""
    half = len(X) // 2
    X[half : 2 * half] = X[:half]
    tags.append("contradicting")


def _kernels(rng, X, tags):
    n, columns = X.shape
    kind = rng.choice(["default", "families", "per feature", "raw", "stack"], p=[0.35, 0.25, 0.1, 0.1, 0.2])
    tags.append(f"kernels {kind}")
    if kind == "default":
        return [KernelCase("gaussian", w, True) for w in (0.25, 0.5, 1.0, 2.0, 4.0)] + [
            KernelCase("linear")
        ], None
    if kind == "stack":
        m = int(np.round(60 ** rng.uniform()))
        stack = []
        for _ in range(m):
            rank = int(rng.choice([1, 2, 5, n]))
            Z = rng.normal(size=(n, rank)) * 10.0 ** rng.uniform(-1, 1)
            stack.append(Z @ Z.T)
        return None, stack
    if kind == "per feature":
        made = []
        for j in range(columns):
            made += [KernelCase("gaussian", w, bool(rng.integers(2)), (j,)) for w in (0.5, 1.0, 2.0)][
                : int(rng.integers(1, 4))
            ]
            made += [KernelCase("polynomial", 2, False, (j,))] if rng.random() < 0.3 else []
        return made, None
    families = [
        *[KernelCase("gaussian", float(w), False) for w in 10.0 ** rng.uniform(-2, 2, 3)],
        *[KernelCase("gaussian", float(w), True) for w in (0.3, 3.0)],
        KernelCase("laplacian", 1.0, True),
        KernelCase("linear"),
        KernelCase("cosine"),
        *[KernelCase("polynomial", degree) for degree in (1, 2, 3)],
    ]
    if kind == "raw":  # the ones whose size is that of the data
        families = [KernelCase("linear"), KernelCase("polynomial", 2), KernelCase("gaussian", 1.0, True)]
    chosen = sorted(rng.choice(len(families), int(rng.integers(1, len(families) + 1)), replace=False))
    return [families[i] for i in chosen], None


def _numbers(rng, loss):
    if loss == "huber_hinge":
        return (float(rng.choice([1.0, 0.3])),)
    if loss == "epsilon_insensitive":
        return (float(rng.choice([0.1, 0.0, 0.5])),)
    if loss == "budgeted_hinge":
        return (float(rng.choice([1.0, 0.9, 0.8])), float(rng.choice([0.0, 0.1])))
    return ()


def _parameters(rng, task, loss, norm, precomputed, X):
    wide = rng.random() < 0.3
    parameters: dict[str, Any] = {
        "C": float(10.0 ** (rng.uniform(-6, 6) if wide else rng.uniform(-2, 3))),
        "fit_intercept": bool(rng.random() < 0.8),
        "solver": "auto",
        "normalize": [None, "trace", "cosine"][int(rng.choice(3, p=[0.2, 0.65, 0.15]))],
        "center": bool(rng.random() < 0.15),
    }
    if rng.random() < 0.15:
        parameters["tol"] = float(rng.choice([1e-2, 1e-4, 1e-5]))
    if precomputed and parameters["normalize"] == "cosine":
        parameters["normalize"] = "trace"  # needs k(x, x) of new samples, and is refused
    if not precomputed:
        if rng.random() < 0.15:
            parameters["dtype"] = "float32"
        if rng.random() < 0.25:
            parameters["storage"] = str(rng.choice(["family", "dense", "lazy"]))
    if task == "several" and rng.random() < 0.35 and loss != "multiclass_hinge":
        parameters["multi_class"] = str(rng.choice(["shared", "ovr"]))
    if rng.random() < 0.3:
        parameters["solver"] = "any"  # settled by the judge, which asks the registry what fits
        parameters["max_seconds"] = 3.0
    return parameters


def _weights(rng, n, tags):
    kind = rng.choice(["none", "some", "zeros", "huge"], p=[0.7, 0.12, 0.1, 0.08])
    if kind == "none":
        return None
    tags.append(f"weights {kind}")
    weight = rng.uniform(0.2, 3.0, n)
    if kind == "zeros":
        weight[rng.random(n) < 0.4] = 0.0
    elif kind == "huge":
        weight[rng.random(n) < 0.2] = 10.0 ** float(rng.integers(2, 7))
    return weight


def loss_of(case: Case, joint: bool, columns: bool) -> LossCase:
    """The loss whose objective the library minimises for several classes, as the docs say."""
    if case.loss == "multiclass_hinge" or (case.loss == "hinge" and joint and columns):
        return LossCase("multiclass_hinge")
    if case.loss == "logistic" and joint and columns:
        return LossCase("softmax")
    return LossCase(case.loss, case.numbers)
