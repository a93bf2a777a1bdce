"""Checks of the arrays of a file and of the model built from it, and tables and curves inside a model as plain arrays.

Every object of the library has to have what its class declares, with indices and lengths that fit; and all that people
do with a model is done once, on a copy and on a few samples, so that a file that makes no sense is refused when it is
loaded and not in the middle of a prediction.
"""

from __future__ import annotations

import copy
import dataclasses
import io
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from types import FunctionType, ModuleType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from .._estimating import SavedTable, is_frame
from .._numerics.matrices import check_compressed, check_coordinates
from ..banks import BoundKernels, Completion, KernelFunction, MatrixRows, Term
from ..banks.bound import GivenMatrices
from ..banks.normalise import Normaliser
from ..banks.parts import MeanScale, Part
from ..estimators.fitted import Calibration, has_function
from ..kernels import Kernel, n_samples, take
from ..kernels.objects import PartsKernel
from ..problems import Certificate
from ..solvers.online import Stream
from ..views import KnownViews, Views
from ._audit import DROPPED, is_default
from ._file import Archive, ModelFileError, open_archive

#: what has no parts that are visited; a module would give access to everything
PLAIN = (str, int, float, bool, np.generic, type, ModuleType, type(None))


@dataclasses.dataclass
class SavedCurve:
    """Parts of a B-spline along the first axis (of SplineTransformer) that are the same in all versions of SciPy."""

    knots: Any
    coefficients: Any
    degree: int
    extrapolate: bool | str

    @classmethod
    def of(cls, spline: Any) -> SavedCurve:
        """Take a spline apart."""
        if spline.axis != 0:
            raise ValueError("a spline along another axis than the first")
        kept = spline.extrapolate if isinstance(spline.extrapolate, str) else bool(spline.extrapolate)
        return cls(np.asarray(spline.t), np.asarray(spline.c), int(spline.k), kept)

    def spline(self) -> Any:
        """Put the spline together again; compiled code follows the knots, which ask for so many coefficients."""
        from scipy.interpolate import BSpline

        t, c, k = self.knots, self.coefficients, self.degree
        arrays = all(isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in (t, c))
        if not arrays or t.ndim != 1 or c.ndim < 1 or type(k) is not int or not 0 <= k <= 100:
            raise ValueError("a spline of the model is none")
        if not c.shape[0] == t.size - k - 1 >= k + 1:
            raise ValueError("a spline of the model has other coefficients than knots")
        if not (np.all(np.isfinite(t)) and np.all(np.diff(t) >= 0)):
            raise ValueError("the knots of a spline of the model are not in order")
        if not (isinstance(self.extrapolate, bool) or self.extrapolate == "periodic"):
            raise ValueError("a spline of the model goes on in no known way")
        return BSpline(t, c, k, extrapolate=self.extrapolate)


def _other_form(what: Any, saving: bool) -> Any:
    """Return a data frame or a curve as plain arrays, or, not ``saving``, restored; anything else as it is."""
    kind = type(what)
    if saving and is_frame(what):
        return SavedTable.of(what)
    if saving and kind.__name__ == "BSpline" and kind.__module__.startswith("scipy.interpolate"):
        return SavedCurve.of(what)
    if not saving and isinstance(what, SavedTable):
        return what.frame()
    return what.spline() if not saving and isinstance(what, SavedCurve) else what


def exchange_parts(what: Any, *, saving: bool, done: dict[int, tuple[Any, Any]] | None = None) -> Any:
    """Return copies with data frames and curves as plain arrays, or, not ``saving``, with these restored.

    Choices for the machine are left out where a model is saved; parts that are shared stay so (``done``, by their ids).
    """
    if isinstance(what, (*PLAIN, np.ndarray)):
        return what
    done = {} if done is None else done
    if id(what) in done:
        return done[id(what)][1]
    kind, new = type(what), _other_form(what, saving)
    if new is not what:
        pass
    elif kind in (list, tuple):
        parts = [exchange_parts(part, saving=saving, done=done) for part in what]
        if any(part is not old for part, old in zip(parts, what, strict=True)):
            new = kind(parts)
    elif kind is dict:
        entries = {key: exchange_parts(value, saving=saving, done=done) for key, value in what.items()}
        if any(entries[key] is not what[key] for key in what):
            new = entries
    elif isinstance(state := getattr(what, "__dict__", None), dict):
        changed = {}
        for key, old in state.items():
            kept = DROPPED[key] if saving and key in DROPPED and not is_default(key, old) else old
            kept = exchange_parts(kept, saving=saving, done=done)
            if kept is not old:
                changed[key] = kept
        if changed:
            new = copy.copy(what)
            new.__dict__.update(changed)
    done[id(what)] = what, new  # the first keeps the id from being used again
    return new


