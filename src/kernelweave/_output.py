"""Writing files so that a reader never sees half of one, and nothing but files is written to."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def check_target(path: str | Path) -> os.stat_result | None:
    """Refuse to write where there is something else than a regular file; return what is there, or None.

    A folder, a device or a pipe is not replaced, and a link is not followed: whoever can put one there does not get
    to choose what is written over.
    """
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return None
    kinds = {
        stat.S_ISDIR: "a folder",
        stat.S_ISLNK: "a link: give the file that it points to",
        stat.S_ISFIFO: "a pipe",
        stat.S_ISSOCK: "a socket",
        stat.S_ISBLK: "a device",
        stat.S_ISCHR: "a device",
    }
    for is_kind, name in kinds.items():
        if is_kind(there.st_mode):
            raise OSError(f"{path} is {name}, and only regular files are written")
    return there


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Hand out a temporary path in the same folder; it takes the place of ``path`` if the block succeeds.

    A file that was there keeps who may read and write it; a new one gets what the process gives to new files.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "numbers.txt"
    >>> with whole_file(target) as part:
    ...     _ = part.write_text("1 2 3")
    >>> target.read_text(), len(list(target.parent.iterdir()))
    ('1 2 3', 1)
    """
    path = Path(path)
    before = check_target(path)
    # the suffix stays: writers such as numpy's and matplotlib's read the format off it
    part = path.absolute().parent / f".{path.stem[:100]}.{secrets.token_hex(6)}{path.suffix}"
    # made by the kernel with the mode of new files, or for the owner alone until it gets that of the old one
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
    os.close(os.open(part, flags, 0o666 if before is None else 0o600))
    try:
        yield part
        _synchronise(part)
        if before is not None:
            part.chmod(stat.S_IMODE(before.st_mode) & 0o777)
        check_target(path)
        part.replace(path)
        with suppress(OSError):  # the name, too, is on the disk; not every system can be asked for that
            _synchronise(path.absolute().parent)
    finally:
        part.unlink(missing_ok=True)


def _synchronise(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: str | Path, content: bytes | str) -> None:
    """Write a file at once."""
    with whole_file(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
