"""Tables in and out (delimited text, Parquet, NPZ, NumPy files), and notes of what was done to them."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import sys
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import click

from ._terminal import write_out

#: columns named in one line
MOST_NAMED = 12


@dataclass
class Remarks:
    """Changes that reading and treating a table made to it.

    Attributes
    ----------
    files : dict
        Of every file, how it was read where that was not as its suffix says: encoding and separator.
    renamed : dict
        New names of columns whose names were there twice, or not there at all, with the old ones.
    decimal_commas : list of str
        Columns of numbers that were written with decimal commas.
    numbers_as_categories : dict
        Columns that look like numbers and hold texts as well, with these texts and how often they are there.
    alike : dict
        Of columns of texts, the groups of texts that differ only by spaces around them, letter case and the like.
    imputed : dict
        Columns of numbers with missing cells, and how many; they become the median of the training table.
    missing_as_category : dict
        Columns of categories with missing cells, and how many; they are a category of their own.
    completed : dict
        Views that rows lack altogether, and how many do.
    completed_by : str
        What becomes of such rows: ``predict`` or ``mean``.
    unknown_categories : dict
        In a new table: cells that hold a category which the training table did not have.
    rows : int
        Of the table.
    """

    files: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    decimal_commas: list[str] = field(default_factory=list)
    numbers_as_categories: dict[str, dict[str, int]] = field(default_factory=dict)
    alike: dict[str, list[list[str]]] = field(default_factory=dict)
    imputed: dict[str, int] = field(default_factory=dict)
    missing_as_category: dict[str, int] = field(default_factory=dict)
    completed: dict[str, int] = field(default_factory=dict)
    completed_by: str = ""
    unknown_categories: dict[str, int] = field(default_factory=dict)
    rows: int = 0

    @classmethod
    def of(cls, kept: dict[str, Any]) -> Remarks:
        """Return the remarks of a label; what this version does not know is left out."""
        return cls(**{key: value for key, value in kept.items() if key in cls.__dataclass_fields__})

    def only(self, columns: Iterable[str]) -> None:
        """Forget what concerns columns that are not used."""
        used = set(columns)
        self.decimal_commas = [column for column in self.decimal_commas if column in used]
        for kind in (self.numbers_as_categories, self.alike, self.imputed, self.missing_as_category):
            for column in set(kind) - used:
                kind.pop(column)  # type: ignore[attr-defined]

    def note_alike(self, column: str, values: Iterable[Any]) -> None:
        """Note which texts of a column look the same to people and are different to programs."""
        groups: dict[str, list[str]] = {}
        for text in sorted({value for value in values if isinstance(value, str)}):
            groups.setdefault(looks(text), []).append(text)
        several = [group for group in groups.values() if len(group) > 1]
        if several:
            self.alike[column] = several

    def as_dict(self) -> dict[str, Any]:
        """Return what there is to say as plain data; empty where there is nothing."""
        return {key: value for key, value in vars(self).items() if value and key != "rows"}

    def lines(self) -> list[str]:
        """Return a sentence for everything that happened, with the columns it happened to."""
        lines = [f"{name} was read as {how}" for name, how in self.files.items()]
        lines += [
            f"the header has {old!r} more than once: one of these columns is called {new!r} here"
            if old
            else f"a column without a name is called {new!r} here: --drop it if it numbers the rows"
            for new, old in self.renamed.items()
        ]
        if self.decimal_commas:
            lines.append(f"decimal commas were read as decimal points in {_columns(self.decimal_commas)}")
        for column, texts in self.numbers_as_categories.items():
            if all("," in text for text in texts):
                lines.append(
                    f"column {column!r} holds numbers with commas, such as {next(iter(texts))!r}: it is treated as "
                    "categories; --decimal , makes decimals of the commas, thousands are to be written without"
                )
                continue
            lines.append(
                f"column {column!r} holds numbers and also {_texts(texts)}: it is treated as categories; "
                f"--na {next(iter(texts))!r} makes such cells missing ones"
            )
        for column, groups in self.alike.items():
            lines += [_of_alike(column, group) for group in groups]
        if self.imputed:
            lines.append(
                f"missing numbers became the median of the training table: {self._counts(self.imputed)}"
            )
        if self.completed:
            ways = {"predict": "predicted from the other views", "mean": "the mean of the training samples"}
            way = ways.get(self.completed_by, "completed")
            lines.append(f"views that rows lack altogether are {way} there: {self._counts(self.completed)}")
        if self.missing_as_category:
            counts = self._counts(self.missing_as_category)
            lines.append(f"missing texts are a category of their own: {counts}")
        if self.unknown_categories:
            counts = self._counts(self.unknown_categories)
            lines.append(f"categories that the training table did not have count as none: {counts}")
        return lines

    def _counts(self, cells: dict[str, int]) -> str:
        of = f" of {self.rows} rows" if self.rows else ""
        named = [f"{column!r} {count}" for column, count in list(cells.items())[:MOST_NAMED]]
        rest = list(cells.values())[MOST_NAMED:]
        more = f", and {sum(rest)} cells of {len(rest)} further columns" if rest else ""
        return ", ".join(named) + of + more


def looks(text: str) -> str:
    """Return a text as people read it: without spaces around it, letter case and the encoding of its letters.

    >>> looks(" Yes") == looks("yes"), looks("yes") == looks("yes!")
    (True, False)
    """
    return " ".join(unicodedata.normalize("NFKC", text).split()).casefold()


def _of_alike(column: str, texts: list[str]) -> str:
    """Say what the difference between texts is, and what to do."""
    shown = ", ".join(repr(text) for text in texts[:-1]) + f" and {texts[-1]!r}"
    if len({text.strip() for text in texts}) == 1:
        why, remedy = "by spaces around them", "--strip removes these"
    elif len({text.casefold() for text in texts}) == 1:
        why, remedy = "by upper and lower case", "write them alike if they mean the same"
    else:
        why, remedy = (
            "by spaces, letter case or the encoding of letters",
            "write them alike if they mean the same",
        )
    return f"column {column!r} has {shown}, which differ only {why} and count as different: {remedy}"


def _columns(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:MOST_NAMED])
    return shown + (f" and {len(names) - MOST_NAMED} further columns" if len(names) > MOST_NAMED else "")


def _texts(texts: dict[str, int]) -> str:
    shown = ", ".join(
        f"{text!r}" + (f" ({count} times)" if count > 1 else "") for text, count in list(texts.items())[:3]
    )
    return shown + (f" and {len(texts) - 3} other texts" if len(texts) > 3 else "")


# ------------------------------------------------------------------------------------------------------------
# Tables as text: which encoding, which separator, which decimals; found out, or as said.


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


# ------------------------------------------------------------------------------------------------------------
# Tables in and out: CSV, Parquet, NPZ and NumPy files, and what is said where one does not fit.


#: standard input or output
STANDARD = Path("-")
#: text tables and what separates their columns
DELIMITED = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
READABLE = (*DELIMITED, ".parquet", ".npz", ".npy")
WRITABLE = (".csv", ".tsv", ".parquet", ".npz")
#: a spreadsheet takes a cell that begins so for a formula
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
#: beyond this size the squares of numbers, of which variances and kernels are made, are infinite
TOO_LARGE = 1e150
#: set to anything: what went wrong unexpectedly is shown as a traceback
TRACEBACK = "KERNELWEAVE_TRACEBACK"


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn errors into one line and exit code 1; what an interruption ends with is decided in ``Commands``."""
    try:
        yield
    except click.ClickException:
        raise
    except (ValueError, OSError, TypeError, FloatingPointError) as error:
        raise click.ClickException(str(error)) from error
    except MemoryError as error:
        raise click.ClickException(str(error) or "there is not enough memory") from error
    except Exception as error:
        if TRACEBACK in os.environ:
            raise
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        raise click.ClickException(
            f"this went wrong unexpectedly ({what}); {TRACEBACK}=1 shows where"
        ) from error


