"""The refits that a report is made of, before any of them is on a page."""

from __future__ import annotations

from kernelweave.inspection import final_estimator
from kernelweave.report import _refits
from kernelweave.report.survival import targets_for


def refit(model, X, y, **options):
    """Return what a report of a fitted model finds by refits on folds; three folds once, unless told otherwise."""
    settings = {"n_folds": 3, "n_repeats": 1, "random_state": 0} | options
    return _refits.refit(model, model, X, targets_for(model, y), **settings)


def subject_of(model, X, y, **options):
    """Return what every section of a report is given."""
    found = refit(model, X, y, **options)
    return _refits.Subject(model, final_estimator(model), X, y, [str(i) for i in range(len(y))], found, {}, 0)
