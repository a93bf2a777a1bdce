"""Sequences, molecules and graphs: what kernels on objects take, what they beat and what beats them.

Run ``python benchmarks/objects.py``; ``--part speed`` (proteins, molecules, graphs) is one part of it.  Every split
keeps its results in ``studies/results/objects_runs.csv``, so that a run that was stopped goes on where it was; tables
are written from what is there.  The data come from the folder named by ``KERNELWEAVE_DATA``: ``molecules`` (ESOL,
FreeSolv, Lipophilicity of MoleculeNet) and ``scop40``; molecules need RDKit.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

from _measure import RUNS, Runs, machine, pin, show, write_table
from kernelweave import MKLClassifier, MKLClassifierCV, MKLRegressorCV, SimilarityClassifier
from kernelweave import kernels as kw

FILE = RUNS / "objects_runs.csv"
DATA = Path(os.environ.get("KERNELWEAVE_DATA", "."))
AMINO_ACIDS = list("ACDEFGHIKLMNPQRSTVWY")


# Speed: sequences as they are in proteins, at random, with a word of five letters in one class.


def speed(runs: Runs, splits: int) -> None:
    """Time 5,000 sequences of 300 letters: features of words of four, and l1 over words of two to six."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 5000)
    X = ["".join(rng.choice(AMINO_ACIDS, 300)) for _ in y]
    X = [x[:100] + "WCWHK" + x[105:] if t and rng.random() < 0.9 else x for x, t in zip(X, y, strict=True)]
    MKLClassifier(kw.spectrum([2, 3], alphabet="protein")).fit(X[:600], y[:600])  # what is compiled is loaded

    def features() -> float:
        kernel = kw.spectrum(4, alphabet="protein").resolve(X)
        return float(kernel.features(X).shape[1])

    def fit() -> float:
        model = MKLClassifier(kw.spectrum(range(2, 7), alphabet="protein")).fit(X, y)
        return float(model.certificate_.relative_gap)

    for repeat in range(min(splits, 3)):
        runs.put("speed", "5,000 x 300", repeat, "features, k = 4", features)
        runs.put("speed", "5,000 x 300", repeat, "l1 over k = 2..6", fit)


def speed_rows(runs: Runs) -> list[dict[str, Any]]:
    found = runs.of("speed", "5,000 x 300")
    return [
        {
            "what": method,
            "processor seconds, best of 3": round(float(values[:, 1].min()), 2),
            "columns or relative gap": f"{values[0, 0]:.3g}",
        }
        for method, values in found.items()
    ]


# Proteins: each of eight superfamilies of SCOP against the others.


def proteins(runs: Runs, splits: int) -> None:
    """Words of sequences against alignment scores, half of the proteins to train on."""
    archive = np.load(DATA / "scop40" / "scop40.npz", allow_pickle=False)
    family, S = archive["superfamily"], archive["smith_waterman"]
    sequences: dict[str, str] = {}
    for block in (DATA / "scop40" / "proteins.fasta").read_text().split(">")[1:]:
        header, *lines = block.splitlines()
        sequences[header.split()[0]] = "".join(lines)
    texts = np.array([sequences[name] for name in archive["ids"]], dtype=object)
    words = kw.spectrum([1, 2, 3, 4], alphabet="protein") + kw.spectrum(3, gaps=2, alphabet="protein")
    for name in np.unique(family):
        y = (family == name).astype(int)
        for split, (a, b) in enumerate(
            StratifiedShuffleSplit(splits, test_size=0.5, random_state=0).split(y, y)
        ):

            def auc(model: Any, X: Any, new: Any, a: Any = a, b: Any = b, y: Any = y) -> float:
                return float(roc_auc_score(y[b], model.fit(X, y[a]).decision_function(new)))

            def choose(bank: Any) -> MKLClassifierCV:
                return MKLClassifierCV(bank, Cs=[1.0, 10.0, 100.0], cv=3, random_state=0, scoring="roc_auc")

            rows = (
                {"words": texts[a], "scores": S[np.ix_(a, a)]},
                {"words": texts[b], "scores": S[np.ix_(b, a)]},
            )
            both = words.on("words") + kw.linear().on("scores")
            similar = SimilarityClassifier("precomputed", method="denoise", C=10.0)
            for method, run in {
                "words": lambda a=a, b=b: auc(choose(words), texts[a], texts[b]),
                "words of three": lambda a=a, b=b: auc(choose(words[2]), texts[a], texts[b]),
                "alignment scores as rows": lambda rows=rows: auc(
                    choose(kw.linear()), rows[0]["scores"], rows[1]["scores"]
                ),
                "alignment, SimilarityClassifier": lambda a=a, b=b, similar=similar: auc(
                    similar, [S[np.ix_(a, a)]], [S[np.ix_(b, a)]]
                ),
                "words and alignment scores": lambda rows=rows, both=both: auc(choose(both), *rows),
            }.items():
                runs.put("proteins", str(name), split, method, run)


