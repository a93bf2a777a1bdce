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
    """Changes that reading and treating a table made to it."""

    #: of every file, how it was read where that was not as its suffix says: encoding and separator
    files: dict[str, str] = field(default_factory=dict)
    #: new names of columns whose names were there twice, or not there at all, with the old ones
    renamed: dict[str, str] = field(default_factory=dict)
    decimal_commas: list[str] = field(default_factory=list)
    #: columns that look like numbers and hold texts as well, with these texts and how often they are there
    numbers_as_categories: dict[str, dict[str, int]] = field(default_factory=dict)
    #: of columns of texts, the groups of texts that differ only by spaces around them, letter case and the like
    alike: dict[str, list[list[str]]] = field(default_factory=dict)
    #: missing cells of columns of numbers: they become the median of the training table
    imputed: dict[str, int] = field(default_factory=dict)
    #: missing cells of columns of categories: they are a category of their own
    missing_as_category: dict[str, int] = field(default_factory=dict)
    #: rows that lack a view altogether, and what becomes of them: ``predict`` or ``mean``
    completed: dict[str, int] = field(default_factory=dict)
    completed_by: str = ""
    #: in a new table: cells with a category that the training table did not have
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
            groups.setdefault(comparable(text), []).append(text)
        several = [group for group in groups.values() if len(group) > 1]
        if several:
            self.alike[column] = several

    def as_dict(self) -> dict[str, Any]:
        """Return what there is to say as plain data; empty where there is nothing."""
        return {key: value for key, value in vars(self).items() if value and key != "rows"}

    def lines(self) -> list[str]:
        """Return a sentence for everything that happened, with the columns it happened to."""
        lines = [f"{name} was read as {how}" for name, how in self.files.items()]
        for new, old in self.renamed.items():
            twice = f"the header has {old!r} more than once: one of these columns is called {new!r} here"
            no_name = f"a column without a name is called {new!r} here: --drop it if it numbers the rows"
            lines.append(twice if old else no_name)
        if self.decimal_commas:
            named, more = self.decimal_commas[:MOST_NAMED], len(self.decimal_commas) - MOST_NAMED
            columns = ", ".join(map(repr, named)) + (f" and {more} further columns" if more > 0 else "")
            lines.append(f"decimal commas were read as decimal points in {columns}")
        for column, texts in self.numbers_as_categories.items():
            first = next(iter(texts))
            if all("," in text for text in texts):
                lines.append(
                    f"column {column!r} holds numbers with commas, such as {first!r}: it is treated as categories; "
                    "--decimal , makes decimals of the commas, thousands are to be written without"
                )
                continue
            counted = [f"{text!r}" + (f" ({n} times)" if n > 1 else "") for text, n in texts.items()]
            shown = ", ".join(counted[:3]) + (f" and {len(texts) - 3} other texts" if len(texts) > 3 else "")
            lines.append(
                f"column {column!r} holds numbers and also {shown}: it is treated as categories; --na {first!r} makes "
                "such cells missing ones"
            )
        for column, groups in self.alike.items():
            lines += [self._of_alike(column, group) for group in groups]
        ways = {"predict": "predicted from the other views", "mean": "the mean of the training samples"}
        way = ways.get(self.completed_by, "completed")
        of = f" of {self.rows} rows" if self.rows else ""
        for sentence, cells in (
            ("missing numbers became the median of the training table", self.imputed),
            (f"views that rows lack altogether are {way} there", self.completed),
            ("missing texts are a category of their own", self.missing_as_category),
            ("categories that the training table did not have count as none", self.unknown_categories),
        ):
            if cells:
                counts = [f"{column!r} {count}" for column, count in list(cells.items())[:MOST_NAMED]]
                rest = list(cells.values())[MOST_NAMED:]
                others = f", and {sum(rest)} cells of {len(rest)} further columns" if rest else ""
                lines.append(f"{sentence}: {', '.join(counts)}{of}{others}")
        return lines

    @staticmethod
    def _of_alike(column: str, texts: list[str]) -> str:
        """Say what the difference between texts is, and what to do."""
        remedy = "write them alike if they mean the same"
        if len({text.strip() for text in texts}) == 1:
            why, remedy = "by spaces around them", "--strip removes these"
        elif len({text.casefold() for text in texts}) == 1:
            why = "by upper and lower case"
        else:
            why = "by spaces, letter case or the encoding of letters"
        shown = ", ".join(map(repr, texts[:-1])) + f" and {texts[-1]!r}"
        return f"column {column!r} has {shown}, which differ only {why} and count as different: {remedy}"


