"""Simulated cells with planted gene sets, and two programs that look for them: ours and scMKL."""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from _report import RUNS, machine, show, write_table
from kernelweave import MKLClassifier, MKLClassifierCV
from kernelweave import kernels as kw
from kernelweave.inspection import group_table

CELLS, GENES, SETS, TRUE = 1000, 2000, 50, 4
#: share of the cells that are learnt from; folds of both searches, and values of C of ours
TRAIN, FOLDS, GRID = 0.8, 4, 10
#: principal components of every set, the default of the kernel
COMPONENTS = 3
#: of the p-values, adjusted by Holm for all sets
LEVEL = 0.05


@dataclass(frozen=True)
class Cells:
    """Counts of cells in two states, gene sets, which of them differ between the states, and who is learnt from."""

    counts: pd.DataFrame
    state: np.ndarray
    sets: dict[str, list[str]]
    truth: frozenset[str]
    train: np.ndarray


def planted(seed: int) -> Cells:
    """Draw 1,000 cells: every set has a programme that moves its genes together; that of four depends on the state.

    Counts are negative binomial with a library size for every cell; sets are drawn independently and overlap.
    """
    rng = np.random.default_rng(seed)
    genes = [f"GENE{j}" for j in range(GENES)]
    sets = {
        f"SET_{j:02d}": sorted(rng.choice(genes, size=int(rng.integers(20, 60)), replace=False))
        for j in range(SETS)
    }
    truth = frozenset(rng.choice(list(sets), size=TRUE, replace=False).tolist())
    state = rng.integers(0, 2, size=CELLS)
    rate = pd.DataFrame(
        np.repeat(rng.normal(-0.5, 1.0, size=(1, GENES)), CELLS, axis=0), columns=genes, dtype=float
    )
    for name, members in sets.items():
        programme = 0.3 * rng.normal(size=CELLS)
        if name in truth:
            programme += 0.2 * (2 * state - 1)
        loading = rng.uniform(0.3, 1.0, size=len(members))
        rate[members] += programme[:, None] * loading
    depth = rng.lognormal(0.0, 0.4, size=(CELLS, 1))
    mean = depth * np.exp(rate.to_numpy())
    counts = rng.poisson(rng.gamma(2.0, mean / 2.0))
    order = rng.permutation(CELLS)
    train = np.sort(order[: int(TRAIN * CELLS)])
    return Cells(pd.DataFrame(counts, columns=genes), state, sets, truth, train)


def log_normalised(counts: pd.DataFrame) -> pd.DataFrame:
    """Logarithms of counts per 10,000 of the cell's total."""
    return np.log1p(counts.div(counts.sum(axis=1), axis=0) * 1e4)


def ours(cells: Cells, seed: int) -> list[dict[str, Any]]:
    """Leading components of every set, C by the area under the curve, then p-values at that C; and linear kernels."""
    began = time.process_time()
    samples, new = _standardised(cells)
    state = cells.state[cells.train]
    model, score = _searched(cells, kw.principal(COMPONENTS), samples, new)
    chosen = {"chosen": f"C = {model.C_:.2g}"}
    weighty = _line("kernelweave, sets with weight", cells, _with_weight(cells, model), score, 0.0) | chosen
    weighty["seconds"] = time.process_time() - began
    tested = MKLClassifier(model.kernels, loss="logistic", C=model.C_).fit(samples, state)
    table = group_table(tested, samples, state, n_permutations=999, random_state=seed)
    sure = set(table["group"][table["p_holm"] <= LEVEL])
    lines = [_line("kernelweave", cells, sure, score, time.process_time() - began) | chosen, weighty]
    began = time.process_time()
    samples, new = _standardised(cells)
    model, score = _searched(cells, kw.linear(), samples, new)
    seconds = time.process_time() - began
    plain = _line("kernelweave, linear, sets with weight", cells, _with_weight(cells, model), score, seconds)
    return [*lines, plain | {"chosen": f"C = {model.C_:.2g}"}]


