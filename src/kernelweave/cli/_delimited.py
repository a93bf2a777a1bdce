"""Tables as text: which encoding, which separator, which decimals; found out, or as said."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ._remarks import Remarks

__all__ = ["Format", "decode", "numbers_and_texts", "read_delimited", "separator_of"]

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
#: lines that separators are found out by
SAMPLE = 50
GZIP = b"\x1f\x8b"
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
COMMA_NUMBER = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")
#: 1,234,567: which may be thousands, or decimals
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")


@dataclass(frozen=True)
class Format:
    """How text tables are written; None is found out.

    Attributes
    ----------
    separator, encoding, decimal : str or None
    missing : tuple of str
        Texts that mean a missing cell, beside the usual ones (empty, NA, NaN, null, ...).
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = ()


def read_delimited(
    content: bytes, name: str, expected: str, form: Format, remarks: Remarks, texts: Sequence[str] = ()
) -> Any:
    """Return a data frame from the bytes of a text table; what was found out is remarked.

    Parameters
    ----------
    content : bytes
        Perhaps compressed by gzip.
    name : str
        Of the file, for messages.
    expected : str
        The separator that the suffix promises.
    form : Format
    remarks : Remarks
        Grows.
    texts : sequence of str
        Columns that are not to be made numbers of.
    """
    import pandas as pd

    text, encoding = decode(_unpacked(content, name), name, form.encoding)
    if not text.strip():
        raise ValueError(f"{name} is empty")
    separator = form.separator or separator_of(text, expected)
    header = _checked_header(text, separator, name)
    try:
        frame = pd.read_csv(
            io.StringIO(text), sep=separator, index_col=False, low_memory=False, skipinitialspace=True,
            na_values=list(form.missing), dtype=dict.fromkeys((t for t in texts if t in header), str),
        )  # fmt: skip
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"cannot read {name}: {str(error).strip()}") from None
    unusual = [encoding] if encoding not in ("utf-8", "utf-8-sig") else []
    unusual += [f"columns separated by {_called(separator)}"] if separator != expected else []
    if unusual:
        remarks.files[name] = ", ".join(unusual)
    for old, new in zip(header, frame.columns, strict=False):
        if str(new) != old:
            remarks.renamed[str(new)] = old
    return _with_decimal_points(frame, separator, form.decimal, set(texts), remarks)


def _unpacked(content: bytes, name: str) -> bytes:
    if not content.startswith(GZIP):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"cannot unpack {name}: {error}") from None


def decode(content: bytes, name: str, encoding: str | None = None) -> tuple[str, str]:
    """Return text and encoding: as said, by its mark, UTF-16 by its zeros, UTF-8, else Windows-1252 or Latin-1."""
    if encoding is not None:
        try:
            return content.decode(encoding).removeprefix("\ufeff"), encoding
        except LookupError:
            raise ValueError(
                f"there is no encoding {encoding!r}: try utf-8, latin-1, cp1252 or utf-16"
            ) from None
        except UnicodeError as error:
            raise ValueError(f"{name} is not in the encoding {encoding}: {error}") from None
    guesses = [found for mark, found in MARKS.items() if content.startswith(mark)]
    beginning = content[:2000]
    if not guesses and len(beginning) > 3:
        for found, zeros in (("utf-16-le", beginning[1::2]), ("utf-16-be", beginning[0::2])):
            if zeros.count(0) > 0.6 * len(zeros):
                guesses.append(found)
    for guess in [*guesses, "utf-8", "cp1252", "latin-1"]:
        try:
            return content.decode(guess), guess
        except UnicodeDecodeError:
            continue
    raise ValueError(f"cannot find out the encoding of {name}: say it with --encoding")


def separator_of(text: str, expected: str = ",") -> str:
    """Return the separator that gives the same number of fields in every line.

    Commas are also decimal commas and stand in names: another separator that does as well is the one.

    >>> separator_of("a;b\\n1,5;2\\n1,25;3\\n"), separator_of("a,b\\n1;2,3\\n"), separator_of("a\\n1\\n")
    (';', ',', ',')
    """
    best, most = expected, (0.0, False, 0)
    for separator in SEPARATORS:
        rows = _first_rows(text, separator, SAMPLE)
        if not rows or len(rows[0]) < 2:
            continue
        alike = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
        if (alike, separator != ",", len(rows[0])) > most:
            best, most = separator, (alike, separator != ",", len(rows[0]))
    return best


def _first_rows(text: str, separator: str, count: int) -> list[list[str]]:
    rows = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True):
            if row:
                rows.append(row)
            if len(rows) == count:
                break
    except csv.Error:  # a field that never ends: the sample is what there was before
        pass
    return rows


def _checked_header(text: str, separator: str, name: str) -> list[str]:
    """Return the names in the first line; a line with more fields than names would lose one of them."""
    rows = _first_rows(text, separator, 2)
    if not rows:
        raise ValueError(f"{name} has no header")
    header = rows[0]
    for label in header:
        if "\0" in label:  # pandas may cut it there
            raise ValueError(f"{name} has a column {label!r}, with a NUL in its name: rename it")
    if len(rows) > 1 and len(rows[1]) > len(header) and any(rows[1][len(header) :]):
        raise ValueError(
            f"{name}: the header has {len(header)} names and the next line {len(rows[1])} fields, separated by "
            f"{_called(separator)}: name every column, or say what separates them with --separator"
        )
    return header


def _called(separator: str) -> str:
    return SEPARATORS.get(separator, repr(separator))


def _with_decimal_points(
    frame: Any, separator: str, decimal: str | None, texts: set[str], remarks: Remarks
) -> Any:
    """Make numbers of columns that are written with decimal commas."""
    import pandas as pd

    if decimal == ".":
        return frame
    for column in frame.columns:
        values = frame[column]
        if str(column) in texts or not pd.api.types.is_string_dtype(values.dtype) or values.isna().all():
            continue
        distinct = [str(value).strip() for value in values.dropna().unique()]
        commas = [text for text in distinct if "," in text]
        if not commas or not all(COMMA_NUMBER.fullmatch(text) for text in distinct):
            continue
        if decimal is None and all(THOUSANDS.fullmatch(text) for text in commas):
            continue  # 1,234 may be either: it stays a text until somebody says
        frame[column] = pd.to_numeric(values.str.strip().str.replace(",", ".", regex=False))
        remarks.decimal_commas.append(str(column))
    return frame


def numbers_and_texts(values: Any) -> dict[str, int]:
    """Return the texts, with their counts, in a column of texts most of which are numbers; nothing in other columns.

    >>> import pandas as pd
    >>> numbers_and_texts(pd.Series(["1", "2.5", "?", None, "?", "7", "8"])), numbers_and_texts(pd.Series(["a", "1"]))
    ({'?': 2}, {})
    """
    import pandas as pd

    there = values.dropna().astype(str).str.strip()
    plain = there.str.replace(",", ".", regex=False)
    is_number = pd.to_numeric(plain, errors="coerce").notna()
    if is_number.mean() <= 0.5:
        return {}
    others = there[~is_number] if not is_number.all() else there[there.str.contains(",")]
    return dict(Counter(others.tolist()).most_common())
