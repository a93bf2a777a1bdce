"""Tables as text: which encoding, which separator, which decimals; found out, or as said."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ._remarks import Remarks

__all__ = ["Format", "decode", "numbers_and_texts", "read_delimited", "separator_of"]

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
#: separators that stand in texts as often: not taken without being said, but pointed to
OTHERS = {" ": "spaces", "^": "carets", "~": "tildes", ":": "colons"}
#: what files begin with that are no text tables, and what they are
OTHER_FILES = {
    b"PK\x03\x04": "a zip archive or a spreadsheet (xlsx): save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet (xls): save the sheet as CSV",
    b"PAR1": "a Parquet file: call it .parquet",
    b"\x93NUMPY": "a NumPy file: call it .npy",
    b"<!": "HTML or XML, no table",
    b"<?": "HTML or XML, no table",
    b"<html": "HTML or XML, no table",
    b'{"': "JSON, no table",
    b"[{": "JSON, no table",
}
#: a first line by which spreadsheets are told the separator
SEP_LINE = re.compile(r'"?sep=([^"\r\n])"?[ ,;\t]*\r?\n', re.IGNORECASE)
#: 007: a code, of which a number would lose the zeros
CODE = re.compile(r"\s*0\d+\s*")
#: what lines of comments begin with
COMMENTS = ("#", "%", "//", "!")
#: lines that separators are found out by
SAMPLE = 50
GZIP = b"\x1f\x8b"
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
FRACTION = re.compile(r"\s*[+-]?\d*[.,]\d+([eE][+-]?\d+)?\s*")
COMMA_NUMBER = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")
#: 1,234,567: which may be thousands, or decimals
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")


@dataclass(frozen=True)
class Format:
    """How text tables are written; None is found out.

    Attributes
    ----------
    separator, encoding, decimal : str or None
        A space stands for any number of them, and for tabs.
    missing : tuple of str
        Texts that mean a missing cell, beside the usual ones (empty, NA, NaN, null, ...).
    comment : str or None
        Lines that begin so are left out.
    strip : bool
        Whether white space around texts and names of columns is removed, in tables of every kind.
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = ()
    comment: str | None = None
    strip: bool = False


