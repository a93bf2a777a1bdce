"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["whole_file", "write_whole"]


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Hand out a temporary path in the same folder; it takes the place of ``path`` if the block succeeds.

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
    # the suffix stays: writers such as numpy's and matplotlib's read the format off it
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=path.suffix, dir=path.absolute().parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        umask = os.umask(0)  # mkstemp makes private files; this is an ordinary one
        os.umask(umask)
        part.chmod(0o666 & ~umask)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: str | Path, content: bytes | str) -> None:
    """Write a file at once."""
    with whole_file(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
