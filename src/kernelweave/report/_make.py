"""The page, section by section."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Sequence
from html import escape
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..inspection import final_estimator
from ..inspection.views import paired
from ..views import Views
from . import _pictures
from ._gather import Findings, gather
from ._html import document, figure, number, percent, table
from ._subsets import missing_section, subsets_section

__all__ = ["make_report"]

#: rows of the table of kernels; the others have the smallest weights
MOST_ROWS = 300
WEIGHT_COLUMNS = ("weight", "95 % of refits", "selected")


def make_report(
    model: Any,
    X: Any,
    y: Any,
    *,
    title: str | None = None,
    refit: tuple[Any, Any] | None = None,
    n_folds: int = 5,
    n_repeats: int = 2,
    random_state: int = 0,
    row_names: Sequence[str] | None = None,
    note: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """Return a self-contained HTML page about a fitted model.

    The model is refitted on repeated folds, beside simpler methods on the same kernels: that gives its accuracy with an
    interval, the stability of its weights, p-values of its views, and labels that held-out predictions contradict.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted on X and y.
    X, y : samples and targets
        Those of the fit.
    title : str, optional
    refit : pair (model, samples), optional
        The same model on samples that can be cut into folds, where X cannot: ``kernels.held(stack)`` with sample
        indices for precomputed matrices.
    n_folds, n_repeats : int
    random_state : int, default=0
    row_names : sequence of str, optional
        What the samples are called; by default their positions.
    note : dict, optional
        Settings to print, the command line's for example.
    progress : callable, optional
        Called with the number of refits done and to do.

    Returns
    -------
    str

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
    X, y = paired(model, X, y) if refit is None else (X, np.asarray(y))
    if row_names is None and isinstance(X, Views):
        row_names = X.index
    names = [str(i) for i in range(len(y))] if row_names is None else [str(name) for name in row_names]
    if len(names) != len(y):
        raise ValueError(f"{len(names)} row names were given for {len(y)} samples")
    template, samples = (model, X) if refit is None else refit
    findings = gather(
        model, template, samples, y,
        n_folds=n_folds, n_repeats=n_repeats, random_state=random_state, row_names=names, progress=progress,
    )  # fmt: skip
    title = title or f"{type(estimator).__name__}: {len(estimator.kernel_names_)} kernels, {len(y)} samples"
    sections = [
        _summary(estimator, y, findings),
        _views(findings),
        subsets_section(model, X, y, findings, random_state),
        _accuracy(findings),
        missing_section(model, X, findings),
        _convergence(estimator),
        _suspects(estimator, findings, names),
        _settings(model, estimator, y, findings, note or {}, random_state),
    ]
    header = f'<h1>{escape(title)}</h1><p class="quiet">Report of a multiple kernel learning fit</p>'
    return document(title, "\n".join(sections), header)


def _summary(estimator: Any, y: Any, findings: Findings) -> str:
    ours, mean = findings.compared[0], findings.compared[1]
    certificate = estimator.certificate_
    views = findings.stability.by_view().sort_values("weight", ascending=False)
    used = int(np.count_nonzero(findings.stability.reference))
    m = len(findings.stability.kernel_names)
    gap = 100 * max(certificate.relative_gap, 0.0)
    cards = [
        (_score(ours.mean, findings), f"{findings.measure} on held-out folds, {_interval(ours, findings)}"),
        (_score(mean.mean, findings), f"the mean kernel's, {_interval(mean, findings)}"),
        (f"{used} of {m}", "kernels have weight"),
        (f"{gap:.2g} %", "at most from the optimum, proved"),
    ]
    listed = "".join(f"<li><b>{escape(b)}</b>{escape(text)}</li>" for b, text in cards)
    if len(views) > 1:
        top = views.iloc[0]
        first = (
            f"The view with the most weight is “{top['view']}”, with {percent(top['weight'], 0)} of it "
            f"({percent(top['low'], 0)} to {percent(top['high'], 0)} in 95 % of the refits)."
        )
    else:
        first = f"All {m} kernels look at the same features."
    paragraphs = [first, _verdict(findings)]
    if estimator.status_ != "converged":
        paragraphs.append(
            f"The fit stopped early ({estimator.status_}): the certificate below is valid, but wider than asked for."
        )
    text = "".join(f"<p>{escape(p)}</p>" for p in paragraphs)
    return f'<h2 id="learnt">What was learnt</h2><ul class="cards">{listed}</ul>{text}'