def read_delimited(
    content: bytes,
    name: str,
    expected: str,
    form: Format,
    remarks: Remarks,
    texts: Sequence[str] = (),
    ids: Sequence[str] = (),
    single: Sequence[str] = (),
    codes: Sequence[str] = (),
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
    ids : sequence of str
        Columns that name rows: texts as they are written, "NA" too.
    single : sequence of str
        Columns that the table is read for, of which there must not be two.
    codes : sequence of str
        Columns that are texts where a number in them begins with zeros: '01' is not '1'.
    """
    import pandas as pd

    content = _unpacked(content, name)
    beginning = content[:100].lstrip(codecs.BOM_UTF8 + b" \r\n\t").lower()
    for mark, what in OTHER_FILES.items():
        if beginning.startswith(mark.lower()):
            raise ValueError(f"{name} is {what}")
    text, encoding = decode(content, name, form.encoding)
    if form.comment is not None:
        text = re.sub(rf"(?m)^{re.escape(form.comment)}.*(\n|\Z)", "", text)
    if not text.strip():
        raise ValueError(f"{name} is empty")
    if (said := SEP_LINE.match(text)) is not None:
        text = text[said.end() :]
    separator = form.separator or (separator_of(text, expected) if said is None else said[1])
    if form.comment is None:
        _refuse_comments(text, separator, name, single)
    header = _checked_header(text, separator, name, single, form.strip)
    # as they are written in the file, for pandas
    written = {label.strip() if form.strip else label: label for label in header}
    read = partial(
        pd.read_csv, sep=r"\s+" if separator == " " else separator, index_col=False, low_memory=False,
        skipinitialspace=True,
    )  # fmt: skip
    kept = [written[column] for column in ids if column in written]
    as_texts = dict.fromkeys((written[t] for t in (*texts, *codes) if t in written), str)
    try:
        frame = read(io.StringIO(text), na_values=list(form.missing), dtype=as_texts)
        if kept:  # once more: nothing in them is a missing cell
            frame[kept] = read(io.StringIO(text), usecols=kept, dtype=str, na_filter=False)[kept]
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        opens = re.search(r"EOF inside string starting at row (\d+)", str(error))
        why = f"a quotation mark in row {int(opens[1]) - 1} is never closed" if opens else str(error).strip()
        raise ValueError(f"cannot read {name}: {why}") from None
    for column in (written[column] for column in codes if column in written and column not in texts):
        if not frame[column].dropna().map(CODE.fullmatch).any():
            frame[column] = _as_numbers(frame[column])
    unusual = [encoding] if encoding not in ("utf-8", "utf-8-sig") else []
    unusual += [f"columns separated by {_called(separator)}"] if separator != expected else []
    if unusual:
        remarks.files[name] = ", ".join(unusual)
    for old, new in zip(header, frame.columns, strict=False):
        if str(new) != old:
            remarks.renamed[str(new)] = old
    return _with_decimal_points(frame, separator, form.decimal, {*texts, *ids}, remarks)


def _as_numbers(texts: Any) -> Any:
    """Return a column of texts as numbers, or as it is where one of them is none."""
    import pandas as pd

    numbers = pd.to_numeric(texts, errors="coerce")
    return texts if (numbers.isna() & texts.notna()).any() else numbers


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
    lines: Iterable[str] = io.StringIO(text, newline="")
    if separator == " ":  # at the ends of lines spaces separate nothing
        lines = (line.strip().replace("\t", " ") for line in lines)
    try:
        for row in csv.reader(lines, delimiter=separator, skipinitialspace=True):
            if row:
                rows.append(row)
            if len(rows) == count:
                break
    except csv.Error:  # a field that never ends: the sample is what there was before
        pass
    return rows


def _refuse_comments(text: str, separator: str, name: str, single: Sequence[str]) -> None:
    """Say how to leave out lines of comments, above the header or below it; a header may begin with a mark, too."""
    above: list[str] = []
    for line in io.StringIO(text):
        if line.strip() and not line.startswith(COMMENTS):
            break
        above += [line] if line.strip() else []
    if above and single:
        mark = next(mark for mark in COMMENTS if above[0].startswith(mark))
        wanted = {column.removeprefix(mark).strip() for column in single}
        separators = {separator, *SEPARATORS}
        parts = [
            {part.strip() for sep in separators for part in line.lstrip(mark).split(sep)} for line in above
        ]
        header = next((place for place, names in enumerate(parts) if names & wanted), None)
        if header is None or header > 0:
            count = len(above) if header is None else header
            mark = mark if header is None else 2 * mark
            lines = "a line that begins" if count == 1 else f"{count} lines that begin"
            raise ValueError(
                f"{name} starts with {lines} with {mark!r}, above the names of the columns: --comment {mark!r} leaves "
                "such lines out"
            )
    first = _first_rows(text, separator, 1)
    fields = len(first[0]) if first else 0
    for begins in COMMENTS if fields > 1 else ():
        for found in re.finditer(rf"(?m)(?<=\n){re.escape(begins)}.*$", text):
            if len(_first_rows(found.group(), separator, 1)[0]) < fields:
                number = text.count("\n", 0, found.start()) + 1
                raise ValueError(
                    f"{name}: line {number} begins with {begins!r} and has fewer fields than the header: --comment "
                    f"{begins!r} leaves such lines out"
                )


def _pointed_to(text: str) -> str:
    """Return what to give as --separator where another one splits all lines alike, or nothing."""
    for separator, called in (SEPARATORS | OTHERS).items():
        rows = _first_rows(text, separator, SAMPLE)
        if len(rows) > 1 and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows):
            option = {" ": "space", "\t": "tab"}.get(separator, repr(separator))
            return f"its columns look separated by {called}: --separator {option}"
    return ""


def _checked_header(text: str, separator: str, name: str, single: Sequence[str], strip: bool) -> list[str]:
    """Return the names in the first line; a line with more fields than names would lose one of them."""
    rows = _first_rows(text, separator, 2)
    if not rows:
        raise ValueError(f"{name} has no header")
    header = rows[0]
    for label in header:
        if "\0" in label:  # pandas may cut it there
            raise ValueError(f"{name} has a column {label!r}, with a NUL in its name: rename it")
    names = [label.strip() for label in header] if strip else header
    if single and not set(single) & set(names):
        _refuse_misplaced_header(text, header, name, single)
    if len(rows) > 1 and len(rows[1]) > len(header) and any(rows[1][len(header) :]):
        raise ValueError(
            f"{name}: the header has {len(header)} names and the next line {len(rows[1])} fields, separated by "
            f"{_called(separator)}: "
            + (_pointed_to(text) or "name every column, or say what separates them with --separator")
        )
    if len(names) == 1 and single and names[0] not in single and (hint := _pointed_to(text)):
        raise ValueError(f"{name} has a single column, {header[0]!r}; {hint}")
    for label in single:
        if names.count(label) > 1:
            raise ValueError(f"{name} has two columns called {label!r}: rename one of them")
    return header


def _refuse_misplaced_header(text: str, header: Sequence[str], name: str, single: Sequence[str]) -> None:
    """Say where the columns are named in a further line, or in none."""
    for number, line in enumerate(text.split("\n")[:SAMPLE], start=1):
        parts = {part.strip(' \r"') for separator in SEPARATORS for part in line.split(separator)}
        if number > 1 and (found := parts & set(single)):
            raise ValueError(
                f"{name}: the first line is {', '.join(header)!r}, and {min(found)!r} is in line {number}: if that "
                "names the columns, remove what is above"
            )
    if any(FRACTION.fullmatch(label) for label in header):  # years, for example, may be names
        raise ValueError(
            f"{name}: the first line is {', '.join(header)!r}: it should hold the names of the columns; write such a "
            "line above"
        )


def _called(separator: str) -> str:
    return SEPARATORS.get(separator) or OTHERS.get(separator) or repr(separator)


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