#: subpackages whose estimators are tried
ESTIMATORS = ("kernelweave.estimators.", "kernelweave.similarity.")
#: what is called with samples alone
METHODS = ("predict", "decision_function", "predict_proba", "transform")
#: new samples from which on a model of incomplete views looks at how many lack what
ENOUGH_ROWS = 20
#: a model on more samples is tried on one pattern of missing views, and not for deviations: both are solves
MANY_SAMPLES = 300
#: a model of more columns is tried on a row of zeros that are not stored
MANY_COLUMNS = 10**6


def check_state(model: Any) -> None:
    """Raise an exception of some kind where parts of a model contradict each other."""
    parts = list(_parts(model))[::-1]  # what is inside first: the rest may rely on it
    for part in parts:
        for kind in type(part).__mro__:
            if kind.__name__ in CHECKS:
                CHECKS[kind.__name__](part)
    for part in parts:
        _check_attributes(part)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for part in parts:
            if type(part).__module__.startswith(ESTIMATORS) and isinstance(part, BaseEstimator):
                _try_out(part)


def _parts(model: Any) -> Iterator[Any]:
    """Every object inside a model once, the deepest last."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        part = waiting.pop()
        plain = isinstance(part, (*PLAIN, FunctionType)) or sp.issparse(part)
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


def _check_attributes(part: Any) -> None:
    """Check that an object has what its class declares, and nothing in the place of a method."""
    for name in vars(part) if hasattr(part, "__dict__") else ():
        # scikit-learn writes what it finds under these names into pages, as a link
        if callable(getattr(type(part), name, None)) or name.startswith(("__", "_doc_link")):
            raise ValueError(
                f"a {type(part).__name__} has an attribute {name!r}, which is not for a file to say"
            )
    if not type(part).__module__.startswith("kernelweave."):
        return
    if isinstance(part, BaseEstimator):
        part.get_params(deep=False)
        names = vars(part).get("feature_names_in_")
        fits = isinstance(names, np.ndarray) and names.ndim == 1 and len(names) == part.n_features_in_
        if names is not None and not (fits and all(isinstance(name, str) for name in names)):
            raise ValueError("names of the columns of the model are none")
    if dataclasses.is_dataclass(part):
        hints = _declared(type(part))  # type: ignore[arg-type]
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            if not _fits(value, hints.get(field.name, Any)):
                raise ValueError(f"{field.name} of a {type(part).__name__} is a {type(value).__name__}")


_declared = cache(get_type_hints)
#: numbers are declared as Python's, and may be NumPy's
NUMBERS: dict[Any, Any] = {
    int: (int, np.integer), float: (int, float, np.integer, np.floating), bool: (bool, np.bool_)
}  # fmt: skip


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type, items of lists included; what cannot be told is taken to be."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if origin in (list, tuple):
        inside = [one for one in get_args(hint) if one is not Ellipsis]
        return isinstance(value, origin) and (len(inside) != 1 or all(_fits(one, inside[0]) for one in value))
    kind = origin or hint
    if hint in NUMBERS:
        return isinstance(value, NUMBERS[hint])
    known = isinstance(kind, type) and kind is not Any and not getattr(kind, "_is_protocol", False)
    return not known or isinstance(value, kind)


def _numbers(what: str, value: Any, *shapes: tuple[Any, ...]) -> None:
    """Check that a value is an array of numbers of one of the shapes; None in a shape is any length."""
    got = type(value).__name__
    fits = False
    if isinstance(value, np.ndarray):
        got = f"{value.dtype} of shape {value.shape}"
        fits = value.dtype.kind in "fiub" and any(
            len(shape) == value.ndim and all(a in (None, b) for a, b in zip(shape, value.shape, strict=True))
            for shape in shapes
        )
    if not fits:
        raise ValueError(f"{what} is {got}, not numbers of shape {' or '.join(map(str, shapes))}")


def _positions(what: str, index: Any, size: int) -> None:
    """Check that an index is one of ``size`` things."""
    fits = isinstance(index, np.ndarray) and index.ndim == 1 and index.dtype.kind in "iu"
    if not fits or (index.size and not 0 <= int(index.min()) <= int(index.max()) < size):
        raise ValueError(f"{what} of the model are no positions below {size}")


def _check_normaliser(part: Normaliser) -> None:
    _numbers("scale of the normalisation", part.scale, (None,))
    m = part.scale.size
    for name, shape in (("row_means", (m, None)), ("grand_means", (m,)), ("diagonal", (m, None))):
        if getattr(part, name) is not None:
            _numbers(f"{name} of the normalisation", getattr(part, name), shape)


def _check_bound(part: BoundKernels) -> None:
    if not isinstance(part.kernels, list) or not all(isinstance(one, Kernel) for one in part.kernels):
        raise ValueError("kernels of the model are no list of kernels")
    given, count = part.given, len(part.kernels)
    if given is not None:
        if not isinstance(given, GivenMatrices) or type(given.n) is not int or type(given.m) is not int:
            raise ValueError("the model does not know its matrices")
        if part.kernels or min(given.n, given.m) < 0:
            raise ValueError(f"a model on {given.m!r} matrices of {given.n!r} samples")
        _positions("matrices", given.index, given.m)
        if given.columns is not None:
            _positions("columns of the matrices", given.columns, given.n)
        count = given.index.size
    if not isinstance(part.normaliser, Normaliser) or count != part.normaliser.scale.size:
        raise ValueError("the normalisation is not that of the kernels")
    if part.direction is not None:
        _numbers("direction of the function", part.direction, (None,), (None, None))
        _numbers("starts of the kernels", part.starts, (len(part.kernels) + 1,))


def _check_certificate(part: Certificate) -> None:
    if not part.finite:
        raise ValueError(f"a certificate of the model has the bounds {part.dual} and {part.primal}")


def _check_calibration(part: Calibration) -> None:
    if not (0.0 <= part.scale < np.inf and np.isfinite(part.offset)):
        raise ValueError(f"probabilities of the model are of {part.scale} f + {part.offset}")


def _check_stream(part: Stream) -> None:
    if not isinstance(part.bound, BoundKernels):
        raise ValueError("the state of partial_fit stands on no kernels")
    part.check()


def _check_vocabulary(part: PartsKernel) -> None:
    if part.vocabulary is not None:
        _numbers("vocabulary of a kernel", part.vocabulary, (None,))
        if part.vocabulary.dtype != np.uint64 or np.any(part.vocabulary[1:] <= part.vocabulary[:-1]):
            raise ValueError("the vocabulary of a kernel is not in order")


def _check_origin(part: Any) -> None:
    if part.origin is not None:
        _numbers("origin of a linear kernel", np.asarray(part.origin), (None,))


def _check_function(part: KernelFunction) -> None:
    terms = part.terms
    if type(part.m) is not int or not (isinstance(terms, list) and all(isinstance(t, Term) for t in terms)):
        raise ValueError("model file: invalid function")
    learnt = part.completion
    if not isinstance(learnt, Completion | None) or not terms:
        raise ValueError("model file: invalid function")
    for term in terms:
        _positions("kernels with weight", term.index, part.m)
        if not isinstance(term.kernels, BoundKernels):
            raise ValueError("the function of the model stands on no kernels")
        if type(term.part) is not int or not 0 <= term.part < (1 if learnt is None else len(learnt.parts)):
            raise ValueError("a term of the function is of no part of the kernels")
        count = term.index.size
        _numbers("weights of the function", term.weights, (count,), (None, count))
        _numbers("coefficients of the function", term.coef, (None,), (None, None))
        if term.kernels.normaliser.scale.size != count:
            raise ValueError("the function of the model has other kernels than weights")


def _check_completed(learnt: Completion) -> None:
    parts = vars(learnt).get("parts")
    if parts is None:
        return  # of 0.2.0, where another object held it
    if not (isinstance(parts, list) and all(isinstance(one, Part) for one in parts)):
        raise ValueError("the completed kernels of the model have no parts")
    if type(learnt.n) is not int or type(learnt.m) is not int:
        raise ValueError("the model does not know how kernels were completed")
    _numbers("patterns of the model", learnt.patterns, (None, len(parts)))
    _numbers("penalties of the model", learnt.penalties, (len(learnt.patterns), len(parts)))
    if learnt.patterns.dtype != bool or len(learnt.rows) != len(parts):
        raise ValueError("the patterns of the model are not those of its parts")
    for one, rows in zip(parts, learnt.rows, strict=True):
        _positions("samples of a part", rows, learnt.n)
        members = np.asarray(one.members)
        inside = members.dtype.kind == "i" and np.all((members >= -1) & (members < learnt.m))
        if members.ndim != 1 or not inside:
            raise ValueError("kernels of a part are not those of the model")
        if not isinstance(one.scale, MeanScale) or not isinstance(one.bound, BoundKernels):
            raise ValueError("a part of the model was not normalised")
        _numbers("means of a part", one.scale.row_means, (rows.size,))
        if len(one.bound.normaliser.scale) != members.size:
            raise ValueError("the normalisation of a part is not that of its kernels")
        if one.bound.given is not None:
            if not isinstance(one.bound.samples, MatrixRows):
                raise ValueError("a part of the model has no rows")
            own = one.bound.samples.matrices[one.needs[0]]
            _numbers("rows of a part", own, (rows.size, one.bound.given.n))


def _check_encoder(part: Any) -> None:
    """scikit-learn's encoders write ones where the positions of categories say."""
    categories = getattr(part, "categories_", None)
    if categories is None:
        return
    listed = categories if isinstance(categories, list) else [None]
    if not all(isinstance(c, np.ndarray) and c.ndim == 1 for c in listed):
        raise ValueError("categories of an encoder are no list of columns")
    for kinds in categories:
        known = kinds[~np.isnan(kinds)] if kinds.dtype.kind == "f" else kinds
        if known.dtype.kind in "fiub" and np.any(known[1:] <= known[:-1]):
            raise ValueError("categories of an encoder are not in order")
    for name in ("_default_to_infrequent_mappings", "_drop_idx_after_grouping", "drop_idx_"):
        mappings = getattr(part, name, None)
        for kinds, mapping in zip(categories, () if mappings is None else mappings, strict=False):
            values = np.asarray([] if mapping is None else mapping)
            inside = values.dtype.kind in "iu" and np.all((values >= 0) & (values < kinds.size))
            if values.size and not inside:
                raise ValueError("an encoder names categories that it does not have")