def _score(value: float, findings: Findings) -> str:
    return percent(value) if findings.measure == "accuracy" else number(value)


def _interval(method: Any, findings: Findings) -> str:
    return f"{_score(method.low, findings)} to {_score(method.high, findings)}"


def _verdict(findings: Findings) -> str:
    """One sentence on whether learning the weights paid."""
    ours, rest = findings.compared[0], findings.compared[1:]
    best = max(rest, key=lambda method: method.mean)
    if best.p_value < 0.05:
        which = "better than" if ours.mean > best.mean else "worse than"
        return f"On held-out folds the model is {which} the {best.name} (p = {number(best.p_value)})."
    return (
        f"On held-out folds the model cannot be told from the {best.name} (p = {number(best.p_value)}): what it adds "
        "is the knowledge of which kernels were needed."
    )


def _views(findings: Findings) -> str:
    stability = findings.stability
    refits = len(stability.weights)
    parts = ['<h2 id="views">Which views and kernels matter</h2>']
    parts.append(
        f"<p>Weights as shares of their sum. The interval holds 95 % of {refits} refits on folds, and "
        "“selected” says in how many of them a view or a kernel had any weight. Where kernels resemble each "
        "other a sparse fit picks one of them almost by chance: trust views more than single kernels, and quote a "
        "weight with its interval.</p>"
    )
    parts.append(
        figure(_pictures.weights(stability), f"Mean weights over {refits} refits, with their intervals.")
    )
    return "".join([*parts, _view_table(findings), _kernel_table(findings)])


def _view_table(findings: Findings) -> str:
    views = findings.stability.by_view().sort_values("weight", ascending=False)
    if len(views) <= 1:
        return ""
    head, rows = ["view", "kernels", *WEIGHT_COLUMNS], []
    for row in views.itertuples():
        rows.append([str(row.view), int(row.kernels), *_weight_cells(row)])
    if findings.views is None:
        return "<h3>Views</h3>" + table(head, rows, "Views, the heaviest first")
    for cells in rows:
        cells.append(_p(findings.views.loc[cells[0], "p_holm"]))
    return (
        "<h3>Views</h3>"
        + table([*head, "p-value"], rows, "Views, the heaviest first")
        + '<p class="quiet">The p-value asks whether held-out decisions get worse when a view’s rows are '
        "shuffled (999 times, adjusted by Holm for the number of views). It is about this model’s use of the "
        "view: another view may hold the same information.</p>"
    )


def _kernel_table(findings: Findings) -> str:
    kernels = findings.stability.kernels().sort_values(["weight", "mean"], ascending=False)
    shown = kernels[(kernels["weight"] > 0) | (kernels["selected"] > 0)].head(MOST_ROWS)
    rows = [[str(r.kernel), str(r.view), str(r.family), *_weight_cells(r)] for r in shown.itertuples()]
    head = ["kernel", "view", "family", *WEIGHT_COLUMNS]
    page = "<h3>Kernels</h3>" + table(head, rows, "Kernels, the heaviest first; a click on a heading sorts")
    hidden = len(kernels) - len(shown)
    if hidden:
        why = "they had no weight in any fit" if len(shown) < MOST_ROWS else "their weights are the smallest"
        page += f'<p class="quiet">{hidden} further kernels are not listed: {why}.</p>'
    return page


def _weight_cells(row: Any) -> list[Any]:
    """Cells of ``WEIGHT_COLUMNS``."""
    return [float(row.weight), (float(row.mean), _range(row)), _share(row.selected)]


def _range(row: Any) -> str:
    return f"{number(row.low)} – {number(row.high)}"


def _share(value: float) -> tuple[float, str]:
    return float(value), percent(float(value), 0)


def _p(value: float) -> tuple[float, str]:
    return float(value), number(float(value))


