"""The best point of a run so far, the table of its iterations, and files from which a killed fit goes on."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import stat
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..exceptions import KernelWeaveWarning, warn_at_caller
from ..problems import Certificate, MKLProblem, Point

# ------------------------------------------------------------------------------------------------------------
# The best point of a run so far, and the table of its iterations.


TRACE_COLUMNS = ("iteration", "seconds", "passes", "primal", "dual", "relative_gap", "active_kernels")

#: share of the objective by which the function that is zero has to be better
NOTICEABLE = 1e-6
#: share of the gap that an iteration has to close, not to be idle
PROGRESS = 1e-2


class Best:
    """Best primal and best dual so far, each from its own point, and a table with one row per iteration."""

    def __init__(self, keeps_last: bool = False) -> None:
        self.keeps_last = keeps_last
        self.point: Point | None = None
        self.certificate: Certificate | None = None
        self.trace: list[tuple[float, ...]] = []
        #: iterations since the bounds came noticeably closer
        self.idle = 0

    @property
    def gap(self) -> float:
        """Relative gap between the best bounds; infinite before there are any."""
        return self.certificate.relative_gap if self.certificate is not None else np.inf

    @property
    def two_passes(self) -> float:
        """Seconds of two passes over the bank, or less: by the iteration that took the least for its passes."""
        steps = np.diff(np.array(self.trace)[:, 1:3], axis=0, prepend=0.0)
        read = steps[:, 1] > 0
        return 2.0 * float(np.min(steps[read, 0] / steps[read, 1])) if np.any(read) else 0.0

    @property
    def row(self) -> dict[str, float]:
        """Last row of the table, by the names of its columns."""
        return dict(zip(TRACE_COLUMNS, self.trace[-1], strict=True))

    def improve(self, point: Point, judged: Certificate) -> None:
        """Take a last point without a row of its own."""
        assert self.certificate is not None
        # coefficients shared by all kernels are what predicts: blocks with their own give way to them
        wanted = self.point is not None and self.point.blocks is not None and point.blocks is None
        if judged.primal < self.certificate.primal or wanted or self.keeps_last:
            self.point, self.certificate = point, judged.with_dual_of(self.certificate)
        else:
            self.certificate = self.certificate.with_dual_of(judged)

    def no_worse_than_zero(self, problem: MKLProblem) -> None:
        """Take the function that is zero where it is better than anything found: then digits are gone."""
        if self.certificate is None or not hasattr(problem, "at_zero"):  # another judge
            return
        point, judged = problem.at_zero
        # not for rounding alone: coefficients that cost as much may prove a better bound
        if not self.certificate.primal - judged.primal <= NOTICEABLE * abs(judged.primal):
            self.point, self.certificate = point, judged.with_dual_of(self.certificate)

    def share_coefficients(self, problem: MKLProblem) -> None:
        """Exchange blocks with coefficients of their own, where a fit was cut short, for what can predict."""
        if self.point is not None and self.certificate is not None and self.point.blocks is not None:
            self.point = without_caches(self.point)
            self.certificate = problem.certificate(self.point).with_dual_of(self.certificate)

    def take(self, point: Point, judged: Certificate, iteration: int, seconds: float, passes: float) -> None:
        """Take the point of an iteration, and add its row to the table."""
        if self.certificate is None:
            self.point, self.certificate = point, judged
        else:
            self.improve(point, judged)
        active = int(np.count_nonzero(point.weights))
        now = self.certificate
        assert now is not None
        left = self.trace[-1][3] - self.trace[-1][4] if self.trace else np.inf
        # bounds that cross are rounding, and closer ones no progress
        self.idle = 0 if 0.0 <= now.gap < (1.0 - PROGRESS) * left else self.idle + 1
        self.trace.append((iteration, seconds, passes, now.primal, now.dual, now.relative_gap, active))


def without_caches(point: Point) -> Point:
    """Return the bare point, so that a certificate of it is computed from the bank alone."""
    return replace(
        point, quad=None, decision=None, dual_beta=None, dual_quad=None, blocks=None, cuts_bound=None
    )


#: seconds after which a half-written file of a process that is gone is taken away
STALE = 60.0


@dataclass(frozen=True)
class Saved:
    """Content of a checkpoint: the best point (its ``dual_beta`` attains the best bound) and how it came."""

    point: Point
    trace: list[tuple[float, ...]]
    seconds: float


class Checkpoint:
    """One NPZ file, replaced atomically at most every ``every`` seconds.

    The file carries a fingerprint of the problem; a file of another problem is refused rather than resumed from.  A
    reader sees the old file or the new one, whole, whatever happens to the writer, and however many write.
    """

    def __init__(self, path: str | Path, problem: MKLProblem, every: float = 1.0) -> None:
        self.path = check_place(path)
        self.every = every
        self.fingerprint = fingerprint(problem)
        self.sample = kernel_sample(problem)
        self._shapes = {
            "beta": problem.y.shape,
            "dual_beta": problem.y.shape,
            "weights": (problem.m,),
            "seconds": (),
        }
        self._last = -np.inf
        self._warned = False
        self._sweep()

    # ---- reading --------------------------------------------------------------------------------------------

    def load(self) -> Saved | None:
        """Return what was saved, None where there is no file."""
        try:
            with _open_regular(self.path) as file, np.load(file, allow_pickle=False) as archive:
                # the arrays are stored as they are: together they are no larger than the file
                if (
                    sum(member.file_size for member in archive.zip.infolist())
                    > os.fstat(file.fileno()).st_size
                ):
                    raise ValueError("it says to hold more than it does")
                names = ("fingerprint", "sample", "beta", "weights", "dual_beta", "trace", "seconds")
                contents = {name: archive[name] for name in names}
        except FileNotFoundError:
            return None
        except Exception as error:  # a damaged archive can make its readers raise anything
            raise self.damaged(str(error) or type(error).__name__) from error
        self._check_form(contents)
        if not (str(contents["fingerprint"]) == self.fingerprint and self._same_kernels(contents["sample"])):
            raise ValueError(
                f"checkpoint {str(self.path)!r} belongs to another problem (other data, kernels, loss, norm or C): "
                "delete it or give another file name"
            )
        self._check_contents(contents)
        trace = [tuple(float(x) for x in row) for row in contents["trace"]]
        point = Point(contents["beta"], contents["weights"], dual_beta=contents["dual_beta"])
        return Saved(point, trace, float(contents["seconds"]))

    def _same_kernels(self, sample: np.ndarray) -> bool:
        """Compare kernels by value: computed again they may differ in the last bits."""
        return sample.shape == self.sample.shape and bool(np.allclose(sample, self.sample, 1e-6))

    def damaged(self, why: str) -> ValueError:
        """Return the error for contents that no fit writes."""
        return ValueError(f"checkpoint {str(self.path)!r} is damaged ({why}): delete it to start afresh")

    def _check_form(self, contents: Mapping[str, Any]) -> None:
        """Refuse what no fit writes, whatever the problem."""
        if contents["fingerprint"].dtype.kind != "U" or contents["fingerprint"].shape != ():
            raise self.damaged("the fingerprint is no text")
        for name in ("sample", "beta", "weights", "dual_beta", "trace", "seconds"):
            if contents[name].dtype != np.float64:
                raise self.damaged(f"{name} holds {contents[name].dtype} instead of float64")
            if not np.all(np.isfinite(contents[name])):
                raise self.damaged(f"{name} is not finite")

    def _check_contents(self, contents: Mapping[str, Any]) -> None:
        """Refuse what a fit of this very problem does not write."""
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

    # ---- writing --------------------------------------------------------------------------------------------

    def save(
        self,
        point: Point,
        dual_beta: np.ndarray,
        trace: list[tuple[float, ...]],
        seconds: float,
        force: bool = False,
    ) -> None:
        """Write the best point, the coefficients of the best bound and the trace, unless that was just done.

        A disk that is full, or gone, costs the checkpoint and not the fit: a warning says so, once.
        """
        now = time.monotonic()
        if not force and now - self._last < self.every:
            return
        try:
            self._replace(
                fingerprint=np.array(self.fingerprint),
                sample=self.sample,
                beta=np.asarray(point.beta, dtype=float),
                weights=np.asarray(point.weights, dtype=float),
                dual_beta=np.asarray(dual_beta, dtype=float),
                trace=np.array(trace, dtype=float).reshape(-1, len(TRACE_COLUMNS)),
                seconds=np.array(float(seconds)),
            )
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
        handle, name = tempfile.mkstemp(
            prefix=self._prefix + f"{os.getpid()}-", suffix=".part", dir=self.path.parent
        )
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
        _sync_folder(self.path.parent)

    @property
    def _prefix(self) -> str:
        """Beginning of the names of half-written files: which checkpoint, and on which machine."""
        return f".{self.path.name}.{platform.node()}-"

    def _sweep(self) -> None:
        """Take away half-written files of processes on this machine that were killed."""
        with contextlib.suppress(OSError):
            for part in self.path.parent.iterdir():
                if not (part.name.startswith(self._prefix) and part.name.endswith(".part")):
                    continue
                process = part.name[len(self._prefix) :].split("-")[0]
                with contextlib.suppress(OSError):
                    old = time.time() - part.lstat().st_mtime > STALE
                    if old and process.isdigit() and not _alive(int(process)):
                        part.unlink()


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
        kind = kinds.get(stat.S_IFMT(mode), "a device or a socket")
        raise ValueError(
            f"checkpoint {str(place)!r} is {kind}: give the name of a file, new or written by a fit"
        )
    return place


def _open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; no link is followed, and a pipe that has come there is not waited for."""
    flags = (
        os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    file = os.fdopen(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError("not a regular file")
    return file


def _sync_folder(folder: Path) -> None:
    """Make the new name last; not every system lets folders be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


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


def kernel_sample(problem: MKLProblem) -> np.ndarray:
    """Return a few entries of up to fifty kernels."""
    rows = np.linspace(0, problem.n - 1, min(problem.n, 5)).astype(int)
    kernels = np.linspace(0, problem.m - 1, min(problem.m, 50)).astype(int)
    return problem.bank.block(rows, rows, kernels)