def _check_estimator(part: Any) -> None:
    function = vars(part).get("_function")
    if not isinstance(function, KernelFunction | None) or (function is None and "dual_coef_" in vars(part)):
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


#: by the name of a type, which the list of types makes sure of: importing scikit-learn's would be slow
CHECKS: dict[str, Callable[[Any], None]] = {
    "Normaliser": _check_normaliser, "BoundKernels": _check_bound, "Linear": _check_origin,
    "PartsKernel": _check_vocabulary, "Calibration": _check_calibration, "Certificate": _check_certificate,
    "Stream": _check_stream,
    "Completion": _check_completed, "KernelFunction": _check_function, "BaseMKL": _check_estimator,
    "Baseline": lambda part: part.check(), "OneHotEncoder": _check_encoder, "OrdinalEncoder": _check_encoder,
}  # fmt: skip


def _try_out(model: Any) -> None:
    """Do once, on a copy, what people do with a model; samples it was not fitted on may be a ValueError."""
    repr(model)
    trial = copy.copy(model)
    trial.device = None  # the machine that loads need not have what the model was fitted on
    for sample, own in _samples(model):
        for name in METHODS:
            method = getattr(trial, name, None)
            if method is None:
                continue
            try:
                values = method(sample)
                if name == "predict" and hasattr(trial, "_spread") and len(model.dual_coef_) <= MANY_SAMPLES:
                    method(sample, return_std=True)
            except ValueError:
                if own:
                    raise
                continue
            if name == "decision_function" and hasattr(model, "classes_"):
                classes = np.shape(model.classes_)
                if classes != ((2,) if values.ndim == 1 else values.shape[1:]):
                    raise ValueError(f"classes of shape {classes} for decisions of shape {values.shape}")
        if getattr(model, "_stream", None) is not None:
            learning = copy.copy(trial)
            learning._stream = copy.deepcopy(model._stream)
            with suppress(ValueError):  # parameters that were set after the stream began
                learning.partial_fit(sample, np.repeat(model.classes_[:1], n_samples(sample)))
                learning.predict(sample)