def proteins_rows(runs: Runs) -> list[dict[str, Any]]:
    names = sorted({key[1] for key in runs.known if key[0] == "proteins"})
    rows = []
    for name in names:
        found = runs.of("proteins", name)
        rows.append({"superfamily": name} | {m: f"{v[:, 0].mean():.3f}" for m, v in found.items()})
    if rows:
        every = [runs.of("proteins", name) for name in names]
        means = {m: np.mean([f[m][:, 0].mean() for f in every if m in f]) for m in every[0]}
        rows.append({"superfamily": "mean"} | {m: f"{v:.3f}" for m, v in means.items()})
        took = {m: np.mean([f[m][:, 1].mean() for f in every if m in f]) for m in every[0]}
        rows.append({"superfamily": "seconds a fit"} | {m: f"{v:.1f}" for m, v in took.items()})
    return rows


# Molecules: three properties of MoleculeNet, random splits.

TARGETS = {"ESOL": "measured log solubility in mols per litre", "FreeSolv": "expt", "Lipophilicity": "exp"}


class Precomputed(Kernel):
    """A kernel matrix for scikit-learn's Gaussian process, with sample indices as X."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    def __call__(self, X: np.ndarray, Y: Any = None, eval_gradient: bool = False) -> Any:
        rows = X[:, 0].astype(int)
        K = self.matrix[np.ix_(rows, rows if Y is None else Y[:, 0].astype(int))]
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X: np.ndarray) -> np.ndarray:
        return np.diagonal(self.matrix)[X[:, 0].astype(int)]

    def is_stationary(self) -> bool:
        return False


def molecules(
    runs: Runs, splits: int, names: tuple[str, ...] = ("FreeSolv", "ESOL", "Lipophilicity")
) -> None:
    """Fingerprints of several radii and descriptors against a Gaussian process and gradient boosting."""
    for name in names:
        with (DATA / "molecules" / f"{name}.csv").open(newline="") as file:
            table = list(csv.DictReader(file))
        smiles = np.array([row["smiles"] for row in table], dtype=object)
        y = np.array([float(row[TARGETS[name]]) for row in table])
        numbers = kw.descriptors(list(smiles)).to_numpy()
        K = kw.fingerprint(radius=2)(list(smiles))
        structure = kw.fingerprint(radius=[1, 2, 3])
        bank = structure.on("structure") + kw.gaussian([0.5, 1.0, 2.0], relative=True).on("numbers")
        for split, (a, b) in enumerate(ShuffleSplit(splits, test_size=0.2, random_state=0).split(y)):
            normal = QuantileTransformer(n_quantiles=200, output_distribution="normal", random_state=0)
            scaler = make_pipeline(SimpleImputer(keep_empty_features=True), normal).fit(numbers[a])

            def rmse(predicted: Any, b: Any = b, y: Any = y) -> float:
                return float(np.sqrt(np.mean((predicted - y[b]) ** 2)))

            def ours(
                bank: Any, a: Any = a, b: Any = b, y: Any = y, smiles: Any = smiles, numbers: Any = numbers,
                scaler: Any = scaler, rmse: Any = rmse,
            ) -> float:  # fmt: skip
                X = [
                    {
                        "structure": smiles[rows],
                        "numbers": np.clip(scaler.transform(numbers[rows]), -3.0, 3.0),
                    }
                    for rows in (a, b)
                ]
                few: dict[str, Any] = (
                    {"cv": 5} if len(a) < 2000 else {"cv": 3, "norm": 2, "Cs": [1.0, 10.0, 100.0]}
                )
                model = MKLRegressorCV(bank, random_state=0, **few).fit(X[0], y[a])
                return rmse(model.predict(X[1]))

            def process(a: Any = a, b: Any = b, y: Any = y, K: Any = K, rmse: Any = rmse) -> float:
                kernel = ConstantKernel(1.0) * Precomputed(K) + WhiteKernel(0.1)
                model = GaussianProcessRegressor(kernel, normalize_y=True).fit(a[:, None], y[a])
                return rmse(model.predict(b[:, None]))

            def boosting(X: Any, a: Any = a, b: Any = b, y: Any = y, rmse: Any = rmse) -> float:
                model = HistGradientBoostingRegressor(max_iter=300, learning_rate=0.05, random_state=0)
                return rmse(model.fit(X[a], y[a]).predict(X[b]))

            for method, run in {
                "Gaussian process, Tanimoto": process,
                "fingerprints and descriptors": lambda ours=ours, bank=bank: ours(bank),
                "fingerprints alone": lambda ours=ours, s=structure: ours(s.on("structure")),
                "gradient boosting, descriptors": lambda boosting=boosting, X=numbers: boosting(X),
            }.items():
                runs.put("molecules", name, split, method, run)


def molecules_rows(runs: Runs) -> list[dict[str, Any]]:
    rows = []
    for name in TARGETS:
        found = runs.of("molecules", name)
        if "fingerprints and descriptors" not in found:
            continue
        ours = found["fingerprints and descriptors"][:, 0]
        for method, values in found.items():
            size = min(len(ours), len(values))
            less = values[:size, 0] - ours[:size]
            error = less.std(ddof=1) / np.sqrt(size) if size > 1 else np.nan
            rows.append({
                "set": name, "method": method, "RMSE": f"{values[:, 0].mean():.3f}",
                "more than ours": f"{less.mean():+.3f} +- {error:.3f}" if less.any() else "",
                "splits": size, "seconds a fit": f"{np.median(values[:, 1]):.1f}",
            })  # fmt: skip
    return rows


# Graphs: generated, of two kinds that have the same labels and degrees, more or less.


def random_graph(rng: np.random.Generator, motif: bool) -> tuple[np.ndarray, list[str]]:
    """A tree of 12 to 20 nodes with four edges more; half of the graphs have a ring of six with C and N in turns."""
    n = int(rng.integers(12, 21))
    A = np.zeros((n, n))
    for i in range(1, n):
        j = int(rng.integers(0, i))
        A[i, j] = A[j, i] = 1.0
    labels = rng.choice(list("CNO"), size=n, p=[0.45, 0.35, 0.2])
    for _ in range(4):
        i, j = rng.integers(0, n, 2)
        A[i, j] = A[j, i] = float(i != j)
    ring = rng.permutation(n)[:6]
    labels[ring] = list("CNCNCN") if motif else rng.permutation(list("CNCNCN"))
    for i, j in zip(ring, np.roll(ring, 1), strict=True):
        A[i, j] = A[j, i] = 1.0
    return A, labels.tolist()


def graphs(runs: Runs, splits: int) -> None:
    """Graph kernels together against each alone, and against a forest on counts of labels and degrees."""
    for split in range(splits):
        rng = np.random.default_rng(split)
        y = np.arange(600) % 2
        X = [random_graph(rng, bool(label)) for label in y]
        bank = kw.weisfeiler_lehman([0, 1, 2, 3]) + kw.shortest_path()

        def accuracy(bank: Any, X: Any = X, y: Any = y) -> float:
            model = MKLClassifierCV(bank, Cs=[1.0, 10.0, 100.0], cv=3, random_state=0)
            return float(model.fit(X[:300], y[:300]).score(X[300:], y[300:]))

        def forest(X: Any = X, y: Any = y) -> float:
            counts = np.array([
                [*map(labels.count, "CNO"), *np.bincount(A.sum(axis=0).astype(int), minlength=12)[:12]]
                for A, labels in X
            ])  # fmt: skip
            model = RandomForestClassifier(500, random_state=0).fit(counts[:300], y[:300])
            return float(model.score(counts[300:], y[300:]))

        methods: dict[str, Callable[[], float]] = {"all five kernels": lambda a=accuracy, b=bank: a(b)}
        methods |= {kernel.name: lambda a=accuracy, k=kernel: a(k) for kernel in bank}
        methods["forest on counts of labels and degrees"] = forest
        for method, run in methods.items():
            runs.put("graphs", "rings in trees", split, method, run)


def graphs_rows(runs: Runs) -> list[dict[str, Any]]:
    return [
        {
            "method": method,
            "accuracy": f"{values[:, 0].mean():.3f}",
            "standard error": f"{values[:, 0].std(ddof=1) / np.sqrt(len(values)):.3f}",
            "seconds a fit": f"{np.median(values[:, 1]):.1f}",
        }
        for method, values in runs.of("graphs", "rings in trees").items()
        if len(values) > 1
    ]


PARTS = {
    "speed": (speed, speed_rows, "5,000 sequences of 300 letters, alphabet of proteins; one thread."),
    "proteins": (
        proteins, proteins_rows,
        "Area under the ROC curve, one superfamily against the seven others, half of the 727 proteins to train on, "
        "three splits. *Words*: spectrum kernels of 1 to 4 letters and of 3 with 2 gaps. *Alignment scores*: "
        "Smith-Waterman, "
        "as rows of numbers (a linear kernel on the scores against the training proteins), or as a similarity.",
    ),
    "molecules": (
        molecules, molecules_rows,
        "Root mean squared error on a fifth of the molecules, random splits. *Fingerprints and descriptors*: "
        "`MKLRegressorCV` on Morgan counts of radius 1 to 3 and three Gaussians on RDKit's descriptors; norm and C by "
        "five-fold cross-validation (Lipophilicity: norm 2, three values of C, three folds). The Gaussian process of "
        "scikit-learn has the Tanimoto kernel of radius 2, its two variances by evidence. *Boosting*: "
        "`HistGradientBoostingRegressor`, 300 trees at a rate of 0.05. "
        "*More than ours*: mean over splits, and its standard error.",
    ),
    "graphs": (
        graphs, graphs_rows,
        "300 generated graphs to train on, 300 to test; two kinds that differ in the order of the labels in a ring of "
        "six nodes, which has as many of each in both.",
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="one part; all of them by default")
    parser.add_argument("--set", choices=TARGETS, help="one set of molecules")
    parser.add_argument("--quick", action="store_true", help="two splits")
    parser.add_argument(
        "--write", action="store_true", help="run nothing, and write the tables of what is there"
    )
    options = parser.parse_args()
    pin()
    print(machine())
    runs = Runs(FILE)
    for part in options.part or PARTS:
        measure, rows_of, note = PARTS[part]
        if options.set:
            measure = partial(molecules, names=(options.set,))
        if not options.write:
            measure(runs, {"molecules": 10}.get(part, 3) if not options.quick else 2)
        rows = rows_of(runs)
        show(rows)
        write_table(f"objects_{part}", rows, f"python benchmarks/objects.py --part {part}", note)


if __name__ == "__main__":
    main()