def _standardised(cells: Cells) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cells to learn from, and the others, genes on the scale of the former."""
    X = log_normalised(cells.counts)
    test = np.setdiff1d(np.arange(CELLS), cells.train)
    scaler = StandardScaler().set_output(transform="pandas").fit(X.iloc[cells.train])
    return scaler.transform(X.iloc[cells.train]), scaler.transform(X.iloc[test])


def _searched(
    cells: Cells, kernel: kw.Kernel, samples: pd.DataFrame, new: pd.DataFrame
) -> tuple[MKLClassifierCV, float]:
    """Model at the C with the largest mean area under the curve, and its area on new cells."""
    test = np.setdiff1d(np.arange(CELLS), cells.train)
    bank = kw.from_groups(cells.sets, kernel)
    model = MKLClassifierCV(bank, loss="logistic", Cs=np.logspace(-2, 1, GRID), cv=FOLDS, scoring="roc_auc")
    model.fit(samples, cells.state[cells.train])
    return model, float(roc_auc_score(cells.state[test], model.decision_function(new)))


def _with_weight(cells: Cells, model: MKLClassifierCV) -> set[str]:
    return {name for name, weight in zip(cells.sets, model.weights_, strict=True) if weight > 0}


def scmkl(cells: Cells, seed: int) -> list[dict[str, Any]]:
    """scMKL as its tutorial runs it: its scaling, its widths and features, its own search for alpha, its own test."""
    import scipy.sparse as sp
    import scmkl as program

    began = time.process_time()
    split = np.full(CELLS, "test", dtype=object)
    split[cells.train] = "train"
    with contextlib.redirect_stdout(io.StringIO()):
        data = program.create_adata(
            X=sp.csr_matrix(log_normalised(cells.counts).to_numpy()),
            feature_names=np.array(cells.counts.columns),
            cell_labels=np.where(cells.state, "sick", "well"),
            group_dict={name: set(members) for name, members in cells.sets.items()},
            scale_data=True,
            split_data=split,
            random_state=seed + 1,
        )
        data = program.calculate_z(data)
        alpha = program.optimize_alpha(data, k=FOLDS, metric="AUROC")
        result = program.run(data, np.array([alpha]), metrics=["AUROC"])
    seconds = time.process_time() - began
    found = set(result["Selected_groups"][alpha].tolist())
    line = _line("scMKL", cells, found, result["Metrics"][alpha]["AUROC"], seconds)
    return [line | {"chosen": f"alpha = {alpha:.2g}"}]


def _line(program: str, cells: Cells, found: set[str], score: float, seconds: float) -> dict[str, Any]:
    right = len(found & cells.truth)
    return {
        "program": program,
        "recall": right / len(cells.truth),
        "precision": right / max(len(found), 1),
        "sets": len(found),
        "AUROC": float(score),
        "seconds": seconds,
    }


NOTE = """{draws} draws of {cells} cells and {genes} genes: negative binomial counts, a library size per cell, {sets}
overlapping gene sets of 20 to 60 genes, each with a programme that moves its genes together; in {true} of them the
programme also depends on the state of the cell, which is to be predicted. {train:.0%} of the cells are learnt from,
AUROC is that of the others. Both get counts per 10,000 on a logarithmic scale, genes standardised on training cells.

*kernelweave*: the {components} leading principal components of every set (`kernels.principal`), l1, logistic loss,
{grid} values of C on {folds} folds by AUROC (`MKLClassifierCV`); found are the sets whose p-value by permutation on
held-out cells (`inspection.group_table`, adjusted by Holm for all sets) is at most {level}. *sets with weight*: the
same model, every set that l1 gave weight. *linear*: linear kernels on all genes of a set. The procedure was settled on
draws 100 to 107, none of which is in the table. *scMKL* 0.5: its own features and widths, its own search for alpha (10
values on {folds} folds by AUROC), sets with weight at that alpha. A set that shares genes with a planted one is not
counted as found. *seconds* of the processor, one thread, search and final fit included, after compilation, {machine}.
The line *+-* is the standard deviation over the draws."""


def study(first: int, last: int, only: str | None = None) -> None:
    """Run some draws, add them to the table of runs, and write the summary of all there are."""
    runs = RUNS / "groups_planted_runs.csv"
    rows = pd.read_csv(runs).to_dict("records") if runs.exists() else []
    rows = [row for row in rows if row["program"] in ORDER]
    warnings.simplefilter("ignore")
    programs = [PROGRAMS[only]] if only else list(PROGRAMS.values())
    if ours in programs:
        ours(planted(1000), 0)  # compiles
    for seed in range(first, last):
        for program in programs:
            lines = [{"draw": seed} | line for line in program(planted(seed), seed)]
            known = {line["program"] for line in lines}
            rows = [row for row in rows if row["draw"] != seed or row["program"] not in known] + lines
            show(lines)
        pd.DataFrame(rows).to_csv(runs, index=False, float_format="%.6g")
    _summary(pd.DataFrame(rows))


PROGRAMS = {"kernelweave": ours, "scmkl": scmkl}


ORDER = ["kernelweave", "scMKL", "kernelweave, sets with weight", "kernelweave, linear, sets with weight"]


def _summary(table: pd.DataFrame) -> None:
    columns = ["recall", "precision", "sets", "AUROC", "seconds"]
    rows: list[dict[str, Any]] = []
    for name, part in sorted(table.groupby("program"), key=lambda pair: ORDER.index(pair[0])):
        rows.append({"program": name} | part[columns].mean().to_dict())
        rows.append({"program": "+-"} | part[columns].std().to_dict())
    note = NOTE.format(
        draws=table["draw"].nunique(), cells=CELLS, genes=GENES, sets=SETS, true=TRUE, train=TRAIN, grid=GRID,
        folds=FOLDS, level=LEVEL, components=COMPONENTS, machine=machine(),
    )  # fmt: skip
    write_table("groups_planted", rows, "python benchmarks/groups.py --planted 0 20", note)
