"""Kill fits at random moments, resume them from their checkpoint, and judge what comes out.

    python -m tests.judge.kills --kills 60 --seed 7

A trial is a random problem and solver.  The fit runs in a process that saves at every iteration and is killed
(SIGKILL) at a random moment, half of the times a second time after it was resumed; then it is resumed to the end.  A
trial survives if the end is certified: both bounds, recomputed here from their definition, are as close as was asked.
Prints tried and survived, and exits with 1 where a trial did not survive.
"""

from __future__ import annotations

import argparse
import os
import pickle
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelweave import MKLClassifier
from kernelweave.solvers import _checkpoint

SOLVERS = ("level", "silp", "simplemkl", "subgradient", "newton")
TOL = 1e-6


@dataclass(frozen=True)
class Trial:
    """One problem with its solver: kernel matrices, labels -1 and 1, and C."""

    kernels: np.ndarray
    y: np.ndarray
    C: float
    solver: str

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Trial:
        """Draw a problem that takes a fit some tenths of a second."""
        n, m = int(rng.integers(40, 120)), int(rng.integers(3, 12))
        X = rng.normal(size=(n, m))
        y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
        widths = rng.uniform(0.3, 3.0, size=m)
        squares = (X.T[:, :, None] - X.T[:, None, :]) ** 2
        return cls(
            np.exp(-squares / widths[:, None, None]),
            y,
            float(10 ** rng.uniform(-1, 1)),
            str(rng.choice(SOLVERS)),
        )

    def fit(self, path: Path, pause: float = 0.0) -> MKLClassifier:
        """Fit with a checkpoint, taking ``pause`` seconds more for every iteration."""
        model = MKLClassifier(
            "precomputed", C=self.C, solver=self.solver, tol=TOL, normalize=None, checkpoint=path,
            callback=lambda row: time.sleep(pause),
        )  # fmt: skip
        return model.fit(self.kernels, self.y)

    def gap(self, model: MKLClassifier) -> float:
        """Return the relative gap, both bounds recomputed from (1) and (3) of docs/notation.md."""
        beta, d, u = model.dual_coef_, model.weights_, model.certificate_.dual_point
        products = self.kernels @ beta
        f = d @ products + model.intercept_
        norms = d * np.sqrt(np.maximum(products @ beta, 0.0))
        primal = 0.5 * np.sum(norms) ** 2 + self.C * np.sum(np.maximum(0.0, 1.0 - self.y * f))
        slack = 1e-9 * self.C
        assert np.all((self.y * u >= -slack) & (self.y * u <= self.C + slack)), "not in the box"
        assert abs(np.sum(u)) <= slack * u.size, "does not sum to zero"
        dual = self.y @ u - 0.5 * np.max(np.einsum("i,mij,j->m", u, self.kernels, u))
        assert dual <= primal * (1 + 1e-9), "the bounds contradict each other"
        return float((primal - dual) / primal)


def killed(trial: Trial, path: Path, moment: float) -> bool:
    """Fit in a process that is killed after so many seconds; return whether it was killed before it was done."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            trial.fit(path, pause=0.002)
            code = 0
        finally:
            os._exit(code)
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the fit failed before it was killed"
    return os.WIFSIGNALED(status)


def survives(trial: Trial, folder: Path, rng: np.random.Generator) -> str:
    """Kill, resume, judge; return what became of it."""
    path = folder / "fit.npz"
    began = time.perf_counter()
    trial.fit(folder / "undisturbed.npz", pause=0.002)
    whole = time.perf_counter() - began
    kills = sum(killed(trial, path, rng.uniform(0.0, 1.1 * whole)) for _ in range(int(rng.integers(1, 3))))
    resumed = path.exists()
    model = trial.fit(path)
    gap = trial.gap(model)
    assert model.status_ == "converged", model.status_
    assert gap <= TOL * (1 + 1e-3) + 1e-12, f"a gap of {gap:.2g}"
    first = int(model.trace_["iteration"].iloc[0])
    assert first == 1, "the table does not begin at the beginning"
    return f"{kills} kills, {'resumed' if resumed else 'nothing saved yet'}"


def main() -> int:
    """Run the trials; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=60, help="trials")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    _checkpoint.Checkpoint.__init__.__defaults__ = (0.0,)  # at every iteration, and not every second
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as warm:  # compile before there is a clock
        for solver in SOLVERS:
            trial = Trial.draw(np.random.default_rng(0))
            Trial(trial.kernels, trial.y, trial.C, solver).fit(Path(warm) / f"{solver}.npz")
    outcomes: dict[str, int] = {}
    failures = 0
    for number in range(options.kills):
        trial = Trial.draw(rng)
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcome = survives(trial, Path(folder), rng)
            except Exception as error:
                failures += 1
                outcome = f"FAILED with {trial.solver}"
                kept = Path(tempfile.mkdtemp(prefix="kills-")) / "trial.pickle"
                kept.write_bytes(pickle.dumps(trial))
                print(f"trial {number} ({kept}): {type(error).__name__}: {error}", file=sys.stderr)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    print(f"kills at random moments: tried {options.kills}, survived {options.kills - failures}")
    for outcome, count in sorted(outcomes.items()):
        print(f"  {count:4d}  {outcome}")
    return int(failures > 0)


if __name__ == "__main__":
    raise SystemExit(main())
