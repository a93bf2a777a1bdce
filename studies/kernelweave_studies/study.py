"""How a paper is reproduced: parts (a table, a figure) made of independent runs, each kept as soon as it is done.

A run is named by its key (data set, seed, ...) and yields rows.  Rows go to ``<study>_<part>_runs.csv`` at once, so an
interrupted study goes on where it stopped, and a quick one is the beginning of the whole one.  What a part reports is
computed from the rows alone.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kernelweave._estimating import several_fits

from .tables import Targets, write_table

Key = Mapping[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Report:
    """Where a part writes, and what it says about itself."""

    folder: Path
    study: str
    part: str
    command: str
    missing: Sequence[str] = ()
    #: whether all runs of the part are in the rows; if not, no target is decided
    complete: bool = True

    def targets(self) -> Targets:
        """Return targets to be decided by the rows, where these are all that there should be."""
        return Targets(self.complete)

    def table(self, rows: Sequence[Row], note: str, title: str = "", suffix: str = "") -> None:
        """Write a table as CSV and Markdown."""
        write_table(
            self.folder, f"{self.study}_{self.part}{suffix}", rows, self.command, self._honest(note), title
        )

    def _honest(self, note: str) -> str:
        return "\n\n".join([note, *[f"**Not run**: {text}." for text in self.missing]])

    def picture(self, figure: Any) -> Path:
        """Save a figure beside the table."""
        path = self.folder / f"{self.study}_{self.part}.png"
        self.folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
        return path


@dataclass(frozen=True)
class Part:
    """One table or figure.

    Attributes
    ----------
    name, title : str
    settings : mapping
        Everything that decides what a run gives; rows made under other settings are not mixed with these.
    keys : callable
        ``keys(repeats)``: the runs, as mappings of the same names.
    work : callable
        ``work(key)``: the rows of one run, without its key.
    report : callable
        ``report(rows, report)``: write tables and pictures, return lines for the screen.
    repeats, quick_repeats : int
        How often, by default and with ``--quick``; 0 where a single run takes longer than that is for.
    missing : callable
        Sentences about what cannot be run here, and why.
    quick_first : mapping
        What the keys of the cheapest runs say: ``--quick``, which has a minute for everything, begins with those.
    quick_at_least : int
        Runs that ``--quick`` always makes, because there is no table without them.
    """

    name: str
    title: str
    settings: Mapping[str, Any]
    keys: Callable[[int], Sequence[Key]]
    work: Callable[[Key], Sequence[Row]]
    report: Callable[[pd.DataFrame, Report], Sequence[str]]
    repeats: int = 20
    quick_repeats: int = 2
    missing: Callable[[], Sequence[str]] = field(default=tuple)
    quick_first: Mapping[str, Any] = field(default_factory=dict)
    quick_at_least: int = 1

    @classmethod
    def of(cls, module: Any, name: str, title: str, **options: Any) -> Part:
        """Return the part of a module that has ``SETTINGS``, ``keys``, ``work``, ``report`` and perhaps ``missing``."""
        options = {"keys": module.keys, "missing": getattr(module, "missing", tuple)} | options
        return cls(name, title, module.SETTINGS, work=module.work, report=module.report, **options)

    @property
    def stamp(self) -> str:
        """Short name of the settings."""
        text = json.dumps(self.settings, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def run(
        self,
        study: str,
        folder: Path,
        command: str,
        *,
        repeats: int | None = None,
        quick: bool = False,
        n_jobs: int = 1,
        restart: bool = False,
        say: Callable[[str], None] = print,
        seconds: float | None = None,
    ) -> Sequence[str]:
        """Run what is not done yet, then report; returns the report's lines.

        After so many ``seconds`` no further run is begun beyond ``quick_at_least``; what is left out is said.
        """
        from joblib import Parallel, delayed
        from tqdm.auto import tqdm

        missing = list(self.missing())
        for text in missing:
            say(f"{self.name}: not run: {text}")
        keys = list(self.keys(repeats or (self.quick_repeats if quick else self.repeats)))
        if quick:
            keys.sort(key=lambda key: any(key.get(name) != value for name, value in self.quick_first.items()))
        if not keys:
            too_long = quick and self.quick_repeats == 0
            say(f"{self.name}: {'not run: too long for --quick' if too_long else 'nothing to run'}")
            return []
        kept = _Kept(folder / f"{study}_{self.name}_runs.csv", self, restart)
        left = [key for key in keys if key not in kept]
        if len(left) < len(keys):
            say(f"{self.name}: {len(keys) - len(left)} of {len(keys)} runs are done already")
        bar = tqdm(total=len(keys), initial=len(keys) - len(left), desc=self.name, unit="run")
        begun: list[Key] = []
        needed = self.quick_at_least - (len(keys) - len(left))
        try:
            running = Parallel(n_jobs=n_jobs, return_as="generator", batch_size=1, pre_dispatch="n_jobs")(
                delayed(several_fits(self.work))(key) for key in _in_time(left, seconds, begun, needed)
            )
            for key, rows in zip(left, running, strict=False):
                kept.add(key, rows)
                bar.update()
        finally:
            bar.close()
        if len(begun) < len(left):
            missing.append(f"{len(left) - len(begun)} of {len(keys)} runs, for which --quick has no time")
            say(f"{self.name}: not run: {missing[-1]}")
            keys = [key for key in keys if key in kept]
        made = {_key_text(key) for key in keys}
        complete = made >= {_key_text(key) for key in self.keys(self.repeats)}
        try:
            return self.report(
                kept.of(keys), Report(folder, study, self.name, command, missing, complete=complete)
            )
        except (LookupError, ValueError, ZeroDivisionError):
            if complete:
                raise
            say(f"{self.name}: no table yet: it needs more runs than were made; these are in {kept.path}")
            return []


def _in_time(keys: Sequence[Key], seconds: float | None, begun: list[Key], needed: int) -> Iterator[Key]:
    """Yield keys until the time is up, but ``needed`` ones at least; note what was begun."""
    start = time.perf_counter()
    for key in keys:
        if seconds is not None and len(begun) >= needed and time.perf_counter() - start >= seconds:
            return
        begun.append(key)
        yield key


@dataclass(frozen=True)
class Study:
    """The parts of one paper."""

    name: str
    paper: str
    parts: Sequence[Part]


def _text(value: Any) -> str:
    """A value of a key as text, the same before it went to a file and after."""
    return f"{value:.8g}" if isinstance(value, int | float | np.number) else str(value)


def _key_text(key: Key) -> tuple[tuple[str, str], ...]:
    """A key as something that can be compared."""
    return tuple(sorted((name, _text(value)) for name, value in key.items()))


class _Kept:
    """The rows that are done, in a CSV file that only ever grows by whole runs."""

    def __init__(self, path: Path, part: Part, restart: bool) -> None:
        self.path, self.part = path, part
        self.rows = pd.DataFrame()
        if path.exists() and not restart:
            kept = pd.read_csv(path)
            self.rows = kept[kept["settings"] == part.stamp].reset_index(drop=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        if len(self.rows):
            self._write()
        elif path.exists():
            path.unlink()

    def __contains__(self, key: Key) -> bool:
        if not len(self.rows):
            return False
        same = pd.Series(True, index=self.rows.index)
        for name, value in key.items():
            same &= self.rows[name].map(_text) == _text(value)
        return bool(same.any())

    def add(self, key: Key, rows: Sequence[Row]) -> None:
        """Keep the rows of a run."""
        new = pd.DataFrame([{**key, **row, "settings": self.part.stamp} for row in rows])
        self.rows = pd.concat([self.rows, new], ignore_index=True) if len(self.rows) else new
        self._write()

    def _write(self) -> None:
        # never a half-written file: a new one takes the place of the old one
        beside = self.path.with_suffix(".tmp")
        self.rows.to_csv(beside, index=False, float_format="%.8g")
        beside.replace(self.path)

    def of(self, keys: Sequence[Key]) -> pd.DataFrame:
        """Rows of these runs, as read back from the file."""
        rows = pd.read_csv(self.path)
        wanted = pd.DataFrame([{name: _text(value) for name, value in key.items()} for key in keys])
        names = list(wanted.columns)
        text = rows[names].map(_text)
        chosen = (
            text.merge(wanted.drop_duplicates(), on=names, how="left", indicator=True)["_merge"] == "both"
        )
        return rows[chosen.to_numpy()].reset_index(drop=True)


@cache
def _reason(load: Callable[[str], Any], name: str) -> str:
    """Return why a set cannot be loaded, or nothing."""
    try:
        load(name)
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def at_hand(load: Callable[[str], Any], names: Sequence[str]) -> list[str]:
    """Return the sets that load."""
    return [name for name in names if not _reason(load, name)]


def not_at_hand(load: Callable[[str], Any], names: Sequence[str]) -> list[str]:
    """Return a sentence about each of the others."""
    return [reason.rstrip(".") for name in names if (reason := _reason(load, name))]
