"""What was done to a table that its owner may not expect: said per column, and kept in the label of the model."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Remarks", "looks"]

#: columns named in one line
MOST_NAMED = 12


@dataclass
class Remarks:
    """What reading and treating a table did to it.

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
