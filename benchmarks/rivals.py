"""Seconds, memory and passes to a certified optimum, beside what else there is for many kernels.

Run ``python benchmarks/rivals.py`` where the extra ``rivals`` is installed (a missing rival is listed as such);
``--quick`` takes the small problem, one run each, and writes nothing.

One kernel, because people will try it: an SVM path by cross-validation, and one large SVM, beside libsvm.

Run ``python benchmarks/rivals.py single`` (``path`` or ``digits`` for one of them; ``--quick`` takes smaller problems
and writes nothing).  The digits are MNIST's from the folder named by ``KERNELWEAVE_DATA``; without it a generated
problem of that size stands in, and says so."""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from _measure import (
    GB,
    Targets,
    answer,
    counted,
    generated,
    in_child,
    machine,
    peak,
    pin,
    reset_peak,
    resident,
    run_part,
    show,
    write_table,
)
from kernelweave import MeanKernelRidgeClassifier, MKLClassifier, MKLClassifierCV
from kernelweave import kernels as kw
from kernelweave.banks import build_bank
from kernelweave.exceptions import KernelWeaveWarning
from kernelweave.losses import Hinge
from kernelweave.norms import L1
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, choose_solver, make_solver, solve
from kernelweave_studies.datasets import load_mnist, load_uci

# The two problems, and the programs that take part; rivals are imported when they are run.

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
        return build_bank(kw.preset("stpmkl").expand(kw.Schema(data.X.shape[1])), data.X)

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


#: seconds after which one run is enough
LONG = 10.0
COLUMNS = (
    "seconds", "CPU seconds", "CPU seconds, kernels given", "extra memory, GB", "certified gap", "passes", "SVMs",
    "kernels in use", "accuracy",
)  # fmt: skip
NOTE = """The kernels: Gaussians of widths 2^-3..2^6 on all features and on every single one, trace-normalised (their
diagonal is 1); features standardised on the training rows. One thread, after compilation, every program on the same
kernels; medians of {repeats}, of one run where that took more than {long:g} s.

- *small*: {small}.
- *mid*: {mid}.

kernelweave: l1 norm, hinge loss, C = {C:g}, with an intercept, stopped at a **certified relative gap of {tol:g}**,
no tuning. SVC on the mean kernel: C = {C:g}, with an intercept, its own stopping (tol = 1e-3). Ridge on the mean
kernel: C by leave-one-out among 41 values. EasyMKL of MKLpy: another objective (the margin distribution), lam = 0.1
as by default, its own stopping, no certificate. himalaya: another objective (ridge on -1 and 1), random search over
{random_small} (small) and {random_mid} (mid) random weightings, 7 values of the ridge by 5-fold cross-validation,
with an intercept, no certificate. skglm: group lasso with the squared loss on 20 Nystroem features a kernel, at a
twentieth of the penalty that leaves nothing, its own stopping (1e-4), another objective on other features, no
certificate.

*Seconds*: from samples to a fitted model, the kernel matrices included, by the clock; *CPU seconds*: those of the one
thread, which a busy machine disturbs less; *kernels given*: without computing the matrices (a bank here, a numpy stack
for the rivals). *Extra memory*: peak resident memory of such a fit above what the process had before, in a
process of its own. *Passes*: entries of the (m, n, n) tensor read, over m n^2, the final certificate included.
*SVMs*: inner solves. *Accuracy*: on the test rows, for orientation: one split, no tuning.

{targets}"""


class Timed(NamedTuple):
    """Median seconds of the repetitions: by the clock, and of the processor."""

    wall: float
    cpu: float


def timed(function: Callable[[], Any], repeats: int, first: Timed | None = None) -> Timed:
    """Time a function several times, once where that took long; a first run that took very long is that one."""
    if first is not None and first.wall > 3 * LONG:
        return first
    runs: list[Timed] = []
    while len(runs) < repeats and not (runs and runs[0].wall > LONG):
        gc.collect()
        runs.append(once(function)[0])
    return Timed(statistics.median(run.wall for run in runs), statistics.median(run.cpu for run in runs))