def suffix_of(path: Path) -> str:
    """Return the suffix that says the format, in small letters: of a compressed text table both."""
    last = path.suffix.lower()
    return Path(path.stem).suffix.lower() + last if last == ".gz" else last


def read_table(
    path: Path,
    form: Format | None = None,
    remarks: Remarks | None = None,
    texts: Sequence[str] = (),
    ids: Sequence[str] = (),
    single: Sequence[str] = (),
    codes: Sequence[str] = (),
) -> Any:
    """Return a data frame from a file; the suffix says the format, ``-`` is a text table on the standard input.

    An NPZ file gives a column for each one-dimensional array, and columns ``name_0``, ``name_1``, ... for each
    two-dimensional one; a NumPy file the columns ``x0``, ``x1``, ...

    Parameters
    ----------
    path : Path
    form : Format, optional
        How text tables are written, as far as it is said.
    remarks : Remarks, optional
        Grows by what was found out.
    texts : sequence of str
        Columns of text tables that are not to be made numbers of.
    ids : sequence of str
        Columns that name rows, in tables of every kind: texts, an empty one where there is none.
    single : sequence of str
        Columns that the table is read for, of which there must not be two.
    codes : sequence of str
        Columns of text tables that are texts where a number in them begins with zeros.
    """
    import pandas as pd

    form, remarks = form or Format(), Remarks() if remarks is None else remarks
    suffix = suffix_of(path)
    name = "the standard input" if path == STANDARD else str(path)
    if path != STANDARD and suffix not in READABLE:
        raise ValueError(
            f"cannot read {path}: the suffix {suffix or 'is missing, it'} is none of {', '.join(READABLE)}"
        )
    try:
        if path == STANDARD:
            content = sys.stdin.buffer.read()
            frame = read_delimited(
                content, name, separator_in(content), form, remarks, texts, ids, single, codes
            )
        elif suffix in DELIMITED:
            content = path.read_bytes()
            frame = read_delimited(content, name, DELIMITED[suffix], form, remarks, texts, ids, single, codes)
        elif suffix == ".parquet":
            frame = _parquet(path)
        else:
            frame = _arrays(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    frame.columns = [str(label).strip() if form.strip else str(label) for label in frame.columns]
    frame = _checked(frame, name, remarks)
    for column in [column for column in frame.columns if frame[column].dtype.kind == "O"]:
        # whole numbers beyond 64 bits, and decimals of Parquet
        if pd.api.types.infer_dtype(frame[column], skipna=True) in (
            "integer",
            "decimal",
            "mixed-integer-float",
        ):
            frame[column] = (
                frame[column].map(lambda value: float(str(value)), na_action="ignore").astype(float)
            )
    for column in (column for column in ids if column in frame):
        values = frame[column].astype(object)
        frame[column] = values.map(text_of).where(values.notna(), "")
    return _stripped(frame, ids) if form.strip else frame


def _stripped(frame: Any, ids: Sequence[str]) -> Any:
    """Return a table without white space around its texts; what is nothing else is a missing cell."""
    import pandas as pd

    frame = frame.copy()
    for column in frame.columns:
        values = frame[column]
        if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_datetime64_any_dtype(values):
            continue
        texts = values.astype(object).map(lambda value: value.strip() if isinstance(value, str) else value)
        frame[column] = texts if column in ids else texts.where(texts != "", None)
    return frame


def text_of(value: Any) -> str:
    """Write a value as text: a whole number without decimals, since missing ones make fractions of whole columns."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def separator_in(content: bytes) -> str:
    """Return the separator to expect where no suffix says one: tabs, where the first line has any."""
    return "\t" if b"\t" in content.split(b"\n", 1)[0] else ","


def _checked(frame: Any, path: str, remarks: Remarks) -> Any:
    broken = [label for label in frame.columns if "\0" in label]
    if broken:
        raise ValueError(f"{path} has a column {broken[0]!r}, with a NUL in its name: rename it")
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise ValueError(f"{path} has two columns called {twice[0]!r}")
    if not len(frame):
        raise ValueError(f"{path} has no rows")
    remarks.rows = remarks.rows or len(frame)
    return frame


def _parquet(path: Path) -> Any:
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ImportError:
        raise ValueError("reading Parquet files needs pip install 'kernelweave[parquet]'") from None
    except Exception as error:
        if isinstance(error, OSError) and not path.exists():
            raise
        raise ValueError(f"cannot read {path}: {error}") from error


def _arrays(path: Path) -> Any:
    import numpy as np
    import pandas as pd

    loaded = _load_arrays(path)
    if isinstance(loaded, np.ndarray):
        named = {"x": loaded} if loaded.dtype.names is None else {n: loaded[n] for n in loaded.dtype.names}
        if loaded.dtype.names is None and loaded.ndim != 2:
            raise ValueError(f"{path} holds an array of shape {loaded.shape}: a table has rows and columns")
    else:
        named = loaded
    columns: dict[str, Any] = {}
    for name, array in named.items():
        if array.ndim > 2 or array.ndim == 0:
            raise ValueError(
                f"{path}: the array {name!r} has shape {array.shape}, neither a column nor a table"
            )
        if array.dtype.kind == "S":  # texts of other programs, in bytes
            array = np.char.decode(array, "utf-8")
        joint = "" if isinstance(loaded, np.ndarray) else "_"
        columns |= (
            {name: array}
            if array.ndim == 1
            else {f"{name}{joint}{j}": array[:, j] for j in range(array.shape[1])}
        )
    lengths = {name: len(array) for name, array in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{path}: its arrays differ in length: {lengths}")
    return pd.DataFrame(columns)


def _load_arrays(path: Path) -> Any:
    """Return the array of a NumPy file or a dictionary of those of an NPZ file; a torn one is a ValueError."""
    import numpy as np

    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except (FileNotFoundError, MemoryError):
        raise
    except (
        Exception
    ) as error:  # of NumPy, zipfile and zlib; objects, which would be a pickle, are one of them
        raise ValueError(f"cannot read {path}: {error or type(error).__name__}") from None


def read_matrices(paths: Sequence[Path]) -> list[Any]:
    """Return kernel matrices from NumPy files (an (m, n, n) array counts as m), CSV without header, or NPZ."""
    import numpy as np

    matrices: list[Any] = []
    for path in paths:
        try:
            if path.suffix.lower() in (".npy", ".npz"):
                arrays = _load_arrays(path)
                loaded = list(arrays.values()) if isinstance(arrays, dict) else [arrays]
            elif path.suffix.lower() in (".csv", ".tsv"):
                loaded = [np.loadtxt(path, delimiter="," if path.suffix.lower() == ".csv" else "\t", ndmin=2)]
            else:
                raise ValueError(f"the suffix of {path} is none of .npy, .npz, .csv, .tsv")
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no file {path}") from None
        except ValueError as error:
            raise ValueError(f"cannot read the matrix {path}: {error}") from None
        for array in loaded:
            if array.ndim not in (2, 3) or array.dtype.kind not in "fiub":
                raise ValueError(
                    f"{path} holds an array of shape {array.shape} ({array.dtype}), no kernel matrix"
                )
            if not (array.min(initial=0) >= -TOO_LARGE and array.max(initial=0) <= TOO_LARGE):
                place = tuple(int(index) for index in np.argwhere(~(np.abs(array) <= TOO_LARGE))[0])
                raise ValueError(
                    f"{path} holds {array[place]:g} in row {place[-2]}, column {place[-1]}: the entries of a kernel "
                    f"matrix are numbers up to {TOO_LARGE:g}"
                )
            matrices += list(array) if array.ndim == 3 else [array]
    return matrices


def matrix_names(paths: Sequence[Path], matrices: int) -> list[str]:
    """Name matrices after their files, as far as there is a file for each."""
    names = [path.stem for path in paths]
    if len(set(names)) == matrices == len(names):
        return names
    return [f"kernel {j}" for j in range(matrices)]


def check_writable(path: Path) -> None:
    """Refuse a format that is not written; the standard output gets CSV."""
    if path != STANDARD and path.suffix.lower() not in WRITABLE:
        raise click.UsageError(f"cannot write {path}: the suffix is none of {', '.join(WRITABLE)}")


def write_table(frame: Any, path: Path, spreadsheet: bool = False) -> None:
    """Write a data frame whole, in the format that the suffix says; CSV and TSV without formulas where asked for."""
    from .._output import whole_file

    suffix = path.suffix.lower()
    if path == STANDARD:
        frame = without_formulas(frame) if spreadsheet else frame
        write_out(frame.to_csv(index=False))
        return
    with whole_file(path) as part:
        if suffix in (".csv", ".tsv"):
            frame = without_formulas(frame) if spreadsheet else frame
            frame.to_csv(part, index=False, sep="," if suffix == ".csv" else "\t")
        elif suffix == ".parquet":
            frame.to_parquet(part, index=False)
        else:
            arrays = {name: frame[name].to_numpy() for name in frame}
            texts = {n: a.astype(str) if a.dtype.kind not in "fiub" else a for n, a in arrays.items()}
            _write_npz(part, texts)


def _write_npz(path: Path, arrays: dict[str, Any]) -> None:
    """Write an NPZ file; unlike NumPy's own function this one takes any name, ``file`` for example."""
    import zipfile

    import numpy as np

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            if "\0" in name:
                raise ValueError(
                    f"an NPZ file cannot have a column {name!r}, with a NUL in its name: write CSV"
                )
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def without_formulas(frame: Any) -> Any:
    """Put an apostrophe before texts and names of columns that a spreadsheet would take for formulas.

    >>> import pandas as pd
    >>> without_formulas(pd.DataFrame({"=A1": ["@a", "b"], "n": [-1.0, 2.0]})).to_dict("list")
    {"'=A1": ["'@a", 'b'], 'n': [-1.0, 2.0]}
    """

    def safe(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value

    made = frame.copy()
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        if column.dtype.kind not in "fiub":
            made[name] = column.astype(object).map(safe)
    made.columns = [safe(str(name)) for name in frame.columns]
    return made
