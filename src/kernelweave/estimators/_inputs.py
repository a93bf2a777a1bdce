"""From what a user passes as X to kernels and samples: one place for every kind of input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Number

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from .._numerics.matrices import check_sparse, without_duplicates
from ..banks import MatrixRows, Rows, as_rows, as_stack, check_training_stack
from ..banks.decide import keep
from ..banks.devices import device_of, on_host
from ..banks.facts import facts_of_kernels
from ..banks.memory import STORAGES
from ..cluster import ClusterSamples, DaskRows, cluster_samples, is_dask
from ..kernels import (
    Kernel,
    KernelSpec,
    Schema,
    as_spec,
    column_groups,
    default_bank,
    expand_kernels,
    n_samples,
)
from ..kernels.pairwise import PairKernel, PairStack, factors_of, plain_pairs
from ..views import (
    KnownViews,
    MissingRates,
    Pairs,
    Presence,
    Views,
    as_frame,
    as_views,
    is_row,
    is_views,
    refuse_missing,
)
from ..views.pairs import KnownSides
from ._parameters import Device, KernelsLike, Samples
from ._plan import BankPlan


@dataclass(frozen=True)
class Training:
    """Checked training input: kernels (None where matrices were given), samples, their number and what they are.

    ``kind`` is ``numbers`` (rows of them), ``rows`` (of numbers, read as they are needed), ``table`` (columns of any
    kind), ``views``, ``pairs``, ``objects`` or ``matrices``.  ``device`` and ``client`` say where the bank is to
    be, ``columns`` what the columns of a table are called.
    """

    kernels: list[Kernel] | None
    samples: Samples
    n: int
    names: list[str]
    kind: str = "numbers"
    device: Device = None
    client: object = None
    columns: Sequence[str] | None = None

    def presence(self) -> Presence | Views:
        """Return who has which view, or which matrix; for samples that may lack some."""
        given = self.kind == "matrices"
        return matrices_with_gaps(self.samples, "precomputed kernels") if given else self.samples

    @property
    def width(self) -> int:
        """Columns of the samples; 1 where they have none."""
        shape: tuple[int, ...] = getattr(self.samples, "shape", ())
        return int(shape[1]) if len(shape) == 2 else 1


def is_precomputed(kernels: KernelsLike) -> bool:
    """Whether X is to be kernel matrices."""
    return isinstance(kernels, str) and kernels == "precomputed"


#: what an earlier fit noted of its samples
KNOWN_OF_SAMPLES = ("_views", "_matrix_rates", "_sides", "n_features_in_", "feature_names_in_")


def training_inputs(
    estimator: BaseEstimator, X: Samples, plan: BankPlan, n_targets: int | None = None
) -> Training:
    """Check X against the kernels of an estimator and the number of targets; return both, ready to be bound."""
    for name in KNOWN_OF_SAMPLES:
        vars(estimator).pop(name, None)
    given, device = cluster_samples(X), getattr(estimator, "device", None)
    if given is not None:
        if device is not None:
            raise ValueError("a device and a cluster do not go together: use device=None, or X in memory")
        training = _cluster_inputs(estimator, given, plan, n_targets)
    else:
        place = None if isinstance(X, Pairs) else device_of(device, X)
        if isinstance(X, Pairs) and device is not None:
            raise ValueError("pairs are multiplied in memory: use device=None")
        if place is not None and plan.missing != "error":
            raise ValueError(
                f"missing={plan.missing!r} completes kernels in memory: pass X as an array of NumPy"
            )
        training = _host_inputs(estimator, on_host(X), n_targets, plan.missing)
        training = replace(training, device=place, columns=vars(estimator).get("feature_names_in_"))
    if n_targets is not None and n_targets != training.n:
        what = "precomputed kernels have" if training.kernels is None else "X has"
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {what} {training.n} samples, "
            f"y has {n_targets}"
        )
    return training


def _cluster_inputs(
    estimator: BaseEstimator, given: ClusterSamples, plan: BankPlan, n_targets: int | None
) -> Training:
    """Rows that stay on the cluster where their features are enough, or samples in memory, and the client."""
    if isinstance(given.samples, Pairs):
        raise ValueError("pairs are multiplied in memory, not on a cluster: pass X itself")
    if is_precomputed(estimator.kernels):
        raise ValueError(
            "kernels='precomputed' takes matrices in memory, not on a cluster: there kernels are computed from samples"
        )
    if plan.missing != "error":
        raise ValueError(
            f"missing={plan.missing!r} completes kernels in memory, not on a cluster: gather X first"
        )
    spec = default_bank() if estimator.kernels is None else as_spec(estimator.kernels)
    samples = _rows_for_features(plan, given, spec)
    if samples is None:
        samples = given.samples
        if isinstance(samples, DaskRows):
            samples = samples[:]
        elif is_dask(samples):
            table = hasattr(samples, "columns")
            whole = samples if table else DaskRows(samples, given.client).array
            samples = given.client.compute(whole).result()
    return replace(_host_inputs(estimator, samples, n_targets), client=given.client)


def _rows_for_features(plan: BankPlan, given: ClusterSamples, spec: KernelSpec) -> Rows | None:
    """Rows of numbers that are to stay on a cluster, because explicit features of them are all that will be needed.

    None where samples are something else, kernels have no features, or the solver asks for kernel matrices: then
    samples come to the client, and kernel values stay on the workers.
    """
    samples = given.samples
    kinds = getattr(samples, "dtypes", None)  # of a table
    others = kinds is not None and any(kind.kind not in "fiub" for kind in kinds)
    if "features on a cluster" not in STORAGES.get(plan.storage, ()) or others:
        return None
    rows: Rows
    if is_dask(samples):
        rows = DaskRows(samples, given.client)
    elif hasattr(samples, "iloc"):
        rows = as_rows(samples.to_numpy(dtype=float))
        rows.names, rows.table = tuple(map(str, samples.columns)), True
    elif isinstance(samples, Rows) or (getattr(samples, "ndim", 0) == 2 and samples.dtype.kind in "fiub"):
        rows = as_rows(samples)
    else:
        return None
    kernels = expand_kernels(spec, Schema.of(rows))
    facts = facts_of_kernels(
        kernels, rows, plan.normalize, plan.center, place="cluster", kind="rows" if isinstance(samples, Rows) else "",
        can=plan.can, memory=np.inf,
    )  # fmt: skip
    return rows if keep(facts, plan.asked()).representation == "features" else None


def _host_inputs(
    estimator: BaseEstimator, X: Samples, n_targets: int | None, missing: str = "error"
) -> Training:
    """Check X in memory, or rows that are read as needed."""
    if is_precomputed(estimator.kernels):
        matrices = as_stack(X, gaps=missing != "error")
        names = [f"kernel {j}" for j in range(len(matrices))]
        if missing != "error":
            estimator._matrix_rates = MissingRates.of(matrices_with_gaps(matrices, "precomputed kernels"))
        check_training_stack(matrices, n_targets, names=names)
        return Training(None, matrices, matrices[0].shape[0], names, "matrices")
    spec = default_bank() if estimator.kernels is None else as_spec(estimator.kernels)
    X, kind = as_frame(X), "numbers"
    if isinstance(X, Pairs):
        return _pairs(estimator, X, spec, missing)
    if is_views(X, n_targets):
        kind = "views"
        expanded, X = _expand_on_views(estimator, X, spec, missing)
    elif missing != "error":
        kind = "views"
        expanded, X = _table_with_gaps(estimator, X, spec, missing)
    elif isinstance(X, Rows):
        kind = "rows"
        estimator.n_features_in_ = X.shape[1]
        if X.table:
            estimator.feature_names_in_ = np.array(X.names, dtype=object)
        expanded = expand_kernels(spec, Schema.of(X))
    elif (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind not in "fiub") or (
        hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2
    ):  # columns matter before they become numbers: their names, or their kinds
        expanded = expand_kernels(spec, Schema.of(X))
        if any(kernel.takes_objects for kernel in expanded):
            kind = "table"  # kernels check what is in the columns
            validate_data(estimator, X, reset=True, skip_check_array=True)
        else:
            X = _numeric(estimator, X, reset=True)
    elif _is_object_list(X):
        kind = "objects"
        expanded = _expand_for_objects(spec, X)
    else:
        X = _numeric(estimator, X, reset=True)
        expanded = expand_kernels(spec, Schema.of(X))
    sparse = sp.issparse(X) and kind != "views"
    unfit = [k.name for k in expanded if sparse and not (k.accepts_sparse or k.takes_objects)]
    if unfit:
        raise ValueError(
            f"kernel {unfit[0]!r} does not take sparse input ({len(unfit)} of {len(expanded)} kernels do not): densify "
            "with X.toarray(), or use gaussian, linear, polynomial or cosine"
        )
    for kernel in expanded:
        kernel.check_samples(X)
    return Training(expanded, X, n_samples(X), [kernel.name for kernel in expanded], kind)


def _pairs(estimator: BaseEstimator, X: Pairs, spec: KernelSpec, missing: str) -> Training:
    """Check pairs of objects against kernels of pairs; the estimator remembers what the objects were."""
    if missing != "error":
        raise ValueError(f"missing={missing!r} completes kernels of views, and these samples are pairs")
    if len(X) < 2:
        raise ValueError(f"Found {len(X)} pair(s) while a minimum of 2 is required.")
    try:
        kernels = expand_kernels(spec, Schema.of(X))
    except ValueError as error:
        if not isinstance(spec, PairStack):
            raise ValueError(f"X holds pairs, and the kernels do not take them: {NO_PAIRS}") from error
        raise
    unfit = [kernel.name for kernel in kernels if not isinstance(kernel, PairKernel)]
    if unfit:
        raise ValueError(f"X holds pairs, and kernel {unfit[0]!r} does not take them: {NO_PAIRS}")
    if len({kernel.symmetry for kernel in kernels}) > 1:
        raise ValueError(
            "kernels of pairs are all of one symmetry: take one kernels.pairs(...), or several alike"
        )
    estimator._sides = KnownSides.of(X)
    plain = plain_pairs(X)
    lefts, rights, _ = factors_of(kernels)
    _check_side("left", plain.left.objects, lefts)
    _check_side("right", plain.right.objects, rights)
    return Training(kernels, plain, len(X), [kernel.name for kernel in kernels], "pairs")


NO_PAIRS = "write kernels.pairs(left=..., right=...) around the kernels of the two sides"


def _check_side(which: str, objects: Samples, kernels: Sequence[Kernel]) -> None:
    """Raise where the kernels of one side cannot work on its objects."""
    numbers = isinstance(objects, np.ndarray) and objects.dtype.kind in "fiub"
    if sp.issparse(objects):
        check_sparse(objects)
    for kernel in kernels:
        anything = kernel.takes_objects or kernel.takes_indices or kernel.family in ("constant", "identity")
        if sp.issparse(objects) and not (anything or kernel.accepts_sparse):
            raise ValueError(f"kernel {kernel.name!r} does not take the sparse {which} objects: densify them")
        table = sp.issparse(objects) or isinstance(objects, Views) or (numbers and objects.ndim == 2)
        if not anything and not table:
            raise ValueError(
                f"kernel {kernel.name!r} works on rows of numbers, and the {which} objects are none: pass a table, or "
                "kernels that take such objects"
            )
        if not anything and numbers and not np.isfinite(objects).all():
            raise ValueError(
                f"the {which} objects contain NaN or infinity: impute missing values first (SimpleImputer)"
            )


def _expand_on_views(
    estimator: BaseEstimator, X: Samples, spec: KernelSpec, missing: str
) -> tuple[list[Kernel], Samples]:
    """Return kernels on views and the samples; the estimator remembers what the views were."""
    views = as_views(X)
    if len(views) < 2:
        raise ValueError(f"Found views with {len(views)} sample(s) while a minimum of 2 is required.")
    kernels = expand_kernels(spec, Schema.of(views))
    looked_at = frozenset().union(*(kernel.looks_at(views.shape[1]) for kernel in kernels))
    used = [views.names[k] for k in np.unique(views.view_of(sorted(looked_at)))]
    if not any(kernel.takes_objects for kernel in kernels):
        names = views.feature_names or range(views.shape[1])
        for view, block in views.only(used).items():
            refuse_text(block, labels=[names[j] for j in views.groups[view]])
    views.only(used).check_values()
    if missing == "error":
        refuse_missing(views.only(used), completes=hasattr(estimator, "missing"))
    estimator.n_features_in_ = views.shape[1]
    if views.feature_names is not None:
        estimator.feature_names_in_ = np.array(views.feature_names, dtype=object)
    estimator._views = KnownViews.of(views, missing, used)
    return kernels, views.table() if missing == "error" else views.bare()


def _table_with_gaps(
    estimator: BaseEstimator, X: Samples, spec: KernelSpec, missing: str
) -> tuple[list[Kernel], Samples]:
    """Return kernels and one table of numbers, cut into the views that they are on: rows may lack some of them."""
    if isinstance(X, Rows) or _is_object_list(X):
        raise ValueError(f"missing={missing!r} needs views: a dict of tables, or one table in memory")
    schema = Schema.of(X)
    objects = schema.n_features is not None and any(k.takes_objects for k in expand_kernels(spec, schema))
    if objects:
        validate_data(estimator, X, reset=True, skip_check_array=True)
    else:
        X = _numeric(estimator, X, reset=True, gaps=True)
    kernels = expand_kernels(spec, schema if schema.n_features is not None else Schema.of(X))
    names = getattr(estimator, "feature_names_in_", None)
    groups = column_groups(kernels, X.shape[1], None if names is None else list(names))
    views = Views.of_table(X, groups)
    views.check_values()
    estimator._views = KnownViews.of(views, missing, views.names, groups, objects)
    return kernels, views.bare()


def matrices_with_gaps(matrices: Samples, what: str) -> Presence:
    """Return who has which matrix; raise where one has NaN for some entries of a sample only."""
    for j, matrix in enumerate(matrices):
        gaps = np.isnan(matrix)
        rows, columns = ~gaps.all(axis=1), ~gaps.all(axis=0)
        if gaps[np.ix_(rows, columns)].any():
            raise ValueError(
                f"{what}: matrix {j} has single entries of NaN; a sample that lacks a kernel has NaN in its whole row "
                "(and column)"
            )
    present = np.stack([~np.isnan(matrix).all(axis=1) for matrix in matrices], axis=1)
    return Presence([f"kernel {j}" for j in range(len(matrices))], present)


def new_samples(estimator: BaseEstimator, X: Samples, kind: str) -> Samples:
    """Check new rows against what an estimator was fitted on."""
    if kind == "pairs" or isinstance(X, Pairs):
        if kind != "pairs" or not isinstance(X, Pairs):
            raise ValueError(
                f"{type(estimator).__name__} was fitted on {'pairs' if kind == 'pairs' else 'other samples'}, but X is "
                f"{type(X).__name__}"
            )
        estimator._sides.check(X)
        return plain_pairs(X)
    X = on_host(X)
    if kind == "matrices":
        rates: MissingRates | None = vars(estimator).get("_matrix_rates")
        matrices = as_stack(X, "rows of new samples", rates is not None)
        if rates is not None:
            rates.warn_of_change(matrices_with_gaps(matrices, "rows of new samples"))
        expected = (len(estimator.kernel_names_), len(estimator.dual_coef_))
        shape = (len(matrices), *matrices[0].shape)
        if (shape[0], shape[2]) != expected:
            raise ValueError(
                f"precomputed rows of new samples must have shape ({expected[0]}, n_new, {expected[1]}): one matrix "
                f"a kernel, one column a training sample; got {shape}"
            )
        return MatrixRows(matrices)
    if kind == "views":
        known = estimator._views
        if known.groups is not None and known.objects:
            X = validate_data(estimator, as_frame(X), reset=False, skip_check_array=True)
        elif known.groups is not None:
            X = _numeric(estimator, X, reset=False, gaps=True)
        X = known.samples(X)
    else:
        X = as_frame(X)
    if isinstance(X, Rows):
        if kind != "rows" or X.shape[1] != estimator.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
                f"{getattr(estimator, 'n_features_in_', 'no rows that are read as needed')}"
            )
        return X
    if kind == "table":
        X = validate_data(estimator, X, reset=False, skip_check_array=True)
    if kind not in ("table", "objects", "views"):
        return _numeric(estimator, X, reset=False)
    for kernel in vars(estimator).get("kernels_", ()):
        kernel.check_samples(X)
    return X


def _is_object_list(X: Samples) -> bool:
    """Whether X is a sequence of things that are not rows of numbers: strings, graphs, indices."""
    if sp.issparse(X):
        return False
    if hasattr(X, "iloc") or isinstance(X, np.ndarray):
        return X.ndim == 1
    if isinstance(X, list | tuple) and len(X):
        return not is_row(X[0]) or any(not is_row(x) or len(x) != len(X[0]) for x in X)
    return False


RESHAPE = (
    "Reshape your data either using array.reshape(-1, 1) if it has a single feature or array.reshape(1, -1) if it is a "
    "single sample; kernel matrices need kernels='precomputed'"
)


def _expand_for_objects(spec: KernelSpec, X: Samples) -> list[Kernel]:
    """Expand kernels for a sequence of single things, or say that they need rows of numbers."""
    try:
        kernels = expand_kernels(spec, Schema(None, None))
    except ValueError as error:
        if isinstance(next(iter(X), None), Number | np.generic | np.ndarray):
            raise ValueError(f"Expected 2D array, got 1D array instead: {error}. {RESHAPE}") from error
        raise
    unfit = [k.name for k in kernels if not (k.takes_objects or k.takes_indices)]
    if unfit:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: X is a sequence of single things, but kernel {unfit[0]!r} works "
            f"on rows of numbers; those on texts, molecules and graphs are in kernelweave.kernels. {RESHAPE}"
        )
    return kernels


def refuse_text(X: Samples, error: Exception | None = None, labels: Sequence[object] | None = None) -> None:
    """Raise where a column of a table holds texts or dates, naming it: it is no matrix of numbers."""
    frame = hasattr(X, "iloc")
    if not (frame or getattr(getattr(X, "dtype", None), "kind", "") in "OUSM") or getattr(X, "ndim", 0) != 2:
        return
    for j in range(X.shape[1]):
        values = np.asarray(X.iloc[:, j] if frame else X[:, j])
        found = next(filter(_is_text, values), None) if values.dtype.kind in "OUS" else None
        if values.dtype.kind != "M" and found is None:
            continue
        label = X.columns[j] if frame else j if labels is None else labels[j]
        what = "dates" if found is None else f"texts, such as {str(found)!r}"
        raise ValueError(
            f"column {label!r} holds {what}, which cannot be converted to numbers: leave it out, encode it "
            f"(OneHotEncoder), or give it a kernel of its own, kernels.function(f).on({label!r})"
        ) from error


def _is_text(value: object) -> bool:
    """Whether something is a text that is no number."""
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return isinstance(value, str)
    return False


def _numeric(estimator: BaseEstimator, X: Samples, reset: bool, gaps: bool = False) -> Samples:
    """Check a table of numbers; ``gaps`` lets NaN pass."""
    if getattr(X, "ndim", 0) == 3:
        raise ValueError(
            f"Found array with dim 3, of shape {X.shape}: kernel matrices need kernels='precomputed', or inside "
            "cross-validation kernels=kernelweave.kernels.held(stack) with sample indices as X"
        )
    if sp.issparse(X):
        check_sparse(X)  # before any compiled code, scikit-learn's conversions included, reads its indices
    try:
        fewest, finite = 2 if reset else 1, "allow-nan" if gaps else True
        checks = {"accept_sparse": "csr", "ensure_min_samples": fewest, "ensure_all_finite": finite}
        X = validate_data(estimator, X, dtype=np.float64, reset=reset, **checks)
    except (TypeError, ValueError) as error:
        refuse_text(X, error)
        raise
    return without_duplicates(X) if sp.issparse(X) else X
