"""How much memory and how many threads this process may use."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np

#: files with a limit, by version of the control groups; beyond ``high`` a process is slowed down to a standstill
_CGROUP_FILES = {"cgroup2": ("memory.max", "memory.high"), "cgroup": ("memory.limit_in_bytes",)}


def default_budget() -> int:
    """Half of what the process may use, containers and limits counted; 4 GB where the system does not say."""
    known = list(_known_limits())
    return min(known) // 2 if known else 4 * 10**9


def _known_limits() -> Iterator[int]:
    """Bytes of the machine, of the control groups, and of ``ulimit -v`` and ``-d`` beside what is in use."""
    try:
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # Windows has no sysconf
        import ctypes

        kernel32 = getattr(getattr(ctypes, "windll", None), "kernel32", None)
        kilobytes = ctypes.c_ulonglong(0)
        if kernel32 is not None and kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes)):
            yield kilobytes.value * 1024
    limit = _of_control_groups()
    if limit is not None:
        yield limit
    try:
        import resource
    except ImportError:  # not a POSIX system
        return
    try:
        pages = Path("/proc/self/statm").read_text().split()
        size = os.sysconf("SC_PAGE_SIZE")
        addresses, data = int(pages[0]) * size, int(pages[5]) * size
    except (OSError, ValueError, IndexError):
        addresses = data = 0  # the system does not say
    for name, used in (("RLIMIT_AS", addresses), ("RLIMIT_DATA", data)):
        if hasattr(resource, name):
            limit = resource.getrlimit(getattr(resource, name))[0]
            if limit != resource.RLIM_INFINITY:
                yield max(limit - used, 0)


@cache
def _of_control_groups(root: str = "/") -> int | None:
    """The smallest limit of the control groups that the process is in, from its own up to the outermost it can see."""
    limits = []
    try:
        memberships = [line.split(":", 2) for line in Path(root, "proc/self/cgroup").read_text().splitlines()]
        mounts = [line.split() for line in Path(root, "proc/self/mountinfo").read_text().splitlines()]
    except OSError:
        return None
    for fields in mounts:
        # id, parent, device, root of the mount, mount point, options, optional fields, "-", kind, source, its options
        dash = fields.index("-") if "-" in fields else len(fields)
        kind = fields[dash + 1] if dash + 1 < len(fields) else ""
        if kind not in _CGROUP_FILES or (kind == "cgroup" and "memory" not in fields[-1].split(",")):
            continue
        top = Path(root, fields[4].lstrip("/"))
        for number, controllers, path in (membership for membership in memberships if len(membership) == 3):
            counts = number == "0" if kind == "cgroup2" else "memory" in controllers.split(",")
            if not counts:
                continue
            # inside a container the mount often shows a part of the tree alone
            inner = PurePosixPath(path)
            shown = inner.relative_to(fields[3]) if inner.is_relative_to(fields[3]) else PurePosixPath()
            folder = top / shown if ".." not in shown.parts and (top / shown).is_dir() else top
            for around in (folder, *folder.parents):
                for name in _CGROUP_FILES[kind]:
                    with suppress(OSError, ValueError):  # there is no such file, or it says "max"
                        limits.append(int((around / name).read_text()))
                if around == top:
                    break
    # the first version writes its largest number for none
    return min((size for size in limits if 0 < size < 2**60), default=None)


# The number of threads is looked up and not handed down, like time limits: ``with allowed_threads(n_jobs):`` around a
# fit or a prediction, ``in_threads(run, parts)`` wherever there are parts of work.  Parts never depend on the number of
# threads, and neither does the order in which their results are put together: answers are the same to the last bit.

Part = TypeVar("Part")
Result = TypeVar("Result")

#: rows from which a second thread pays for the waiting
LARGE = 4000

#: The number of BLAS threads belongs to the whole process, and fits in several threads overlap in any order: if each
#: put back what it found, the last would put back the limit of another one.  Only the holder of this lock sets it.
_setting = threading.Lock()

_pools: dict[int, ThreadPoolExecutor] = {}
_making = threading.Lock()
if hasattr(os, "register_at_fork"):  # a child has the pools, and none of their threads
    os.register_at_fork(after_in_child=_pools.clear)

#: what is allowed inside of a part
DIVIDED = 0
_allowed: ContextVar[int] = ContextVar("kernelweave_threads", default=1)


def thread_count(n_jobs: int | None) -> int:
    """Return the threads that ``n_jobs`` stands for, as scikit-learn reads it; in a worker of joblib at most its share.

    joblib tells the workers that it starts how many threads each may use; to threads of its own it tells nothing, and
    they take one each.

    >>> thread_count(None), thread_count(3)
    (1, 3)
    """
    import multiprocessing

    from joblib import effective_n_jobs
    from joblib.parallel import get_active_backend

    wanted = int(effective_n_jobs(n_jobs))
    backend, _ = get_active_backend()
    if getattr(backend, "nesting_level", 0):
        in_process = multiprocessing.parent_process() is not None
        share = os.environ.get("OMP_NUM_THREADS", "1") if in_process else "1"
        wanted = min(wanted, int(share) if share.isdigit() else 1)
    return max(1, wanted)


@contextmanager
def allowed_threads(n_jobs: int | None) -> Iterator[int]:
    """Let everything inside use the threads that ``n_jobs`` stands for."""
    token = _allowed.set(thread_count(n_jobs))
    try:
        yield _allowed.get()
    finally:
        _allowed.reset(token)


def in_threads(run: Callable[[Part], Result], parts: Sequence[Part], most: int | None = None) -> list[Result]:
    """Return ``run`` of every part, in the order of the parts; long ones should come first.

    As many run at a time as ``allowed_threads`` says, or ``most``.  Within ``run`` nothing is divided again.
    """
    count = min(_allowed.get() if most is None else most, len(parts))
    if count <= 1 or _allowed.get() == DIVIDED:
        return [run(part) for part in parts]
    results: list[Any] = [None] * len(parts)
    waiting = iter(range(len(parts)))
    taking = threading.Lock()
    failed: list[BaseException] = []

    def work() -> None:
        _allowed.set(DIVIDED)
        while not failed:
            with taking:
                at = next(waiting, None)
            if at is None:
                return
            try:
                results[at] = run(parts[at])
            except BaseException as error:
                failed.append(error)

    with _making:  # threads that wait for work: starting them anew would take longer than a small sweep
        if count - 1 not in _pools:
            _pools[count - 1] = ThreadPoolExecutor(count - 1, thread_name_prefix="kernelweave")
        pool = _pools[count - 1]
    # every thread has the caller's time limit, and so on
    others = [pool.submit(contextvars.copy_context().run, work) for _ in range(count - 1)]
    try:
        contextvars.copy_context().run(work)
    except BaseException as error:  # Ctrl-C between two parts: the others end with the parts they have
        failed.append(error)
    wait(others)
    if failed:
        raise failed[0]
    return results


#: rows of a part of an entry by entry evaluation: its intermediate results stay in a processor's cache
PART_ROWS = 1 << 15


def sum_by_rows(function: Callable[..., Any], *arrays: np.ndarray) -> Any:
    """Add up what a function of arrays gives of their rows: part by part, in threads, where rows are many."""
    n = arrays[0].shape[0]
    if n < 4 * PART_ROWS:
        return function(*arrays)
    parts = [slice(top, top + PART_ROWS) for top in range(0, n, PART_ROWS)]
    return sum(in_threads(lambda part: function(*(array[part] for array in arrays)), parts))


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # looks through all loaded libraries: once is enough

    return ThreadpoolController()


@contextmanager
def one_blas_thread(rows: int = 0) -> Iterator[None]:
    """One BLAS thread, unless matrices have so many rows that more gain something, or another fit has set the limit."""
    if rows >= LARGE or not _setting.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _setting.release()
