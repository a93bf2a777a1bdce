"""Files from which a killed fit goes on."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import stat
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import Array
from ..exceptions import KernelWeaveWarning, warn_at_caller
from ..problems import MKLProblem, Point

TRACE_COLUMNS = ("iteration", "seconds", "passes", "primal", "dual", "relative_gap", "active_kernels")

#: seconds after which a half-written file of a process that is gone is taken away
STALE = 60.0


@dataclass(frozen=True)
class Saved:
    """Content of a checkpoint: the best point (its ``dual_beta`` attains the best bound) and how it came."""

    point: Point
    trace: list[tuple[float, ...]]
    seconds: float


class Checkpoint:
    """One NPZ file, replaced atomically at most every ``every`` seconds; a file of another problem is refused."""

    def __init__(self, path: str | Path, problem: MKLProblem, every: float = 1.0) -> None:
        self.path = check_place(path)
        self.every = every
        self.fingerprint = fingerprint(problem)
        # a few entries of up to fifty kernels
        rows = np.linspace(0, problem.n - 1, min(problem.n, 5)).astype(int)
        kernels = np.linspace(0, problem.m - 1, min(problem.m, 50)).astype(int)
        self.sample = problem.bank.block(rows, rows, kernels)
        shape = problem.y.shape
        self._shapes = {"beta": shape, "dual_beta": shape, "weights": (problem.m,), "seconds": ()}
        self._last = -np.inf
        self._warned = False
        #: beginning of the names of half-written files: which checkpoint, and on which machine
        self._prefix = f".{self.path.name}.{platform.node()}-"
        # half-written files of processes on this machine that were killed are taken away
        with contextlib.suppress(OSError):
            for part in self.path.parent.iterdir():
                if not (part.name.startswith(self._prefix) and part.name.endswith(".part")):
                    continue
                process = part.name[len(self._prefix) :].split("-")[0]
                with contextlib.suppress(OSError):
                    old = time.time() - part.lstat().st_mtime > STALE
                    if old and process.isdigit() and not _alive(int(process)):
                        part.unlink()

    def load(self) -> Saved | None:
        """Return what was saved, None where there is no file."""
        # no link is followed, and a pipe that has come there is not waited for
        flags = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
        try:
            with os.fdopen(os.open(self.path, flags), "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise OSError("not a regular file")
                with np.load(file, allow_pickle=False) as archive:
                    # the arrays are stored as they are: together they are no larger than the file
                    if sum(member.file_size for member in archive.zip.infolist()) > status.st_size:
                        raise ValueError("it says to hold more than it does")
                    names = ("fingerprint", "sample", "beta", "weights", "dual_beta", "trace", "seconds")
                    contents = {name: archive[name] for name in names}
        except FileNotFoundError:
            return None
        except Exception as error:  # a damaged archive can make its readers raise anything
            raise self.damaged(str(error) or type(error).__name__) from error
        self._check(contents)
        trace = [tuple(float(x) for x in row) for row in contents["trace"]]
        point = Point(contents["beta"], contents["weights"], dual_beta=contents["dual_beta"])
        return Saved(point, trace, float(contents["seconds"]))

    def damaged(self, why: str) -> ValueError:
        """Return the error for contents that no fit writes."""
        return ValueError(f"checkpoint {str(self.path)!r} is damaged ({why}): delete it to start afresh")

    def _check(self, contents: Mapping[str, Any]) -> None:
        """Refuse what no fit writes, then another problem's file, then what a fit of this problem does not write."""
        if contents["fingerprint"].dtype.kind != "U" or contents["fingerprint"].shape != ():
            raise self.damaged("the fingerprint is no text")
        for name in ("sample", "beta", "weights", "dual_beta", "trace", "seconds"):
            if contents[name].dtype != np.float64:
                raise self.damaged(f"{name} holds {contents[name].dtype} instead of float64")
            if not np.all(np.isfinite(contents[name])):
                raise self.damaged(f"{name} is not finite")
        # kernels are compared by value: computed again they may differ in the last bits
        sample = contents["sample"]
        same_kernels = sample.shape == self.sample.shape and np.allclose(sample, self.sample, 1e-6)
        if str(contents["fingerprint"]) != self.fingerprint or not same_kernels:
            raise ValueError(
                f"checkpoint {str(self.path)!r} belongs to another problem (other data, kernels, loss, norm or C): "
                "delete it or give another file name"
            )
        for name, shape in self._shapes.items():
            if contents[name].shape != shape:
                raise self.damaged(f"{name} has the shape {contents[name].shape} instead of {shape}")
        if contents["trace"].ndim != 2 or contents["trace"].shape[1] != len(TRACE_COLUMNS):
            raise self.damaged(f"the trace has the shape {contents['trace'].shape}")
        if np.any(contents["weights"] < 0):
            raise self.damaged("a kernel weight is negative")
        if not np.any(contents["weights"] > 0):
            raise self.damaged("all kernel weights are zero")
        if contents["seconds"] < 0:
            raise self.damaged("the time spent is negative")

    def save(
        self, point: Point, dual_beta: Array, trace: Sequence[Any], seconds: float, force: bool = False
    ) -> None:
        """Write the best point, the coefficients of the best bound and the trace, unless that was just done.

        A disk that is full, or gone, costs the checkpoint and not the fit: a warning says so, once.
        """
        if not force and time.monotonic() - self._last < self.every:
            return
        numbers = {"beta": point.beta, "weights": point.weights, "dual_beta": dual_beta, "seconds": seconds}
        arrays = {name: np.asarray(value, dtype=float) for name, value in numbers.items()}
        arrays["trace"] = np.array(trace, dtype=float).reshape(-1, len(TRACE_COLUMNS))
        try:
            self._replace(fingerprint=np.array(self.fingerprint), sample=self.sample, **arrays)
        except OSError as error:
            if not self._warned:
                self._warned = True
                warn_at_caller(
                    f"checkpoint {str(self.path)!r} cannot be written ({error.strerror or error}): the fit goes on "
                    "without; what was saved before, if anything, is still there",
                    KernelWeaveWarning,
                )
        # after the work: a slow disk does not get slower by being asked more often
        self._last = time.monotonic()

    def _replace(self, **arrays: np.ndarray) -> None:
        """Write a file of its own name in the same folder, make sure it is on the disk, and let it take the place."""
        prefix = f"{self._prefix}{os.getpid()}-"
        handle, name = tempfile.mkstemp(prefix=prefix, suffix=".part", dir=self.path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.path)  # a link that has come there is replaced, not followed
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        with contextlib.suppress(OSError):  # not every system lets folders be opened
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)  # the new name lasts
            finally:
                os.close(folder)


def check_place(path: str | Path) -> Path:
    """Refuse a checkpoint where there is no folder for it, or where something else than a file is in its place."""
    try:
        place = Path(path)
    except TypeError:
        raise ValueError(f"checkpoint must be the name of a file, got {path!r}") from None
    if not place.parent.is_dir():
        raise ValueError(f"checkpoint folder {str(place.parent)!r} does not exist")
    try:
        mode = place.lstat().st_mode
    except FileNotFoundError:
        if os.access(place.parent, os.W_OK):
            return place
        raise ValueError(f"checkpoint folder {str(place.parent)!r} cannot be written to") from None
    except (OSError, ValueError) as error:  # a name too long, or with a NUL in it
        raise ValueError(f"checkpoint {str(place)!r} is no name for a file: {error}") from error
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFDIR: "a folder", stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe"}
        found = kinds.get(stat.S_IFMT(mode), "a device or a socket")
        raise ValueError(
            f"checkpoint {str(place)!r} is {found}: give the name of a file, new or written by a fit"
        )
    return place


def _alive(process: int) -> bool:
    if os.name == "nt":  # where asking is killing
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


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
