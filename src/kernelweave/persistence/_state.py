"""Do the parts of a model that was built from a file fit together?

The list of types says what a file may hold, not that the numbers in it make sense.  What follows an index or a length
from the file without looking is checked here, and every model of the library is tried on one of its own samples, so
that a file that makes no sense is refused when it is loaded and not in the middle of a prediction.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from ..banks import BoundKernels, CompletedKernels, Completion, KernelFunction, PrecomputedKernels, Term
from ..banks.normalise import Normaliser
from ..banks.parts import MatrixPart, MeanScale, SampledPart
from ..estimators.fitted import has_function
from ..kernels import Kernel, n_samples, take
from ..solvers.online import Stream

__all__ = ["check_state"]

#: rooms whose estimators are tried
ESTIMATORS = ("kernelweave.estimators.", "kernelweave.similarity.")
#: a model of more columns is tried on a row of zeros that are not stored
MANY_COLUMNS = 10**6


def check_state(model: Any) -> None:
    """Raise an exception of some kind where parts of a model contradict each other."""
    parts = list(_parts(model))[::-1]  # what is inside first: the rest may rely on it
    for part in parts:
        for kind in type(part).__mro__:
            CHECKS.get(kind.__name__, _nothing)(part)
    for part in parts:
        if type(part).__module__.startswith(ESTIMATORS) and isinstance(part, BaseEstimator):
            _rehearse(part)


def _parts(model: Any) -> Iterator[Any]:
    """Every object inside a model once, the deepest last."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        part = waiting.pop()
        plain = (
            part is None
            or isinstance(part, str | int | float | bool | np.generic | type | ModuleType)
            or sp.issparse(part)
        )
        if plain or id(part) in seen or (isinstance(part, np.ndarray) and part.dtype != object):
            continue
        seen.add(id(part))
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list | tuple | set | np.ndarray):
            waiting += part.ravel().tolist() if isinstance(part, np.ndarray) else part
        else:
            yield part
            waiting += vars(part).values() if hasattr(part, "__dict__") else ()


# ---- lengths and indices --------------------------------------------------------------------------------------


def _numbers(what: str, value: Any, *shapes: tuple[Any, ...]) -> None:
    """Check that a value is an array of numbers of one of the shapes; None in a shape is any length."""
    fits = isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
    fits = fits and any(
        len(shape) == value.ndim and all(a in (None, b) for a, b in zip(shape, value.shape, strict=True))
        for shape in shapes
    )
    if not fits:
        got = (
            f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        )
        raise ValueError(f"{what} is {got}, not numbers of shape {' or '.join(map(str, shapes))}")


def _check_normaliser(part: Normaliser) -> None:
    _numbers("scale of the normalisation", part.scale, (None,))
    m = part.scale.size
    for name, shape in (("row_means", (m, None)), ("grand_means", (m,)), ("diagonal", (m, None))):
        if getattr(part, name) is not None:
            _numbers(f"{name} of the normalisation", getattr(part, name), shape)


def _check_bound(part: BoundKernels) -> None:
    if not isinstance(part.kernels, list) or not all(isinstance(kernel, Kernel) for kernel in part.kernels):
        raise ValueError("kernels of the model are no list of kernels")
    if not isinstance(part.normaliser, Normaliser) or len(part.kernels) != part.normaliser.scale.size:
        raise ValueError("the normalisation is not that of the kernels")


def _check_precomputed(part: PrecomputedKernels) -> None:
    if type(part.n) is not int or type(part.m) is not int or min(part.n, part.m) < 0:
        raise ValueError(f"a model on {part.m!r} matrices of {part.n!r} samples")
    kept = np.arange(part.m) if part.index is None else part.index
    if not isinstance(part.normaliser, Normaliser) or len(kept) != part.normaliser.scale.size:
        raise ValueError("the normalisation is not that of the matrices")
    _positions("matrices", kept, part.m)


def _positions(what: str, index: Any, size: int) -> None:
    """Check that an index is one of ``size`` things."""
    fits = isinstance(index, np.ndarray) and index.ndim == 1 and index.dtype.kind in "iu"
    if not fits or (index.size and not 0 <= int(index.min()) <= int(index.max()) < size):
        raise ValueError(f"{what} of the model are no positions below {size}")


def _check_function(part: KernelFunction) -> None:
    if type(part.m) is not int or not isinstance(part.terms, list) or not all(
        isinstance(term, Term) for term in part.terms
    ):  # fmt: skip
        raise ValueError("the function of the model is none")
    for term in part.terms:
        _positions("kernels with weight", term.index, part.m)
        if not isinstance(term.kernels, BoundKernels | PrecomputedKernels | CompletedKernels):
            raise ValueError("the function of the model stands on no kernels")
        count = term.index.size
        _numbers("weights of the function", term.weights, (count,), (None, count))
        _numbers("coefficients of the function", term.coef, (None,), (None, None))
        if term.kernels.normaliser.scale.size != count:
            raise ValueError("the function of the model has other kernels than weights")