def _accuracy(findings: Findings) -> str:
    rows = []
    for method in findings.compared:
        rows.append(
            [
                method.name,
                method.about,
                (method.mean, _score(method.mean, findings)),
                (method.low, _interval(method, findings)),
                _p(method.p_value),
            ]
        )
    head = ["method", "what it is", findings.measure, "95 % interval", "p against this model"]
    return (
        f'<h2 id="accuracy">How good it is</h2><p>{escape(findings.measure.capitalize())} on {findings.folds} folds, '
        f"repeated {findings.repeats} times with other folds; all methods on the same folds and kernels. Intervals "
        "and p-values allow for the overlap of the training sets (Nadeau and Bengio 2003).</p>"
        + figure(
            _pictures.accuracy(findings.compared, findings.measure), "Dots are means, ticks single folds."
        )
        + table(head, rows, "Methods on the same kernels and folds")
    )


def _convergence(estimator: Any) -> str:
    certificate = estimator.certificate_
    gap = 100 * max(certificate.relative_gap, 0.0)
    sentence = (
        f"The objective of this fit is {certificate.primal:.6g}, and no weights and no function on these kernels can "
        f"bring it below {certificate.dual:.6g}: the fit is within {gap:.2g} % of the best possible one. That is a "
        "proof about the optimisation, which anyone can recompute from the coefficients; how good the model is on new "
        "data is the question of the section before."
    )
    if hasattr(estimator, "sample_share_"):
        sentence += (
            " The method chooses samples as it goes: the proof is for the last choice, not for all of them."
        )
    facts = (
        f"The solver {estimator.solver_} took {estimator.n_iter_} iterations and {estimator.n_passes_:.1f} passes over "
        f"the kernels ({estimator.status_.replace('_', ' ')})."
    )
    return (
        f'<h2 id="convergence">How close to optimal</h2><p class="note">{escape(sentence)}</p><p>{escape(facts)}</p>'
        + figure(
            _pictures.convergence(estimator), "Upper and lower bound of the optimal value as the fit went on."
        )
    )


def _suspects(estimator: Any, findings: Findings, names: list[str]) -> str:
    if findings.measure != "accuracy":
        return ""
    parts = ['<h2 id="labels">Labels to look at again</h2>']
    if hasattr(estimator, "noise_rate_"):
        low, high = estimator.noise_rate_interval_
        parts.append(
            f"<p>About {percent(estimator.noise_rate_)} of the labels are thought to be wrong (between {percent(low)} "
            f"and {percent(high)}).</p>"
        )
        parts.append(figure(_pictures.noise(estimator, names), "The most suspicious labels are on the left."))
    if not findings.suspects:
        parts.append("<p>No label is contradicted by the predictions for it.</p>")
        return "".join(parts)
    why = (
        "These are the labels that are the most likely to be wrong, by predictions that did not see them"
        if hasattr(estimator, "label_quality_")
        else "Each of these was predicted otherwise by a fit that did not see it"
    )
    parts.append(
        f"<p>{why}. That is no proof of a wrong label: the sample may be unusual, or the model wrong.</p>"
    )
    rows = [[s.row, s.label, s.other, (s.evidence, number(s.evidence, 2))] for s in findings.suspects]
    head = ["row", "label", "predicted", findings.suspects_from]
    parts.append(table(head, rows, "The most suspicious first"))
    return "".join(parts)


def _settings(model: Any, estimator: Any, y: Any, findings: Findings, note: dict[str, Any], seed: int) -> str:
    facts = {
        "model": repr(estimator) if len(repr(estimator)) < 2000 else type(estimator).__name__,
        "C": np.array2string(np.asarray(estimator.C_), precision=6) if hasattr(estimator, "C_") else "",
        "samples": str(len(y)),
        "kernels": f"{len(estimator.kernel_names_)}, normalisation {estimator.normalize or 'none'}"
        f"{', centred' if estimator.center else ''}",
        "stopping": f"relative gap of {estimator.tol:g}",
        "folds of this page": f"{findings.folds} x {findings.repeats}, random state {seed}",
        "versions": ", ".join(
            f"{name} {version(name)}" for name in ("kernelweave", "scikit-learn", "numpy", "numba")
        ),
        "machine": f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
    }
    if math.isfinite(getattr(estimator, "best_score_", math.nan)):
        facts["score while choosing C"] = f"{estimator.best_score_:.4f} (optimistic: it was maximised)"
    for key in ("data", "target", "id"):
        if note.get(key):
            facts[key] = str(note[key])
    listed = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items() if v)
    command = f"<pre>{escape(note['command'])}</pre>" if note.get("command") else ""
    return f'<h2 id="repeat">To repeat this</h2>{command}<dl>{listed}</dl>'
