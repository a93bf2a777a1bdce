"""Parts of studies made for tests, and the reports that parts write into."""

from __future__ import annotations

from dataclasses import replace

from kernelweave.experiments import load_study


def part_of(keys, work, report, **options):
    """Return a part with these runs, this work and this report, and nothing of the study it is taken from."""
    plain = {
        "name": "one", "title": "A part", "settings": {}, "repeats": 4, "quick_repeats": 2, "missing": tuple,
        "quick_first": {}, "quick_at_least": 1,
    }  # fmt: skip
    made = {**plain, "keys": keys, "work": work, "report": report, **options}
    return replace(load_study("smkl").parts[0], **made)


def report_of(folder, study, part, command="command"):
    """Return what a part of this name is given to write its tables into, when all its runs are done."""
    given = []
    empty = part_of(
        lambda repeats: [{"run": 0}],
        lambda key: [{"value": 0.0}],
        lambda rows, report: given.append(report) or [],
        name=part,
    )
    empty.run(study, folder, command, say=lambda text: None)
    (folder / f"{study}_{part}_runs.csv").unlink()
    return given[0]
