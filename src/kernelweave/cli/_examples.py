"""The tables of ``kernelweave example``: one study for each job, generated, and the commands to try on it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._output import write_whole
from ._terminal import check_outputs
from ._views import EXAMPLE

#: a content by file name: a table (CSV), an array (NumPy file), or a text
Files = dict[str, Any]


@dataclass(frozen=True)
class Example:
    """A study: what it is about, its files, and commands in which ``@`` stands before a file of it."""

    about: str
    files: Callable[[np.random.Generator], Files]
    commands: tuple[str, ...] = ()

    def commands_in(self, folder: Path) -> list[str]:
        """Return the commands as they are typed where the files are in this folder."""

        def path(found: re.Match[str]) -> str:
            return shlex.quote((folder / found[1]).as_posix())

        return [re.sub(r"@([\w.]+)", path, command) for command in self.commands]


def write(example: Example, folder: Path, force: bool) -> list[Path]:
    """Write the files of an example, each whole; none where one is there already, unless ``force``."""
    files = {folder / name: content for name, content in example.files(np.random.default_rng(0)).items()}
    for path in files:
        check_outputs({"--output": path}, force=force)
    for path, content in files.items():
        if isinstance(content, pd.DataFrame):
            content = content.to_csv(index=False, float_format="%.3f")
        elif isinstance(content, np.ndarray):
            np.save(buffer := BytesIO(), content)
            content = buffer.getvalue()
        write_whole(path, content)
    return list(files)


def _following(rng: np.random.Generator, hidden: Any, columns: int, name: str) -> pd.DataFrame:
    """Make columns of which the first five follow each hidden quantity in turn, and the others nothing."""
    values = rng.normal(size=(len(hidden), columns))
    for k, quantity in enumerate(hidden.T):
        values[:, 5 * k : 5 * k + 5] = 0.6 * values[:, 5 * k : 5 * k + 5] + quantity[:, None]
    return pd.DataFrame(values, columns=[f"{name}_{j + 1:02d}" for j in range(columns)])


def _patients(rng: np.random.Generator, n: int) -> tuple[pd.DataFrame, Any]:
    """Make patients with genes, proteins and a few clinical columns; how ill each of them is."""
    hidden = rng.normal(size=(n, 3))
    worse = 0.5 * hidden[:, 2] + rng.normal(size=n)
    clinic = pd.DataFrame({
        "patient": [f"P{k + 1:03d}" for k in range(n)],
        "age": pd.array(rng.normal(62, 9, n).clip(35, 88).round(), dtype="Int64"),
        "stage": np.select([worse < -0.6, worse < 0.6], ["I", "II"], "III"),
    })  # fmt: skip
    genes = _following(rng, hidden[:, :2], 30, "gene")
    proteins = _following(rng, hidden[:, 2:], 12, "protein")
    illness = hidden @ [1.2, 0.8, 1.0] + 0.8 * rng.normal(size=n)
    return pd.concat([clinic, genes, proteins], axis=1), illness


def _omics(rng: np.random.Generator) -> Files:
    data, illness = _patients(rng, 200)
    data.insert(1, "diagnosis", np.where(illness > 0, "ill", "well"))
    genes, proteins = (data.columns[data.columns.str.startswith(name)] for name in ("gene", "protein"))
    for columns, lost in ((genes, (7, 31, 66)), (proteins, (3, 18, 40, 52, 97, 121, 163, 188))):
        data.loc[list(lost), columns] = np.nan
    data.loc[[12, 77], "age"] = pd.NA
    files: Files = {}
    for before, rows in (("", data[:160]), ("new_", data[160:].drop(columns="diagnosis"))):
        whole = "data.csv" if not before else "new.csv"
        clinic = [column for column in rows if column not in genes and column not in proteins]
        files |= {
            whole: rows,
            f"{before}patients.csv": rows[clinic],
            f"{before}genes.csv": rows[["patient", *genes]].dropna(),
            f"{before}proteins.csv": rows[["patient", *proteins]].dropna(),
        }
    return files | {"views.toml": EXAMPLE}


def _gene_sets(rng: np.random.Generator) -> Files:
    hidden = rng.normal(size=(240, 2))
    cells = _following(rng, hidden, 60, "gene")
    angle = np.arctan2(*hidden.T) + 0.1 * rng.normal(size=len(cells))
    thirds = angle * 3 / (2 * np.pi)
    cells.insert(
        0, "state", np.select([np.abs(thirds) < 0.5, thirds > 0], ["resting", "dividing"], "stressed")
    )
    sets: dict[str, Any] = {"DIVISION": [*range(5), 10, 11], "STRESS": [*range(5, 10), 11, 12]}
    sets |= {f"PATHWAY_{k}": rng.choice(np.arange(10, 60), 8, replace=False) for k in "ABCDEF"}
    lines = [
        "\t".join([name, "generated", *(f"gene_{j + 1:02d}" for j in sorted(js))])
        for name, js in sets.items()
    ]
    return {
        "cells.csv": cells[:200],
        "new_cells.csv": cells[200:].drop(columns="state"),
        "sets.gmt": "\n".join(lines) + "\n",
    }


def _noisy(rng: np.random.Generator) -> Files:
    data = _following(rng, rng.normal(size=(200, 1)), 12, "marker")
    data.insert(0, "sample", [f"S{k + 1:03d}" for k in range(len(data))])
    right = np.where(data.iloc[:, 1:6].mean(axis=1) > 0, "present", "absent")
    wrong = rng.random(len(data)) < 0.15
    given = np.where(wrong, np.where(right == "present", "absent", "present"), right)
    data.insert(1, "label", given)
    truth = pd.DataFrame({"sample": data["sample"], "label": right, "was_wrong": wrong})
    return {"data.csv": data[:150], "new.csv": data[150:].drop(columns="label"), "truth.csv": truth}


def _similarities(rng: np.random.Generator) -> Files:
    family = np.arange(120) % 3
    names = pd.DataFrame(
        {
            "protein": [f"Q{k + 1:03d}" for k in range(120)],
            "family": np.array(["kinase", "globin", "zinc"])[family],
        }
    )
    files: Files = {"labels.csv": names[:90], "new.csv": names[90:].drop(columns="family")}
    for number, strength in enumerate((1.0, 0.3), start=1):
        points = np.eye(3)[family] * strength + rng.normal(size=(120, 3)) / np.sqrt(3)
        kernel = np.exp(-((points[:, None] - points[None]) ** 2).sum(axis=-1) / 2)
        files |= {f"kernel{number}.npy": kernel[:90, :90], f"new{number}.npy": kernel[90:, :90]}
    # scores of pairwise alignments: symmetric, but of no feature space
    noise = rng.normal(0, 25, (120, 120))
    scores = np.round(60 * (family[:, None] == family) + 80 * np.eye(120) + (noise + noise.T) / 2)
    return files | {"scores.npy": scores[:90, :90], "new_scores.npy": scores[90:, :90]}


def _texts(rng: np.random.Generator) -> Files:
    active = rng.random(150) < 0.5
    letters, pieces = list("ACDEFGHIKLMNPQRSTVWY"), ["CC", "CO", "CN", "c1ccccc1", "C(=O)O", "C(=O)N"]
    sequences, smiles = [], []
    for binds in active:
        chain = rng.choice(letters, 40)
        if binds == (rng.random() < 0.9):  # a motif that nine of ten of them have
            at = int(rng.integers(0, 35))
            chain[at : at + 5] = list("GKSTH")
        sequences.append("".join(chain))
        weights = np.array([2, 1, 1, 1, 2 if binds else 0.5, 1.0])
        smiles.append("".join(rng.choice(pieces, 6, p=weights / weights.sum())))
    data = pd.DataFrame(
        {"pair": [f"X{k + 1:03d}" for k in range(150)], "sequence": sequences, "smiles": smiles}
    )
    data.insert(1, "label", np.where(active, "binds", "does not"))
    return {"data.csv": data[:120], "new.csv": data[120:].drop(columns="label")}


def _survival(rng: np.random.Generator) -> Files:
    data, illness = _patients(rng, 240)
    months, watched = 40 * rng.weibull(1.3, 240) * np.exp(-0.7 * illness), rng.uniform(6, 90, 240)
    data.insert(1, "os_months", np.minimum(months, watched).round(1).clip(0.1))
    data.insert(2, "os_status", np.where(months <= watched, "deceased", "living"))
    return {"data.csv": data[:200], "new.csv": data[200:].drop(columns=["os_months", "os_status"])}


def _pairs(rng: np.random.Generator) -> Files:
    hidden = [rng.normal(size=(24, 2)), rng.normal(size=(20, 2))]
    drugs, cells = _following(rng, hidden[0], 14, "descriptor"), _following(rng, hidden[1], 30, "gene")
    drugs.insert(0, "drug", [f"D{k + 1:02d}" for k in range(24)])
    cells.insert(0, "cell", [f"C{k + 1:02d}" for k in range(20)])
    response = 6.0 + hidden[0] @ hidden[1].T + 0.5 * hidden[0][:, :1] + 0.3 * rng.normal(size=(24, 20))
    left, right = np.divmod(rng.permutation(24 * 20)[:340], 20)
    pairs = pd.DataFrame(
        {
            "drug": drugs["drug"].to_numpy()[left],
            "cell": cells["cell"].to_numpy()[right],
            "response": response[left, right],
        }
    )
    return {
        "drugs.csv": drugs,
        "cells.csv": cells,
        "pairs.csv": pairs[:300],
        "new_pairs.csv": pairs[300:].drop(columns="response"),
    }


def _tables(rng: np.random.Generator) -> Files:
    data, illness = _patients(rng, 120)
    data = data.drop(columns="patient").iloc[:, :12]
    data.insert(0, "label", np.where(illness > 0, "ill", "well"))
    visits = data.rename(columns={"label": "sick"})
    visits.insert(0, "patient", [f"P{k // 3 + 1:03d}" for k in range(120)])
    registry = data.assign(age=[f"{age:.0f}" if k % 9 else "?" for k, age in enumerate(data["age"])])
    registry["label"] = registry["label"].replace("ill", "gestört")
    return {
        "visits.csv": visits,
        "registry.csv": registry.to_csv(index=False, sep=";", decimal=",", float_format="%.3f").encode(
            "latin-1"
        ),
        "instrument.csv": f"# exported\n{data.to_csv(index=False, sep=' ', float_format='%.3f')}# the end\n",
    }


EXAMPLES = {
    "omics": Example(
        "patients with genes, proteins and clinic in one table and in three; some of them lack a view", _omics,
        (
            "kernelweave fit @data.csv --target diagnosis --id patient --view genes='gene_*' "
            "--view proteins='protein_*' --view clinic=age,stage --missing predict --model model.skops "
            "--report report.html",
            "kernelweave inspect model.skops",
            "kernelweave predict model.skops @new.csv -o predictions.csv",
        ),
    ),
    "gene_sets": Example(
        "cells in three states, and sets of genes of which two matter", _gene_sets,
        (
            "kernelweave fit @cells.csv --target state --gmt @sets.gmt --min-size 5 --model cells.skops",
            "kernelweave predict cells.skops @new_cells.csv -o states.csv",
        ),
    ),
    "noisy": Example(
        "samples of which 15 % have a wrong label, and the right ones beside them", _noisy,
        (
            "kernelweave fit @data.csv --target label --id sample --noise-rate estimate --model noisy.skops",
            "kernelweave predict noisy.skops @new.csv -o labels.csv",
        ),
    ),
    "similarities": Example(
        "proteins that are compared with each other: two kernel matrices, and alignment scores that are none",
        _similarities,
        (
            "kernelweave fit @labels.csv --target family --id protein --gram @kernel1.npy @kernel2.npy "
            "--model families.skops",
            "kernelweave predict families.skops @new.csv --gram @new1.npy @new2.npy -o families.csv",
        ),
    ),
    "texts": Example(
        "proteins and molecules as texts: sequences and SMILES", _texts,
        (
            "kernelweave fit @data.csv --target label --id pair --objects sequence=spectrum:3,4,alphabet=protein "
            "--objects smiles=spectrum:2,3,alphabet=smiles --model texts.skops",
            "kernelweave predict texts.skops @new.csv -o bound.csv",
        ),
    ),
    "tables": Example(
        "text tables as other programs write them, and patients with several rows each", _tables,
        (
            "kernelweave fit @visits.csv --target sick --fold-groups patient",
            "kernelweave fit @registry.csv --target label --na '?'",
            "kernelweave fit @instrument.csv --target label --separator space --comment '#'",
        ),
    ),
    "survival": Example(
        "patients whose death was seen or not yet (os_months, os_status), genes, clinic", _survival,
        (
            "kernelweave fit @data.csv --time os_months --event os_status --id patient --view genes='gene_*' "
            "--view proteins='protein_*' --always age,stage --model survival.skops --report survival.html",
            "kernelweave inspect survival.skops",
            "kernelweave predict survival.skops @new.csv --at 12,36,60 -o risks.csv",
        ),
    ),
    "pairs": Example(
        "responses of cells to drugs, measured for some pairs, and what is known of both", _pairs,
        (
            "kernelweave fit --left @drugs.csv --right @cells.csv --pairs @pairs.csv --target response --setting left "
            "--model pairs.skops",
            "kernelweave predict pairs.skops @new_pairs.csv -o responses.csv",
        ),
    ),
}  # fmt: skip