def _samples(model: Any) -> Iterator[tuple[Any, bool]]:
    """Yield rows that a model should take, and whether it was fitted on them; none where it was not fitted."""
    terms = model._function.terms if has_function(model) else []
    completion = model._function.completion if terms else None
    bound = terms[0].kernels if terms and completion is None else None
    if bound is not None and bound.given is None:  # of kernels with sparse features no sample is kept
        bound = next((term.kernels for term in terms if term.kernels.samples is not None), bound)
    if bound is not None and bound.given is not None:
        n, m = bound.given.n, bound.given.m
        _numbers("dual_coef_", model.dual_coef_, (n,), (n, None), (n, None, None))
        _numbers("weights_", model.weights_, (m,), (None, m))
        yield np.ones((m, 1, n)), False
    elif bound is not None and bound.samples is not None and n_samples(bound.samples) > 0:
        yield take(bound.samples, [0]), True
    elif (width := getattr(model, "n_features_in_", None)) is not None:
        if type(width) is not int or not 0 <= width < 2**31:
            raise ValueError(f"a model of {width!r} columns")
        yield sp.csr_matrix((1, width)) if width > MANY_COLUMNS else np.ones((1, width)), False
    if completion is not None:
        yield _incomplete(model, completion), False


def _incomplete(model: Any, completion: Completion) -> Any:
    """Return rows that a model of incomplete views takes: some are complete, others lack what a training sample lacks.

    A pattern for every part of the kernels that samples lack; of a large model just one, since each costs a solve.
    """
    patterns = completion.patterns
    lacking = [
        int(np.argmin(patterns[:, p])) for p in range(len(completion.parts)) if not patterns[:, p].all()
    ]
    chosen = list(dict.fromkeys(lacking))[: 1 if completion.n > MANY_SAMPLES else None]
    count = max(ENOUGH_ROWS, len(chosen) + 1)
    lacks = np.zeros((count, len(completion.parts)), dtype=bool)
    lacks[: len(chosen)] = ~patterns[chosen]
    if completion.parts[0].bound.given is not None:
        rows = np.ones((len(completion.parts), count, completion.n))
        rows[lacks.T] = np.nan
        return rows
    known, samples = model._views, completion.parts[0].bound.samples
    if not isinstance(known, KnownViews) or not isinstance(samples, Views):
        raise ValueError("the model does not know its views")
    views, blocks = take(samples, np.zeros(count, dtype=np.intp)), {}
    for k, (name, block) in enumerate(views.items()):
        needing = [p for p, part in enumerate(completion.parts) if k in part.needs]
        gone = np.asarray(lacks[:, needing].all(axis=1)) & bool(needing)  # all of none would be all
        if not sp.issparse(block):
            # the sample at hand may lack the view itself; there is no value that would do for all objects
            made_up = 1.0 if block.dtype != object else np.nan
            block = np.where(views.present[:, [k]], block, made_up)
            block = np.where(gone[:, None], np.nan, block)
        blocks[name] = block
    if known.groups is None:
        return blocks
    table = np.ones((count, model.n_features_in_), dtype=object if known.objects else float)
    for name, columns in known.groups.items():
        table[:, columns] = blocks[name]
    return table


