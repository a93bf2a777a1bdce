"""Hard problems by number: case ``i`` of seed ``s`` is the same everywhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from references import MULTICLASS_HINGE, SOFTMAX, RefLoss, loss_named, one_class

from .bounds import KernelCase, NormCase

BINARY = [
    "hinge",
    "squared_hinge",
    "huber_hinge",
    "logistic",
    "squared",
    "budgeted_hinge",
    "multiclass_hinge",
    "multinomial",
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
    "multinomial",
    "ordinal",
]
REGRESSION = ["squared", "epsilon_insensitive", "quantile", "huber", "poisson"]
SURVIVAL = ["cox", "cox", "censored_squared"]
NORMS = ["l1", "l1", 1.1, 1.5, 2.0, 4.0, np.inf, "uniform", "entropy", "max", "fixed"]
#: norms with numbers of their own, by the name under which the library has them
STRUCTURED = ["at_most", "elastic", "elastic_blocks", "elastic_net", "entropy", "grouped", "lp"]
#: what the judge holds to its definition, by the names of the library's registries
JUDGED_LOSSES = {*BINARY, *SEVERAL, *REGRESSION, *SURVIVAL}
JUDGED_NORMS = {*STRUCTURED, "l1", "max", "uniform"}
#: what it does not, and why
NOT_JUDGED: dict[str, str] = {}
#: kinds of cases, and how often they are drawn
KINDS = {
    "survival": 0.06,
    "pairs": 0.08,
    "plain": 0.36,
    "structured": 0.2,
    "targets": 0.08,
    "criterion": 0.12,
    "missing": 0.1,
}


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
    #: number of the criterion, among those that the library offers; None for an estimator without one
    criterion: int | None = None
    #: which views the samples have, and the columns of each view (matrices are views of their own)
    present: np.ndarray | None = None
    views: list[tuple[int, ...]] = field(default_factory=list)
    #: of survival: group of every sample that has a baseline hazard of its own
    strata: np.ndarray | None = None
    #: columns that describe the left objects, where samples are pairs; the others describe the right ones
    left_columns: int = 0

    @property
    def norm_name(self) -> str:
        """What the tables call the norm."""
        if not isinstance(self.norm, NormCase):
            return str(self.norm)
        return self.norm.name + (" and a kernel that always counts" if self.norm.held else "")

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
    other = np.random.default_rng([seed, index, 1])  # plain cases do not depend on what other kinds there are
    kind = str(other.choice(list(KINDS), p=list(KINDS.values())))
    task = rng.choice(["binary", "several", "regression"], p=[0.45, 0.3, 0.25])
    if kind in ("targets", "criterion"):
        task = "regression"
    n = int(np.round(4 * 20 ** rng.uniform()))  # 4..80, small ones as often as large ones
    if task == "several":
        n = max(n, 6)
    tags: list[str] = []
    if kind == "survival":
        task = "survival"
    y, codes = _targets(rng, task, n, tags)
    X = _samples(rng, n, codes, tags)
    if task == "regression":
        y = _regression_target(rng, X, n, tags)
    elif task == "survival":
        y = _times(other, X, n, tags)
    elif rng.random() < 0.1:
        _contradict(rng, X, tags)
    kernels, stack = _kernels(rng, X, tags)
    present, views = None, []
    if kind == "missing":
        X, kernels, stack, present, views = _incomplete(other, n, codes, stack, tags)
    left_columns = 0
    if kind == "pairs":
        X, kernels, left_columns = _pairs(other, n)
        stack = None
        tags += ["pairs"]
    m = len(kernels) if kernels is not None else len(stack)
    names = {"binary": BINARY, "several": SEVERAL, "regression": REGRESSION, "survival": SURVIVAL}[task]
    loss = str(rng.choice(names)) if rng.random() < 0.7 else names[0]
    numbers = _numbers(rng, loss)
    norm = NORMS[int(rng.integers(len(NORMS)))]
    if kind == "structured" or (kind in ("targets", "missing") and other.random() < 0.3):
        norm = _structured(other, m, stack is not None)
    given = tuple(float(v) for v in rng.choice([0.0, 0.3, 1.0, 2.5], m)) if norm == "fixed" else ()
    if norm == "fixed" and not any(given):
        given = (1.0, *given[1:])
    parameters = _parameters(rng, task, loss, norm, stack is not None, X)
    weight = _weights(rng, n, tags)
    case = Case(
        seed, index, str(task), X, y, weight, kernels, stack, loss, numbers, norm, given, parameters, tags,
        present=present, views=views, left_columns=left_columns,
    )  # fmt: skip
    if kind == "pairs" and parameters["normalize"] == "cosine":
        parameters["normalize"] = "trace"
    case.tags.append(f"kind {kind}")
    if kind == "survival":
        parameters.update(fit_intercept=True, center=False)
        if loss == "cox" and other.random() < 0.3:
            case.strata = other.integers(0, 3, n)
            tags.append("strata")
    if kind == "missing":
        # completed kernels are matrices in memory, in double precision
        for name in ("dtype", "storage"):
            parameters.pop(name, None)
        parameters["missing"] = str(other.choice(["mean", "predict", "predict"]))
        case.tags.append(f"missing {parameters['missing']}")
    elif kind == "targets":
        _several_targets(other, case)
    elif kind == "criterion":
        _with_criterion(other, case)
    if case.loss == "poisson":
        case.y = np.floor(3.0 * np.abs(case.y))
    return case


def as_novelty(case: Case) -> Case:
    """Return a case without its targets: what is usual among its samples is to be learnt."""
    rng = np.random.default_rng([case.seed, case.index, 2])
    case.task, case.loss, case.y = "novelty", "one_class", np.ones(len(case.y))
    case.numbers = (float(rng.choice([0.5, 0.1, 1.0, rng.uniform(0.02, 0.98)])),)
    for name in ("C", "multi_class"):
        case.parameters.pop(name, None)
    # the function tells samples from the origin, which is where it is
    case.parameters |= {"center": False, "fit_intercept": False}
    return case


def _structured(rng, m, precomputed) -> NormCase:
    """Draw a norm with numbers of its own; where kernels are computed, sometimes beside one that always counts."""
    name = str(rng.choice(STRUCTURED))
    held: tuple[tuple[int, float], ...] = ()
    if m > 1 and not precomputed and rng.random() < 0.3:
        held = ((int(rng.integers(m)), float(rng.choice([0.1, 1.0, 10.0]))),)
        name = str(rng.choice([*STRUCTURED, "l1", "max"]))
    mix = float(rng.choice([0.1, 0.5, 0.9]))
    if name == "at_most":
        return NormCase(name, float(rng.choice([1, 2, 3, m])), held=held)
    if name == "elastic":
        return NormCase(
            name, float(10.0 ** rng.uniform(-2, 1)), float(rng.choice([0.0, 1.2, 2.0])), held=held
        )
    if name == "entropy":
        return NormCase(name, 0.0, float(rng.choice([0.01, 1.0, 10.0])), held=held)
    if name == "lp":
        return NormCase(name, float(rng.choice([1.02, 1.2, 3.0, 32.0])), held=held)
    if name == "grouped":
        groups = tuple(int(g) for g in rng.integers(0, max(1, int(rng.integers(1, m + 1))), m))
        outer, inner = (float(p) for p in rng.choice([1.0, 1.0, 1.5, 2.0, 4.0], 2))
        return NormCase(name, outer, inner, groups=groups, held=held)
    return NormCase(name, mix if name.startswith("elastic") else 0.0, held=held)


def _several_targets(rng, case: Case) -> None:
    """Put more columns beside the target, with weights for all or for each; entries may be missing in the latter case."""
    n = len(case.y)
    t = n + 3 if rng.random() < 0.1 else int(rng.integers(2, 6))
    factors = np.where(rng.random(t) < 0.2, 10.0 ** rng.uniform(-3, 3, t), 1.0)
    noise = rng.normal(size=(n, t)) * max(float(np.std(case.y)), 0.1)
    case.y = (case.y[:, None] * rng.choice([-1.0, 0.0, 1.0], t) + noise) * factors
    if rng.random() < 0.15:
        case.y[:, -1] = 1.5
    case.parameters["multi_output"] = str(rng.choice(["shared", "each"]))
    if case.parameters["multi_output"] == "each" and rng.random() < 0.3:
        case.y[rng.random(case.y.shape) < 0.2] = np.nan
        case.y[:2] = 1.0
        case.tags.append("targets with gaps")
    case.tags.append(f"targets {case.parameters['multi_output']}")


def _with_criterion(rng, case: Case) -> None:
    """Let a criterion choose: which one is settled by the judge, who asks the library what there is."""
    case.criterion = int(rng.integers(1 << 16))
    if rng.random() < 0.4:
        _several_targets(rng, case)
    case.parameters["multi_output"] = "each"
    case.parameters["center"] = bool(rng.random() < 0.7)
    case.loss, case.numbers = "squared", ()
    case.parameters["solver"] = "auto"
    for name in ("C", "max_seconds"):
        case.parameters.pop(name, None)
    if np.ndim(case.y) == 1 and rng.random() < 0.1:
        case.y = case.y + 10.0 ** float(rng.integers(3, 9))
        case.tags.append("target offset")


def _incomplete(rng, n, codes, stack, tags):
    """Samples of which some lack views: tables with columns of their own, or matrices."""
    if stack is not None:
        stack = stack[: int(rng.integers(2, 5))]
        while len(stack) < 2:
            Z = rng.normal(size=(n, 3))
            stack = [*stack, Z @ Z.T]
        count = len(stack)
        views, kernels, X = [(j,) for j in range(count)], None, np.zeros((n, 1))
    else:
        count = int(rng.integers(2, 4))
        widths = rng.integers(1, 4, count)
        ends = np.cumsum(widths)
        views = [tuple(range(int(end - width), int(end))) for end, width in zip(ends, widths, strict=True)]
        cause = rng.normal(size=(n, 2)) + rng.normal(size=(codes.max() + 1, 2))[codes]
        X = cause @ rng.normal(size=(2, int(ends[-1]))) + rng.choice([0.1, 1.0]) * rng.normal(
            size=(n, int(ends[-1]))
        )
        kernels = []
        for columns in views:
            families = [
                KernelCase("gaussian", 1.0, True, columns),
                KernelCase("gaussian", 0.3, False, columns),
                KernelCase("linear", 1.0, False, columns),
                KernelCase("laplacian", 2.0, True, columns),
            ]
            chosen = sorted(rng.choice(4, int(rng.integers(1, 4)), replace=False))
            kernels += [families[i] for i in chosen]
    present = rng.random((n, count)) > rng.choice([0.1, 0.4])
    present[0] = True
    if rng.random() < 0.7:  # nobody without anything
        present[~present.any(axis=1), 0] = True
    tags.append("incomplete matrices" if stack is not None else "incomplete tables")
    return X, kernels, stack, present, views


def _pairs(rng, n):
    """Pairs of objects, the same one more than once at times: a row has the columns of both."""
    left, right = (rng.normal(size=(int(rng.integers(2, 9)), int(rng.integers(1, 4)))) for _ in range(2))
    X = np.hstack([left[rng.integers(len(left), size=n)], right[rng.integers(len(right), size=n)]])
    sides = []
    for first, last in ((0, left.shape[1]), (left.shape[1], X.shape[1])):
        columns = tuple(range(first, last))
        families = [KernelCase("linear", 1.0, False, columns), KernelCase("polynomial", 2, False, columns)]
        families += [KernelCase("gaussian", float(w), False, columns) for w in 10.0 ** rng.uniform(-1, 1, 2)]
        chosen = sorted(rng.choice(4, int(rng.integers(1, 4)), replace=False))
        # the library adds a constant and an identity to both sides, and leaves out the products of each with itself
        alone = [KernelCase("constant", columns=columns), KernelCase("identity", columns=columns)]
        sides.append([families[i] for i in chosen] + alone)
    kernels = [
        KernelCase("pair", factors=(one, other))
        for one in sides[0]
        for other in sides[1]
        if not one.family == other.family in ("constant", "identity")
    ]
    return np.ascontiguousarray(X), kernels, left.shape[1]


def _targets(rng, task, n, tags):
    if task in ("regression", "survival"):
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


def _times(rng, X, n, tags):
    """Times and events; of few values, all alike, nearly all censored, or none."""
    with np.errstate(all="ignore"):
        z = (X[:, 0] - X[:, 0].mean()) / (X[:, 0].std() or 1.0)
    dies = rng.exponential(np.exp(-rng.choice([0.0, 1.0, 3.0]) * np.clip(z, -5, 5)))
    until = rng.exponential(rng.choice([0.05, 1.0, 20.0]), n)
    kind = str(rng.choice(["smooth", "tied", "all tied", "scaled"], p=[0.4, 0.35, 0.05, 0.2]))
    time = np.minimum(dies, until) + 1e-6
    if kind == "tied":
        time = np.ceil(4.0 * time)
    elif kind == "all tied":
        time = np.full(n, 3.0)
    elif kind == "scaled":
        time = time * 10.0 ** float(rng.integers(-4, 5))
    y = np.empty(n, dtype=[("event", bool), ("time", float)])
    y["time"], y["event"] = time, dies <= until
    if not y["event"].any() and rng.random() < 0.9:
        y["event"][int(rng.integers(n))] = True
    tags.append(f"times {kind}")
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
    if loss == "quantile":
        return (float(rng.choice([0.05, 0.5, 0.9])),)
    if loss == "huber":
        return (float(rng.choice([0.1, 1.345, 30.0])),)
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
    whole = ("multiclass_hinge", "multinomial", "ordinal")
    if task == "several" and rng.random() < 0.35 and loss not in whole:
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


def loss_of(case: Case, joint: bool, columns: bool) -> RefLoss:
    """The loss whose objective the library minimises for several classes, as the docs say."""
    if case.task == "novelty":
        return one_class(*case.numbers)
    if case.loss == "multiclass_hinge" or (case.loss == "hinge" and joint and columns):
        return MULTICLASS_HINGE
    if case.loss == "multinomial" or (case.loss == "logistic" and joint and columns):
        return SOFTMAX
    return loss_named(case.loss, case.numbers)