def comparable(text: str) -> str:
    """Return a text as people read it: without spaces around it, letter case and the encoding of its letters.

    >>> comparable(" Yes") == comparable("yes"), comparable("yes") == comparable("yes!")
    (True, False)
    """
    return " ".join(unicodedata.normalize("NFKC", text).split()).casefold()


SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
#: separators that stand in texts as often: taken only where they are given, and suggested
OTHERS = {" ": "spaces", "^": "carets", "~": "tildes", ":": "colons"}
#: what files begin with that are no text tables, and what they are
OTHER_FILES = {
    b"PK\x03\x04": "a zip archive or a spreadsheet (xlsx): save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet (xls): save the sheet as CSV",
    b"PAR1": "a Parquet file: call it .parquet",
    b"\x93NUMPY": "a NumPy file: call it .npy",
    **dict.fromkeys((b"<!", b"<?", b"<html"), "HTML or XML, no table"),
    **dict.fromkeys((b'{"', b"[{"), "JSON, no table"),
}
#: a first line that gives spreadsheets the separator
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
    """How text tables are written; None is found out."""

    separator: str | None = None  # a space stands for any number of them, and for tabs
    encoding: str | None = None
    decimal: str | None = None
    missing: tuple[
        str, ...
    ] = ()  # texts that mean a missing cell, beside the usual ones (empty, NA, NaN, null, ...)
    comment: str | None = None  # lines that begin so are left out
    #: whether white space around texts and names of columns is removed, in tables of every kind
    strip: bool = False


def _text_of_file(content: bytes, name: str, form: Format) -> tuple[str, str]:
    """Return the text of a file without comments, and its encoding; what is no text table is refused."""
    if content.startswith(GZIP):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"cannot unpack {name}: {error}") from None
    beginning = content[:100].lstrip(codecs.BOM_UTF8 + b" \r\n\t").lower()
    for mark, what in OTHER_FILES.items():
        if beginning.startswith(mark.lower()):
            raise ValueError(f"{name} is {what}")
    text, encoding = decode(content, name, form.encoding)
    if form.comment is not None:
        text = re.sub(rf"(?m)^{re.escape(form.comment)}.*(\n|\Z)", "", text)
    if not text.strip():
        raise ValueError(f"{name} is empty")
    return text, encoding


def decode(content: bytes, name: str, encoding: str | None = None) -> tuple[str, str]:
    """Return text and encoding: as given, by its mark, UTF-16 by its zeros, UTF-8, else Windows-1252 or Latin-1."""
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
        header = None
        for place, line in enumerate(above):
            line = line.lstrip(mark)
            parts = (part.strip() for sep in {separator, *SEPARATORS} for part in line.split(sep))
            if header is None and not wanted.isdisjoint(parts):
                header = place
        if header != 0:
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


def _suggested_separator(text: str) -> str:
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
            + (_suggested_separator(text) or "name every column, or say what separates them with --separator")
        )
    if len(names) == 1 and single and names[0] not in single and (hint := _suggested_separator(text)):
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


def _make_numbers(
    frame: Any, codes: list[str], decimal: str | None, texts: set[str], remarks: Remarks
) -> None:
    """Make numbers of columns of codes without leading zeros, and of those that are written with decimal commas."""
    import pandas as pd

    for column in codes:
        values = frame[column]
        if not values.dropna().map(CODE.fullmatch).any():
            numbers = pd.to_numeric(values, errors="coerce")
            frame[column] = values if (numbers.isna() & values.notna()).any() else numbers
    if decimal == ".":
        return
    for column in frame.columns:
        values = frame[column]
        if str(column) in texts or not pd.api.types.is_string_dtype(values.dtype) or values.isna().all():
            continue
        distinct = [str(value).strip() for value in values.dropna().unique()]
        commas = [text for text in distinct if "," in text]
        if not commas or not all(COMMA_NUMBER.fullmatch(text) for text in distinct):
            continue
        if decimal is None and all(THOUSANDS.fullmatch(text) for text in commas):
            continue  # 1,234 may be either: it stays a text until --decimal is given
        frame[column] = pd.to_numeric(values.str.strip().str.replace(",", ".", regex=False))
        remarks.decimal_commas.append(str(column))


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


