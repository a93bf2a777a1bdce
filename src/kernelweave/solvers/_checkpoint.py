"""Saving a fit as it goes on, so that a killed one can be resumed."""

from __future__ import annotations

import hashlib
import os
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..problems import MKLProblem, Point

__all__ = ["Checkpoint", "Saved"]


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds: the best point (its ``dual_beta`` attains the best bound) and how it came."""

    point: Point
    trace: list[tuple[float, ...]]
    seconds: float


class Checkpoint:
    """One NPZ file, replaced atomically at most every ``every`` seconds.

    The file carries a fingerprint of the problem; a file of another problem is refused rather than resumed from.
    """

    def __init__(self, path: str | Path, problem: MKLProblem, every: float = 1.0) -> None:
        self.path = Path(path)
        self.every = every
        self.fingerprint = fingerprint(problem)
        self.sample = kernel_sample(problem)
        self._last = -np.inf
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint folder {str(self.path.parent)!r} does not exist")

    def load(self) -> Saved | None:
        """Return what was saved, None where there is no file."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                found = {
                    name: file[name]
                    for name in ("fingerprint", "sample", "beta", "weights", "dual_beta", "trace", "seconds")
                }
        # an empty file is an EOFError, a plain array (no archive) a TypeError
        except (OSError, KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"checkpoint {str(self.path)!r} is damaged ({error}): delete it to start afresh"
            ) from error
        # the kernels are compared by value: computed anew they may differ in the last bits
        same = str(found["fingerprint"]) == self.fingerprint and np.allclose(
            found["sample"], self.sample, 1e-6
        )
        if not same:
            raise ValueError(
                f"checkpoint {str(self.path)!r} belongs to another problem (other data, kernels, loss, norm or C): "
                "delete it or give another file name"
            )
        trace = [tuple(float(x) for x in row) for row in found["trace"]]
        point = Point(found["beta"], found["weights"], dual_beta=found["dual_beta"])
        return Saved(point, trace, float(found["seconds"]))

    def save(
        self,
        point: Point,
        dual_beta: np.ndarray,
        trace: list[tuple[float, ...]],
        seconds: float,
        force: bool = False,
    ) -> None:
        """Write the best point, the coefficients of the best bound and the trace, unless that was just done."""
        now = time.monotonic()
        if not force and now - self._last < self.every:
            return
        self._last = now
        temporary = self.path.with_name(self.path.name + ".part")
        with temporary.open("wb") as file:
            np.savez(
                file,
                fingerprint=np.array(self.fingerprint),
                sample=self.sample,
                beta=point.beta,
                weights=point.weights,
                dual_beta=dual_beta,
                trace=np.array(trace),
                seconds=np.array(seconds),
            )
        os.replace(temporary, self.path)


def fingerprint(problem: MKLProblem) -> str:
    """Digest of what defines the problem beside the kernels: sizes, targets, costs, loss, norm."""
    digest = hashlib.sha256()
    digest.update(repr((problem.n, problem.m, problem.fit_intercept)).encode())
    for component in (problem.loss, problem.norm):
        digest.update(type(component).__name__.encode())
        for name, value in sorted(component.get_params().items()):
            array = np.asarray(value)  # a long array's repr leaves its middle out
            digest.update(name.encode())
            digest.update(array.tobytes() if array.dtype.kind in "biuf" else repr(value).encode())
    for array in (problem.y, problem.c):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def kernel_sample(problem: MKLProblem) -> np.ndarray:
    """Return a few entries of up to fifty kernels."""
    rows = np.linspace(0, problem.n - 1, min(problem.n, 5)).astype(int)
    kernels = np.linspace(0, problem.m - 1, min(problem.m, 50)).astype(int)
    return problem.bank.block(rows, rows, kernels)
