"""How much memory this process may use: the machine's, less what containers and the system's limits leave of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

__all__ = ["default_budget", "usable_memory"]

#: files with a limit, by version of the control groups; beyond ``high`` a process is slowed down to a standstill
_CGROUP_FILES = {"cgroup2": ("memory.max", "memory.high"), "cgroup": ("memory.limit_in_bytes",)}


def usable_memory() -> int | None:
    """Return the bytes that this process may use at most, None where the system says nothing at all."""
    known = [size for size in (_physical(), _of_control_groups(), *_of_this_process()) if size is not None]
    return min(known) if known else None


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # Windows has no sysconf
        return _physical_of_windows()


def _physical_of_windows() -> int | None:
    import ctypes

    kernel32 = getattr(getattr(ctypes, "windll", None), "kernel32", None)
    if kernel32 is None:
        return None
    kilobytes = ctypes.c_ulonglong(0)
    known = kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes))
    return kilobytes.value * 1024 if known else None


def _of_this_process() -> Iterator[int]:
    """What the limits on addresses and on data (``ulimit -v`` and ``-d``) leave beside what is in use already."""
    try:
        import resource
    except ImportError:  # not a POSIX system
        return
    addresses, data = _in_use()
    for name, used in (("RLIMIT_AS", addresses), ("RLIMIT_DATA", data)):
        limit = (
            resource.getrlimit(getattr(resource, name))[0]
            if hasattr(resource, name)
            else resource.RLIM_INFINITY
        )
        if limit != resource.RLIM_INFINITY:
            yield max(limit - used, 0)


def _in_use() -> tuple[int, int]:
    """Bytes of addresses and of data that the process has, zero where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text().split()
        size = os.sysconf("SC_PAGE_SIZE")
        return int(pages[0]) * size, int(pages[5]) * size
    except (OSError, ValueError, IndexError):
        return 0, 0


@cache
def _of_control_groups(root: str = "/") -> int | None:
    """The smallest limit of the control groups that the process is in, from its own up to the outermost it can see."""
    limits = []
    for kind, folder, top in _control_groups(Path(root)):
        while True:
            limits += [size for name in _CGROUP_FILES[kind] if (size := _number(folder / name)) is not None]
            if folder == top or folder == folder.parent:
                break
            folder = folder.parent
    return min(limits, default=None)


def _control_groups(root: Path) -> Iterator[tuple[str, Path, Path]]:
    """Kind, own folder and mount point of the groups that count memory, of both versions."""
    try:
        memberships = [line.split(":", 2) for line in (root / "proc/self/cgroup").read_text().splitlines()]
        mounts = [line.split() for line in (root / "proc/self/mountinfo").read_text().splitlines()]
    except OSError:
        return
    for fields in mounts:
        # id, parent, device, root of the mount, mount point, options, optional fields, "-", kind, source, its options
        dash = fields.index("-") if "-" in fields else len(fields)
        kind = fields[dash + 1] if dash + 1 < len(fields) else ""
        if kind not in _CGROUP_FILES or (kind == "cgroup" and "memory" not in fields[-1].split(",")):
            continue
        for number, controllers, path in (membership for membership in memberships if len(membership) == 3):
            counts = number == "0" if kind == "cgroup2" else "memory" in controllers.split(",")
            if not counts:
                continue
            top = root / fields[4].lstrip("/")
            # inside a container the mount often shows a part of the tree alone
            inner = PurePosixPath(path)
            shown = inner.relative_to(fields[3]) if inner.is_relative_to(fields[3]) else PurePosixPath()
            own = top / shown
            yield kind, own if ".." not in shown.parts and own.is_dir() else top, top


def _number(path: Path) -> int | None:
    """The limit in a file; None where there is no file or no limit."""
    try:
        size = int(path.read_text())
    except (OSError, ValueError):  # "max"
        return None
    return size if 0 < size < 2**60 else None  # the first version writes its largest number for none


def default_budget() -> int:
    """Half of what the process may use, containers and limits counted; 4 GB where the system does not say."""
    usable = usable_memory()
    return 4 * 10**9 if usable is None else usable // 2