def require_file(path: Path) -> None:
    """Raise where there is no such file."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")


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
    path, form, remarks
        The file, how text tables are written, as far as that is given, and where to keep what was found out.
    texts, codes : sequence of str
        Columns of text tables that stay texts, and those that do where a number in them begins with zeros.
    ids : sequence of str
        Columns that name rows, in tables of every kind: texts, an empty one where there is none.
    single : sequence of str
        Columns that the table is read for, of which there must not be two.
    """
    import pandas as pd

    form, remarks = form or Format(), Remarks() if remarks is None else remarks
    suffix = suffix_of(path)
    name = "the standard input" if path == STANDARD else str(path)
    if path != STANDARD:
        if suffix not in READABLE:
            raise ValueError(
                f"cannot read {path}: the suffix {suffix or 'is missing, it'} is none of {', '.join(READABLE)}"
            )
        require_file(path)
    if suffix == ".parquet":
        try:
            return _tidied(pd.read_parquet(path), name, form, remarks, ids)
        except ImportError:
            raise ValueError("reading Parquet files needs pip install 'kernelweave[parquet]'") from None
        except Exception as error:
            raise ValueError(f"cannot read {path}: {error}") from error
    if path != STANDARD and suffix not in DELIMITED:
        return _tidied(_arrays(path), name, form, remarks, ids)
    content = sys.stdin.buffer.read() if path == STANDARD else path.read_bytes()
    # what its suffix promises; without one: tabs, where the first line has any
    expected = DELIMITED.get(suffix, "\t" if b"\t" in content.split(b"\n", 1)[0] else ",")
    frame = _read_text(content, name, expected, form, remarks, texts, ids, single, codes)
    return _tidied(frame, name, form, remarks, ids)


def _read_text(
    content: bytes, name: str, expected: str, form: Format, remarks: Remarks,
    texts: Sequence[str], ids: Sequence[str], single: Sequence[str], codes: Sequence[str],
) -> Any:  # fmt: skip
    """Return a data frame from the bytes of a text table, perhaps compressed; what was found out is remarked.

    ``expected`` is the separator that the suffix promises; the other parameters are those of ``read_table``.
    """
    import pandas as pd

    text, encoding = _text_of_file(content, name, form)
    sep_line = SEP_LINE.match(text)
    if sep_line is not None:
        text = text[sep_line.end() :]
    separator = form.separator or (separator_of(text, expected) if sep_line is None else sep_line[1])
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
    perhaps_codes = [written[column] for column in codes if column in written and column not in texts]
    _make_numbers(frame, perhaps_codes, form.decimal, {*texts, *ids}, remarks)
    unusual = [encoding] if encoding not in ("utf-8", "utf-8-sig") else []
    unusual += [f"columns separated by {_called(separator)}"] if separator != expected else []
    if unusual:
        remarks.files[name] = ", ".join(unusual)
    for old, new in zip(header, frame.columns, strict=False):
        if str(new) != old:
            remarks.renamed[str(new)] = old
    return frame