def _check_completed(part: CompletedKernels) -> None:
    learnt, parts = part.completion, part.parts
    if not (isinstance(parts, list) and all(isinstance(one, SampledPart | MatrixPart) for one in parts)):
        raise ValueError("the completed kernels of the model have no parts")
    if not isinstance(learnt, Completion) or type(part.n) is not int or type(part.m) is not int:
        raise ValueError("the model does not know how kernels were completed")
    _numbers("patterns of the model", learnt.patterns, (None, len(parts)))
    _numbers("penalties of the model", learnt.penalties, (len(learnt.patterns), len(parts)))
    if learnt.patterns.dtype != bool or len(learnt.rows) != len(parts):
        raise ValueError("the patterns of the model are not those of its parts")
    for one, rows in zip(parts, learnt.rows, strict=True):
        _positions("samples of a part", rows, part.n)
        members = np.asarray(one.members)
        if members.ndim != 1 or members.dtype.kind != "i" or not np.all((members >= -1) & (members < part.m)):
            raise ValueError("kernels of a part are not those of the model")
        if not isinstance(one.scale, MeanScale) or not isinstance(one.normaliser, Normaliser):
            raise ValueError("a part of the model was not normalised")
        _numbers("means of a part", one.scale.row_means, (rows.size,))
        if len(one.normaliser.scale) != members.size:
            raise ValueError("the normalisation of a part is not that of its kernels")


def _check_encoder(part: Any) -> None:
    """scikit-learn's encoders write ones where the positions of categories say."""
    categories = getattr(part, "categories_", None)
    if categories is None:
        return
    if not isinstance(categories, list) or not all(
        isinstance(c, np.ndarray) and c.ndim == 1 for c in categories
    ):
        raise ValueError("categories of an encoder are no list of columns")
    for kinds in categories:
        numeric = kinds.dtype.kind in "fiub"
        known = kinds[~np.isnan(kinds)] if kinds.dtype.kind == "f" else kinds
        if numeric and np.any(known[1:] <= known[:-1]):
            raise ValueError("categories of an encoder are not in order")
    for name in ("_default_to_infrequent_mappings", "_drop_idx_after_grouping", "drop_idx_"):
        mappings = getattr(part, name, None)
        for kinds, mapping in zip(categories, () if mappings is None else mappings, strict=False):
            values = np.asarray([] if mapping is None else mapping)
            if values.size and (
                values.dtype.kind not in "iu" or values.min() < 0 or values.max() >= kinds.size
            ):
                raise ValueError("an encoder names categories that it does not have")


def _check_stream(part: Stream) -> None:
    if not isinstance(part.bound, BoundKernels):
        raise ValueError("the state of partial_fit stands on no kernels")
    part.check()


def _check_estimator(part: Any) -> None:
    if not isinstance(vars(part).get("_function"), KernelFunction | None):
        raise ValueError("the model stands on no kernels")
    if has_function(part):
        m = part._function.m
        _numbers("weights_", part.weights_, (m,), (None, m))
    stream = getattr(part, "_stream", None)
    if stream is None:
        return
    if not isinstance(stream, Stream) or not isinstance(part.classes_, np.ndarray) or part.classes_.size < 2:
        raise ValueError("the state of partial_fit is none")
    # two classes have a function each under a joint loss, else one for both
    if stream.coef.shape[1] not in ((1, 2) if part.classes_.size == 2 else (part.classes_.size,)):
        raise ValueError(
            f"the state of partial_fit is damaged: {stream.coef.shape[1]} functions of {part.classes_.size} classes"
        )


def _nothing(part: Any) -> None:
    """Most objects hold nothing that is followed without looking."""


#: by the name of a type, which the list of types makes sure of: importing scikit-learn's would be slow
CHECKS: dict[str, Callable[[Any], None]] = {
    "Normaliser": _check_normaliser,
    "BoundKernels": _check_bound,
    "PrecomputedKernels": _check_precomputed,
    "CompletedKernels": _check_completed,
    "KernelFunction": _check_function,
    "Stream": _check_stream,
    "BaseMKL": _check_estimator,
    "OneHotEncoder": _check_encoder,
    "OrdinalEncoder": _check_encoder,
}


# ---- one sample -----------------------------------------------------------------------------------------------


def _rehearse(model: Any) -> None:
    """Predict or transform one row; a model that cannot do that for a sample it was fitted on does not fit together."""
    use = getattr(type(model), "predict", None) or getattr(type(model), "transform", None)
    sample, own = _sample(model)
    if use is None or sample is None:
        return
    trial = copy.copy(model)
    trial.device = None  # the machine that loads need not have what the model was fitted on
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            use(trial, sample)
            values = trial.decision_function(sample) if hasattr(type(model), "decision_function") else None
        except ValueError:
            if own:
                raise
            return
    if values is not None and np.shape(model.classes_) != ((2,) if values.ndim == 1 else values.shape[1:]):
        raise ValueError(f"classes of shape {np.shape(model.classes_)} for decisions of shape {values.shape}")


def _sample(model: Any) -> tuple[Any, bool]:
    """Return a row that a model should take, and whether it was fitted on it; None where it was not fitted."""
    bound = model._function.terms[0].kernels if has_function(model) and model._function.terms else None
    if isinstance(bound, PrecomputedKernels):
        _numbers("dual_coef_", model.dual_coef_, (bound.n,), (bound.n, None), (bound.n, None, None))
        _numbers("weights_", model.weights_, (bound.m,), (None, bound.m))
        return np.ones((bound.m, 1, bound.n)), False
    if bound is not None and bound.samples is not None and n_samples(bound.samples) > 0:
        return take(bound.samples, [0]), True
    width = getattr(model, "n_features_in_", None)
    if width is None:
        return None, False
    if type(width) is not int or not 0 <= width < 2**31:
        raise ValueError(f"a model of {width!r} columns")
    return sp.csr_matrix((1, width)) if width > MANY_COLUMNS else np.ones((1, width)), False