def once(function: Callable[[], Any]) -> tuple[Timed, Any]:
    """One run: its seconds, and what it returned."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return Timed(time.perf_counter() - wall, time.process_time() - cpu), result


def measured(method: Method, data: Data, repeats: int) -> dict[str, Any]:
    """One line of the table."""
    row: dict[str, Any] = {"problem": data.title, "method": method.name}
    row |= dict.fromkeys(COLUMNS, "")
    if not method.installed:
        return row | {"seconds": "not installed"}
    try:
        with counted() as counts:
            first, model = once(lambda: method.whole(data))  # compiles what is left, and is counted
        row["accuracy"] = float(np.mean(method.labels(data, model) == data.y_test))
        row["certified gap"] = max(model.certificate_.relative_gap, 0.0) if method.certified else "no"
        if isinstance(model, MKLClassifier):
            row |= {"passes": model.n_passes_, "SVMs": counts.solves}
            row["kernels in use"] = int(np.count_nonzero(model.weights_))
        del model
        row["seconds"], row["CPU seconds"] = timed(lambda: method.whole(data), repeats, first)
        if method.kernels is not None and method.fit is not None:
            kernels = method.kernels(data)
            row["CPU seconds, kernels given"] = timed(lambda: method.fit(data, kernels), repeats).cpu
            del kernels
        row["extra memory, GB"] = in_child(__file__, method.name, problem=data.name)["extra"] / GB
    except Exception as error:  # a rival that fails is a line of the table, not the end of it
        if method.package is None:
            raise
        row["seconds"] = f"failed: {type(error).__name__}"
        warnings.warn(f"{method.name} on {data.name}: {error}", stacklevel=1)
    return row


def memory_of(name: str, problem: str) -> None:
    """In a child: the extra peak memory of one whole fit, after one on a few rows that loads and compiles."""
    method = next(known for known in METHODS if known.name == name)
    data = PROBLEMS[problem]()
    few = np.r_[np.flatnonzero(data.y > 0)[:20], np.flatnonzero(data.y < 0)[:20]]
    method.whole(Data(data.name, data.X[few], data.y[few], data.X_test, data.y_test, ""))
    gc.collect()
    before = resident()
    reset_peak()
    model = method.whole(data)
    answer({"extra": peak() - before})
    del model


def targets_of(rows: list[dict[str, Any]]) -> Targets:
    """What the project asks of itself."""
    targets = Targets()

    def cell(problem: str, method: str, column: str) -> Any:
        return next(
            r[column] for r in rows if r["problem"].startswith(problem) and r["method"].startswith(method)
        )

    for problem, limit, memory, easy, himalaya in (
        ("small", 0.05, 0.5, 3.0, 1.0),
        ("mid", 10.0, 0.5, 4.0, 100.0),
    ):
        if not any(r["problem"].startswith(problem) for r in rows):
            continue
        ours = "kernelweave, auto"
        seconds = cell(problem, ours, "seconds")
        targets.at_most(f"{problem}: seconds from samples to a certified gap of {TOL:g}", seconds, limit)
        targets.at_most(f"{problem}: extra memory, GB", cell(problem, ours, "extra memory, GB"), memory)
        targets.at_most(f"{problem}: certified relative gap", cell(problem, ours, "certified gap"), TOL)
        for rival, least in (("MKLpy EasyMKL", easy), ("himalaya", himalaya)):
            theirs = cell(problem, rival, "CPU seconds")
            if isinstance(theirs, float):
                ratio = theirs / cell(problem, ours, "CPU seconds")
                targets.at_least(f"{problem}: {rival} takes this many times as long (CPU)", ratio, least)
    return targets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="the small problem, one run each, nothing is written"
    )
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--parameters", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    pin()
    warnings.simplefilter("ignore", FutureWarning)
    if arguments.case:
        memory_of(arguments.case, **json.loads(arguments.parameters))
        return
    print(machine())
    repeats = {"small": 1} if arguments.quick else {"small": 5, "mid": 5}
    rows, sources = [], {}
    for name, times in repeats.items():
        data = PROBLEMS[name]()
        sources[name] = data.source
        for method in METHODS:
            if name in method.problems:
                rows.append(measured(method, data, times))
                print(f"{name}, {method.name}: {rows[-1]['seconds']} s", flush=True)
    show(rows)
    targets = targets_of(rows)
    if not arguments.quick:
        note = NOTE.format(
            repeats="5", long=LONG, C=C, tol=TOL, targets=targets.text(), **sources,
            random_small=RANDOM_SEARCH["small"], random_mid=RANDOM_SEARCH["mid"],
        )  # fmt: skip
        write_table("rivals", rows, "python benchmarks/rivals.py", note)


# One kernel, beside libsvm.

SINGLE_TOL = 1e-3
#: values of C, as many as TorchKM takes
VALUES, FOLDS = 50, 5
SINGLE_NOTE = """One Gaussian kernel, hinge loss with an intercept, one thread, after compilation; seconds of the
processor, medians of {repeats} runs in turns.