def _tidied(frame: Any, name: str, form: Format, remarks: Remarks, ids: Sequence[str]) -> Any:
    """Return a table whose names are single texts, with ids as texts and, if wanted, no white space around texts."""
    import pandas as pd

    frame.columns = [str(label).strip() if form.strip else str(label) for label in frame.columns]
    if broken := [label for label in frame.columns if "\0" in label]:
        raise ValueError(f"{name} has a column {broken[0]!r}, with a NUL in its name: rename it")
    if len(twice := frame.columns[frame.columns.duplicated()]):
        raise ValueError(f"{name} has two columns called {twice[0]!r}")
    if not len(frame):
        raise ValueError(f"{name} has no rows")
    remarks.rows = remarks.rows or len(frame)
    for column in frame.columns:
        # whole numbers beyond 64 bits, and decimals of Parquet
        large = ("integer", "decimal", "mixed-integer-float")
        values = frame[column]
        if values.dtype.kind == "O" and pd.api.types.infer_dtype(values, skipna=True) in large:
            frame[column] = values.map(lambda value: float(str(value)), na_action="ignore").astype(float)
    for column in (column for column in ids if column in frame):
        values = frame[column].astype(object)
        frame[column] = values.map(text_of).where(values.notna(), "")
    if not form.strip:
        return frame
    frame = frame.copy()
    for column in frame.columns:
        values = frame[column]
        if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_datetime64_any_dtype(values):
            continue
        texts = values.astype(object).map(lambda value: value.strip() if isinstance(value, str) else value)
        # what is nothing but white space is a missing cell
        frame[column] = texts if column in ids else texts.where(texts != "", None)
    return frame


def text_of(value: Any) -> str:
    """Write a value as text: a whole number without decimals, since missing ones make fractions of whole columns."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _arrays(path: Path) -> Any:
    import numpy as np
    import pandas as pd

    loaded = _load_arrays(path)
    named = loaded
    if isinstance(loaded, np.ndarray):
        named = {"x": loaded} if loaded.dtype.names is None else {n: loaded[n] for n in loaded.dtype.names}
        if loaded.dtype.names is None and loaded.ndim != 2:
            raise ValueError(f"{path} holds an array of shape {loaded.shape}: a table has rows and columns")
    columns: dict[str, Any] = {}
    for name, array in named.items():
        if array.ndim > 2 or array.ndim == 0:
            raise ValueError(
                f"{path}: the array {name!r} has shape {array.shape}, neither a column nor a table"
            )
        if array.dtype.kind == "S":  # texts of other programs, in bytes
            array = np.char.decode(array, "utf-8")
        joint = "" if isinstance(loaded, np.ndarray) else "_"
        if array.ndim == 1:
            columns[name] = array
        else:
            columns |= {f"{name}{joint}{j}": column for j, column in enumerate(array.T)}
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
    except MemoryError:
        raise
    except Exception as error:  # of NumPy, zipfile and zlib; objects, a pickle, too
        raise ValueError(f"cannot read {path}: {error or type(error).__name__}") from None


def read_matrices(paths: Sequence[Path]) -> list[Any]:
    """Return kernel matrices from NumPy files (an (m, n, n) array counts as m), CSV without header, or NPZ."""
    import numpy as np

    matrices: list[Any] = []
    for path in paths:
        require_file(path)
        try:
            if path.suffix.lower() in (".npy", ".npz"):
                arrays = _load_arrays(path)
                loaded = list(arrays.values()) if isinstance(arrays, dict) else [arrays]
            elif path.suffix.lower() in (".csv", ".tsv"):
                loaded = [np.loadtxt(path, delimiter="," if path.suffix.lower() == ".csv" else "\t", ndmin=2)]
            else:
                raise ValueError(f"the suffix of {path} is none of .npy, .npz, .csv, .tsv")
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


def write_table(frame: Any, path: Path, spreadsheet: bool = False) -> None:
    """Write a data frame whole, in the format that the suffix says; CSV and TSV without formulas where asked for."""
    import zipfile

    import numpy as np

    from .._output import whole_file

    suffix = ".csv" if path == STANDARD else path.suffix.lower()
    if spreadsheet and suffix in (".csv", ".tsv"):
        frame = without_formulas(frame)
    if path == STANDARD:
        write_out(frame.to_csv(index=False))
        return
    with whole_file(path) as part:
        if suffix in (".csv", ".tsv"):
            frame.to_csv(part, index=False, sep="," if suffix == ".csv" else "\t")
            return
        if suffix == ".parquet":
            frame.to_parquet(part, index=False)
            return
        # unlike NumPy's own function this takes any name, ``file`` for example
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in frame:
                if "\0" in name:
                    raise ValueError(
                        f"an NPZ file cannot have a column {name!r}, with a NUL in its name: write CSV"
                    )
                array = frame[name].to_numpy()
                array = array if array.dtype.kind in "fiub" else array.astype(str)
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