#: kinds of numbers and texts that a model is made of
KINDS = "fiubUS"
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def check_arrays(archive: Archive, used: Iterable[tuple[str, str]], most: int) -> None:
    """Check every array that the description names, before NumPy and SciPy build it.

    ``used`` are members with what each is, ``array`` or the format of a sparse matrix, an archive of its own.
    """
    for member, kind in used:
        if member not in archive.members:
            raise ModelFileError(f"{archive.name} is damaged: it has no part {member!r}")
        try:
            content = archive.read(member)
            if kind == "array":
                _array(content)
                continue
            inner = open_archive(content, f"{archive.name}: {member}", most)
            parts = {name.removesuffix(".npy"): _array(inner.read(name)) for name in inner.members}
            format_: Any = parts["format"].item()
            format_ = format_.decode() if isinstance(format_, bytes) else format_
            if format_ != kind:
                raise ValueError(f"it is a {format_!r} matrix where the description says {kind}")
            data, shape = parts["data"], parts["shape"]
            if data.dtype.kind not in "fiub":
                raise ValueError(f"it holds {data.dtype}, not numbers")
            if kind == "coo":
                check_coordinates(data, parts["row"], parts["col"], shape, "it")
            else:
                check_compressed(kind, data, parts["indices"], parts["indptr"], shape, "it")
        except ModelFileError:
            raise
        except Exception as error:
            raise ModelFileError(
                f"{archive.name} cannot be loaded, its part {member!r} is no array that a model may hold: {error}"
            ) from error


def _array(content: bytes) -> np.ndarray:
    """Return an array in NumPy's format; its header has to account for every byte."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"its format is of version {version}")
    shape, _, dtype = HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("it holds objects, which would need allow_pickle=True")
    if dtype.kind not in KINDS or dtype.names or dtype.subdtype:
        raise ValueError(f"it holds {dtype}, neither numbers nor texts")
    size = math.prod(shape)  # a whole number of Python: no shape is too large
    there = len(content) - file.tell()
    if min(shape, default=0) < 0 or size * max(dtype.itemsize, 1) != there:
        raise ValueError(f"an array of shape {shape} does not have {there} bytes")
    return np.load(io.BytesIO(content), allow_pickle=False)