- *path*: {values} values of C from 1e-2 to 1e3 by {folds} folds in one call, the job that TorchKM is made for, and a
  last fit of all samples: `MKLClassifierCV` to a certified gap of {tol:g} beside `GridSearchCV(SVC)` at libsvm's own
  tolerance; the same folds, values of C and width. {path}
- *digits*: one SVM, C = 10: `MKLClassifier` to a certified gap of {tol:g} beside `SVC` at its default tolerance (1e-3
  of the gradient) and its default cache of 200 MB. {digits}

*Accuracy*: of the C that was chosen, over the folds (path); on other rows (digits).

{targets}"""


class Problem(NamedTuple):
    """Rows for training and for testing, and where they come from."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    source: str


def digits(n: int) -> Problem:
    """Even against odd digits on 16 x 16 pixels, or a generated problem of that size."""
    try:
        images = load_mnist()
        X = np.concatenate([_halved(images.data[:n]), _halved(images.test_data[:2000])])
        y = np.concatenate([images.target[:n], images.test_target[:2000]]) % 2
        source = f"MNIST's first {n:,} digits on 16 x 16 pixels, even against odd; tested on 2,000 of its test set."
    except FileNotFoundError:
        X, y = make_classification(
            n + 2000, 256, n_informative=40, n_redundant=100, flip_y=0.02, random_state=0
        )
        X = StandardScaler().fit_transform(X)
        source = f"Generated (`make_classification`): {n:,} training rows, 256 features, 2,000 test rows."
    return Problem(X[:n], y[:n], X[n:], y[n:], source)


def _halved(images: np.ndarray) -> np.ndarray:
    """28 x 28 pixels, with a margin, as means of 2 x 2: 16 x 16."""
    framed = np.pad(images.reshape(-1, 28, 28), ((0, 0), (2, 2), (2, 2)))
    return framed.reshape(-1, 16, 2, 16, 2).mean(axis=(2, 4)).reshape(-1, 256)


