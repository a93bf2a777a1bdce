"""The page: refits, then section by section."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np
from sklearn.base import is_outlier_detector
from sklearn.utils.validation import check_is_fitted

from .._estimating import several_fits
from ..exceptions import DegenerateModelWarning, GridEndWarning
from ..inspection import final_estimator
from ..inspection.views import as_targets, paired
from ..views import Pairs, Views
from ._html import contents, document
from ._refits import Subject
from ._refits import refit as refit_on_folds
from .pairs import setting_of
from .sections import PAIR_SECTIONS, SECTIONS
from .survival import targets_for


@several_fits
def make_report(
    model: Any,
    X: Any,
    y: Any,
    *,
    title: str | None = None,
    refit: tuple[Any, Any] | None = None,
    n_folds: int = 5,
    n_repeats: int = 2,
    groups: Any = None,
    strata: Any = None,
    random_state: int = 0,
    row_names: Sequence[str] | None = None,
    note: dict[str, Any] | None = None,
    setting: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """Return a self-contained HTML page about a fitted model.

    The model is refitted on repeated folds, beside simpler methods on the same kernels and others on the columns: that
    gives its accuracy with an interval, the stability of its weights, p-values of its views, and labels that held-out
    predictions contradict.

    Parameters
    ----------
    model : fitted estimator or pipeline
    X, y : samples and targets of the fit
    title : str, optional
    refit : pair (model, samples), optional
        The same model on samples that can be cut into folds, where X cannot: ``kernels.held(stack)`` with sample
        indices for precomputed matrices.
    n_folds, n_repeats : int
    groups : array of shape (n,), optional
        Samples of the same group (rows of one patient) are held out together.
    strata : array of shape (n,), optional
        Of a model of survival that was fitted with them.
    random_state : int
    row_names : sequence of str, optional
        What the samples are called; by default their positions.
    note : dict, optional
        Settings to print, the command line's for example.
    setting : {"pairs", "left", "right", "both"}, optional
        Of ``Pairs``: what is new in the pairs that are held out; by default as in the folds that chose C.
    progress : callable of the refits done and to do, optional

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import MKLClassifier, kernels as kw
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MKLClassifier(kw.per_view({"sepal": [0, 1], "petal": [2, 3]}, kw.linear())).fit(X, y)
    >>> page = make_report(clf, X, y, n_folds=2, n_repeats=1)
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    estimator = final_estimator(model)
    check_is_fitted(estimator, "weights_")
    if not hasattr(estimator, "certificate_"):
        raise TypeError(
            f"a report shows what is proved of a fit, and a {type(estimator).__name__} has no certificate: "
            "weight_stability and view_p_values of kernelweave.inspection take it"
        )
    if is_outlier_detector(estimator):
        raise TypeError(
            "a report compares predictions with targets, and novelty has none: kernelweave.displays shows weights and "
            "convergence"
        )
    X, y = paired(model, X, y) if refit is None else (X, as_targets(model, y))
    called = X.index if row_names is None and isinstance(X, Views) else row_names
    names = [str(name) for name in (range(len(y)) if called is None else called)]
    if len(names) != len(y):
        raise ValueError(f"{len(names)} row names were given for {len(y)} samples")
    if y.ndim != 1:
        raise ValueError(f"a report is about one target, y has shape {y.shape}: make one for each column")
    groups = None if groups is None else np.asarray(groups)
    if groups is not None and len(groups) != len(y):
        raise ValueError(f"{len(groups)} groups were given for {len(y)} samples")
    targets = targets_for(model, y, strata)
    template, samples = (model, X) if refit is None else refit
    setting = setting_of(estimator, setting) if isinstance(X, Pairs) else None
    with warnings.catch_warnings():
        # what the fit is warned of stands first on the page; that of every refit would be said again and again
        warnings.simplefilter("ignore", DegenerateModelWarning)
        warnings.simplefilter("ignore", GridEndWarning)
        refits = refit_on_folds(
            model, template, samples, targets,
            n_folds=n_folds, n_repeats=n_repeats, random_state=random_state, groups=groups, setting=setting,
            progress=progress,
        )  # fmt: skip
    # refits on some of the kernels know no strata
    some = estimator.fits_subsets and strata is None
    subject = Subject(model, estimator, X, y, names, refits, note or {}, random_state, groups, some, setting)
    title = title or f"{type(estimator).__name__}: {len(estimator.kernel_names_)} kernels, {len(y)} samples"
    header = f'<h1>{escape(title)}</h1><p class="quiet">Report of a multiple kernel learning fit</p>'
    sections = SECTIONS if setting is None else PAIR_SECTIONS
    doubts, *rest = (section(subject) for section in sections)
    body = "\n".join(rest)
    return document(title, doubts + contents(body) + body, header)
