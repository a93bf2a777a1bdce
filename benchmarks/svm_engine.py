"""The SMO engine against libsvm (scikit-learn's SVC on a precomputed Gram matrix), cold and warm.

Run ``python benchmarks/svm_engine.py``; ``--quick`` leaves out the larger problems and writes nothing.
"""

from __future__ import annotations

import os

# One thread for every program, and before anything loads a BLAS.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse  # noqa: E402
import statistics  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402
from sklearn.datasets import make_classification  # noqa: E402
from sklearn.metrics.pairwise import rbf_kernel  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

from _report import machine, write_table  # noqa: E402
from kernelweave._numerics.smo import solve_box_qp  # noqa: E402

TOL = 1e-3
REPEATS = 5
NOTE = f"""One thread, seconds, median of {REPEATS} after compilation, both to the tolerance {TOL:g}; libsvm is
`SVC(kernel="precomputed", tol={TOL:g}, cache_size=1000)`, with shrinking. *Warm*: 5 % of the kernel weights
moved, and the engine started from the solution for the old ones; libsvm cannot be started, so it solves the new
problem from scratch. *Objective*: the relative difference of the dual objectives, positive where the engine's is
better. The last two rows give the range and the geometric mean of the ratios."""


def sample(n):
    x, y = make_classification(
        n, 20, n_informative=8, n_redundant=4, flip_y=0.05, class_sep=0.8, random_state=0
    )
    return (x - x.mean(axis=0)) / x.std(axis=0), 2.0 * y - 1.0


def grams(kind, x):
    """The Gram matrix, and the one after 5 % of the weight moved."""
    d = x.shape[1]
    if kind == "linear":
        parts, weights, moved = [x @ x.T / d, x[:, : d // 2] @ x[:, : d // 2].T / d], [1.0, 0.0], [0.95, 0.05]
    elif kind == "mixture of 6":
        parts = [rbf_kernel(x, gamma=g / d) for g in (0.03, 0.1, 0.3, 1.0, 3.0)] + [x @ x.T / d]
        weights = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
        moved = weights * np.array([0.95, 1.05, 0.95, 1.05, 0.95, 1.05])
    elif kind == "mixture of 2":
        parts = [rbf_kernel(x, gamma=0.2 / d), rbf_kernel(x, gamma=5.0 / d)]
        weights, moved = [0.7, 0.3], [0.65, 0.35]
    else:
        gamma = float(kind.split()[-1])
        parts, weights, moved = (
            [rbf_kernel(x, gamma=g / d) for g in (gamma, 2 * gamma)],
            [1.0, 0.0],
            [0.95, 0.05],
        )
    return tuple(
        np.ascontiguousarray(sum(w * part for w, part in zip(ws, parts, strict=True)))
        for ws in (weights, moved)
    )


def timed(*solvers):
    """Median seconds and last result of each; in turns, so that a busy moment is shared."""
    seconds, results = [[] for _ in solvers], [None for _ in solvers]
    for _ in range(REPEATS):
        for k, solve in enumerate(solvers):
            start = time.perf_counter()
            results[k] = solve()
            seconds[k].append(time.perf_counter() - start)
    return [(statistics.median(times), result) for times, result in zip(seconds, results, strict=True)]


def ours(K, y, c, beta=None):
    fit = solve_box_qp(K, y, np.minimum(0.0, c * y), np.maximum(0.0, c * y), tol=TOL, beta=beta)
    assert fit.converged
    return fit.beta, fit.iterations


def libsvm(K, y, c):
    model = SVC(C=c, kernel="precomputed", tol=TOL, cache_size=1000, shrinking=True).fit(K, y)
    beta = np.zeros(y.size)
    beta[model.support_] = model.dual_coef_[0]
    return beta, int(model.n_iter_[0])


def difference(K, y, beta, other):
    """Relative difference of the dual objectives of two sets of coefficients."""
    values = [y @ b - 0.5 * b @ K @ b for b in (beta, other)]
    return float((values[0] - values[1]) / abs(values[1]))


def case(kind, n, c):
    x, y = sample(n)
    K, moved = grams(kind, x)
    (cold, (beta, steps)), (libsvm_cold, (other, libsvm_steps)) = timed(
        lambda: ours(K, y, c), lambda: libsvm(K, y, c)
    )
    (warm, (beta_moved, _)), (libsvm_moved, (other_moved, _)) = timed(
        lambda: ours(moved, y, c, beta), lambda: libsvm(moved, y, c)
    )
    return {
        "kernel": kind,
        "n": n,
        "C": c,
        "free": int(np.sum((np.abs(beta) > 0.0) & (np.abs(beta) < c))),
        "steps": steps,
        "libsvm steps": libsvm_steps,
        "cold": cold,
        "libsvm": libsvm_cold,
        "cold ratio": libsvm_cold / cold,
        "objective": difference(K, y, beta, other),
        "warm": warm,
        "libsvm, moved": libsvm_moved,
        "warm ratio": libsvm_moved / warm,
        "warm objective": difference(moved, y, beta_moved, other_moved),
    }


def summary(rows):
    """The range and the geometric mean of the ratios, as rows of the same table."""
    blank = dict.fromkeys(rows[0], "")
    ends, means = blank | {"kernel": "range"}, blank | {"kernel": "geometric mean"}
    for key in ("cold ratio", "warm ratio"):
        ratios = [row[key] for row in rows]
        ends[key] = f"{min(ratios):.2f} to {max(ratios):.2f}"
        means[key] = float(np.exp(np.mean(np.log(ratios))))
    return [ends, means]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="n = 500 only, nothing is written")
    quick = parser.parse_args().quick
    print(machine())
    x, y = sample(60)
    ours(grams("linear", x)[0], y, 1.0)
    rows = []
    kinds = (
        "gaussian 0.1",
        "gaussian 0.5",
        "gaussian 1",
        "gaussian 5",
        "linear",
        "mixture of 2",
        "mixture of 6",
    )
    for kind in kinds:
        for n in (500,) if quick else (500, 1000, 2000):
            for c in (1.0, 100.0):
                rows.append(case(kind, n, c))
                shown = {k: f"{v:.3g}" if isinstance(v, float) else v for k, v in rows[-1].items()}
                print("  ".join(f"{k} {v}" for k, v in shown.items()), flush=True)
    rows += summary(rows)
    print(rows[-2]["cold ratio"], rows[-2]["warm ratio"], rows[-1]["cold ratio"], rows[-1]["warm ratio"])
    if not quick:
        write_table("svm_engine", rows, "python benchmarks/svm_engine.py", NOTE)


if __name__ == "__main__":
    main()