def typical_width(X: np.ndarray) -> float:
    """Median distance between rows."""
    some = X[:: max(1, len(X) // 300)]
    squares = np.sum((some[:, None, :] - some[None, :, :]) ** 2, axis=2)
    return float(np.sqrt(np.median(squares[np.triu_indices(len(some), 1)])))


def seconds_of(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, and what came out."""
    began = time.process_time()
    made = function()
    return time.process_time() - began, made


def in_turns(methods: dict[str, Callable[[], Any]], repeats: int) -> dict[str, tuple[float, Any]]:
    """Median seconds of every method, and its last result."""
    runs: dict[str, list[tuple[float, Any]]] = {name: [] for name in methods}
    for _ in range(repeats):
        for name, method in methods.items():
            runs[name].append(seconds_of(method))
    return {name: (statistics.median(run[0] for run in done), done[-1][1]) for name, done in runs.items()}


def path_rows(n: int, repeats: int) -> tuple[list[dict[str, Any]], str]:
    """Cross-validation over C on one Gaussian."""
    problem = generated(n, 10)
    X, y = problem.X, problem.y
    width = typical_width(X)
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))
    Cs = np.logspace(-2, 3, VALUES)
    gamma = 0.5 / width**2

    def ours() -> Any:
        return MKLClassifierCV(kw.gaussian(width), Cs=Cs, cv=folds, tol=SINGLE_TOL).fit(X, y)

    def theirs() -> Any:
        return GridSearchCV(SVC(gamma=gamma), {"C": Cs}, cv=folds).fit(X, y)

    found = in_turns({"kernelweave": ours, "GridSearchCV(SVC)": theirs}, repeats)
    rows = []
    for name, (seconds, model) in found.items():
        C = float(model.C_) if name == "kernelweave" else model.best_params_["C"]
        accuracy = float(np.mean(cross_val_score(SVC(gamma=gamma, C=C), X, y, cv=folds)))
        gap = model.certificate_.relative_gap if name == "kernelweave" else "no"
        rows.append(
            {"job": "path", "n": n, "method": name, "CPU seconds": seconds, "C": C, "accuracy": accuracy,
             "certified gap": gap}
        )  # fmt: skip
    return rows, f"n = {n:,}, 10 features, {problem.source}."


def digit_rows(n: int, repeats: int) -> tuple[list[dict[str, Any]], str]:
    """One SVM on images."""
    data = digits(n)
    width = typical_width(data.X)

    def ours() -> Any:
        return MKLClassifier(kw.gaussian(width), C=10.0, tol=SINGLE_TOL).fit(data.X, data.y)

    def theirs() -> Any:
        return SVC(gamma=0.5 / width**2, C=10.0).fit(data.X, data.y)

    rows = []
    for name, (seconds, model) in in_turns({"kernelweave": ours, "SVC": theirs}, repeats).items():
        gap = model.certificate_.relative_gap if name == "kernelweave" else "no"
        rows.append(
            {"job": "digits", "n": n, "method": name, "CPU seconds": seconds, "C": 10.0,
             "accuracy": float(np.mean(model.predict(data.X_test) == data.y_test)), "certified gap": gap}
        )  # fmt: skip
    return rows, data.source


def single_targets(rows: list[dict[str, Any]]) -> Targets:
    """No slower than libsvm, at the same accuracy and with a certificate."""
    targets = Targets()
    for job in dict.fromkeys(row["job"] for row in rows):
        ours, theirs = (row for row in rows if row["job"] == job)
        ratio = theirs["CPU seconds"] / ours["CPU seconds"]
        targets.at_least(f"{job}: {theirs['method']} takes this many times as long (CPU)", ratio, 1.0)
        targets.at_least(
            f"{job}: accuracy over that of {theirs['method']}", ours["accuracy"] / theirs["accuracy"], 0.995
        )
        targets.at_most(f"{job}: certified relative gap", max(ours["certified gap"], 0.0), SINGLE_TOL)
    return targets


def single_main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", help="one of the two jobs")
    parser.add_argument(
        "--quick", action="store_true", help="smaller problems, one run each, nothing is written"
    )
    arguments = parser.parse_args()
    pin()
    warnings.simplefilter("ignore", KernelWeaveWarning)
    print(machine())
    MKLClassifier(kw.gaussian(1.0)).fit(*_few())  # compiles
    repeats = 1 if arguments.quick else 3
    sizes = {"path": 400, "digits": 1500} if arguments.quick else {"path": 2000, "digits": 7000}
    makers = {"path": path_rows, "digits": digit_rows}
    rows, sources = [], {"path": "Not run this time.", "digits": "Not run this time."}
    for job in arguments.jobs or makers:
        found, sources[job] = makers[job](sizes[job], repeats)
        rows += found
        show(found)
    targets = single_targets(rows)
    if not arguments.quick and not arguments.jobs:
        note = SINGLE_NOTE.format(
            repeats=repeats, values=VALUES, folds=FOLDS, tol=SINGLE_TOL, targets=targets.text(), **sources
        )
        write_table("single", rows, "python benchmarks/rivals.py single", note)


def _few() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, np.sign(X[:, 0] + 0.1)


if __name__ == "__main__":
    run_part(main, single=single_main)
