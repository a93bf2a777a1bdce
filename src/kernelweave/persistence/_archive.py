"""The archive of a model file: read once, looked through before anything in it is used, bounded in size.

Everything later reads the bytes that were checked here, never the file again.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
from pathlib import Path
from typing import Any

__all__ = ["Archive", "ModelFileError", "open_archive", "read_bytes"]

#: a description or a label may always have this many bytes, ...
SMALL = 8_000_000
#: ... and beyond that this many times what it takes in the file: reading it costs in proportion to the file
INFLATION = 100
#: length of a local header without name and extra field, and of the record at the end of an archive
LOCAL_HEADER, END_RECORD = 30, 22
#: names in UTF-8; any other flag (encryption, sizes written afterwards) is not ours
UTF8 = 0x800


class ModelFileError(ValueError):
    """A model that cannot be saved without code in the file, or a file that is not loaded."""


def read_bytes(path: Path, most: int) -> bytes:
    """Return the bytes of a regular file; a folder, a pipe or a device is refused without waiting for it."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        os.close(handle)
        raise ModelFileError(f"{path} is refused: it is not a regular file")
    with os.fdopen(handle, "rb") as file:
        if about.st_size > most:
            raise ModelFileError(
                f"{path} is refused: it has {about.st_size:,} bytes, more than {most:,}; "
                "raise max_bytes if you trust it"
            )
        content = file.read(about.st_size + 1)
    if len(content) > about.st_size:
        raise ModelFileError(f"{path} is refused: it grew while it was read")
    return content


class Archive:
    """The checked members of an archive, in memory; ``content`` is the file they came from."""

    def __init__(self, content: bytes, name: str, file: zipfile.ZipFile) -> None:
        self.content, self.name = content, name
        self.members = {member.filename: member for member in file.infolist()}
        self._file = file

    def read(self, member: str) -> bytes:
        """Return a member, whose checksum is compared on the way."""
        return self._file.read(member)

    def text(self, member: str) -> bytes:
        """Return a member that will be parsed: it may not be out of proportion to the file."""
        about = self.members[member]
        if about.file_size > max(SMALL, INFLATION * about.compress_size):
            raise ModelFileError(
                f"{self.name} is refused: its {member} has {about.file_size:,} bytes, more than a model file needs"
            )
        return self.read(member)


def open_archive(content: bytes, name: str, most: int) -> Archive:
    """Check an archive from its first byte to its last, and every member's checksum.

    Its members lie one after the other from the first byte on, each once, plain or deflated, of at most ``most`` bytes
    together: that is what ``save`` writes, and it leaves no room for anything beside them.
    """
    try:
        file = zipfile.ZipFile(io.BytesIO(content))
        _check_members(file, content, name, most)
        broken = file.testzip()
    except ModelFileError:
        raise
    except Exception as error:  # of zipfile, zlib and struct: whatever torn members come to
        raise ModelFileError(f"{name} is damaged: {error}") from error
    if broken is not None:
        raise ModelFileError(f"{name} is damaged: its part {broken!r} does not match its checksum")
    return Archive(content, name, file)


def _check_members(file: zipfile.ZipFile, content: bytes, name: str, most: int) -> None:
    """Check where the members lie and how large they say they are, before any is read."""
    names: set[str] = set()
    end = 0
    for member in sorted(file.infolist(), key=lambda entry: entry.header_offset):
        if member.filename in names:
            raise ModelFileError(f"{name} is refused: it has two parts called {member.filename!r}")
        names.add(member.filename)
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & ~UTF8:
            raise ModelFileError(
                f"{name} is refused: its part {member.filename!r} is encrypted or packed otherwise"
            )
        if member.header_offset != end:
            where = "before its first part" if end == 0 else "between its parts"
            raise ModelFileError(f"{name} is refused: it has bytes {where}")
        lengths = struct.unpack("<HH", content[end + LOCAL_HEADER - 4 : end + LOCAL_HEADER])
        end += LOCAL_HEADER + sum(lengths) + member.compress_size
    start: Any = file.start_dir
    if end != start or file.comment or not content[-END_RECORD:].startswith(b"PK\x05\x06"):
        raise ModelFileError(f"{name} is refused: it has bytes beside its parts")
    total = sum(member.file_size for member in file.infolist())
    if total > most:
        raise ModelFileError(
            f"{name} is refused: its parts have {total:,} bytes, more than {most:,}; raise max_bytes if you trust it"
        )
