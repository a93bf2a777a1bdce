"""Learning from a stream: OBSCURE's online stage on one batch after another, keeping support vectors alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, column_or_1d

from ..banks import BoundKernels, support
from ..banks.bound import active_kernels
from ..banks.normalise import Normaliser
from ..kernels import resolve_kernels
from ..kernels._helpers import n_samples, take
from ..losses import Loss
from ..solvers._derivatives import derivative_of
from ..solvers.online import Obscure
from ..solvers.online._products import block_exponent
from ._inputs import new_samples
from ._refusal import unchanged_where_it_raises

Array = NDArray[np.float64]

__all__ = ["LearnsOnline", "Stream"]


@dataclass
class Stream:
    """Support vectors with their coefficients ``(n_sv, k)``, and the squared block norms of what they make up."""

    bound: BoundKernels
    coef: Array
    quad: Array
    q: float
    eta: float

    @classmethod
    def begin(
        cls, kernels: Any, samples: Any, normalize: str | None, norm: Any, eta: float, columns: int
    ) -> Stream:
        """Settle kernels and their normalisation on the first batch."""
        resolved = resolve_kernels(kernels, samples)
        m = len(resolved)
        normaliser = Normaliser.empty(normalize, False, m, n_samples(samples), [k.name for k in resolved])
        for j, kernel in enumerate(resolved):
            normaliser.learn(j, kernel.diag(samples))
        none = take(samples, np.zeros(0, dtype=np.intp))
        q = block_exponent(norm)
        return cls(BoundKernels(resolved, none, normaliser), np.zeros((0, columns)), np.zeros(m), q, eta)

    def check(self, columns: int | None = None) -> None:
        """Raise a ValueError where the parts do not fit together: compiled code reads as far as they say.

        They always do in a stream that ``partial_fit`` made; a file may hold another one.
        """
        m, rows = len(self.bound.kernels), n_samples(self.bound.samples)
        for name, array, shape in (
            ("coef", self.coef, (rows, self.coef.shape[1] if np.ndim(self.coef) == 2 else columns)),
            ("quad", self.quad, (m,)),
            ("scale", self.bound.normaliser.scale, (m,)),
        ):
            fits = isinstance(array, np.ndarray) and array.dtype == np.float64 and array.shape == shape
            if not (fits and np.all(np.isfinite(array))):
                raise ValueError(
                    f"the state of partial_fit is damaged: {name} is not a finite array of {shape}"
                )
        if columns is not None and self.coef.shape[1] != columns:
            raise ValueError(
                f"the state of partial_fit is damaged: it has {self.coef.shape[1]} functions, the classes {columns}"
            )
        for name, value in (("exponent", self.q), ("step", self.eta)):
            if not (isinstance(value, int | float | np.number) and 0 < value < np.inf):
                raise ValueError(
                    f"the state of partial_fit is damaged: its {name} is {value!r}, no number > 0"
                )

    @property
    def weights(self) -> Array:
        """Factors of the kernels: ``f = sum_j weights_j sum_i (coef_i / q) k_j(x_i, .)``."""
        from .._numerics.online import block_factors

        factors = np.zeros(self.quad.size)
        block_factors(self.quad, self.q, 0.0, factors)
        return factors

    def learn(self, batch: Any, y: Array, weight: Array, loss: Loss) -> int:
        """Visit the samples of a batch in their order; return how many changed the function."""
        from .._numerics.online import FIXED_STEP, SIG, block_factors, kernel_epoch

        self.check(1 if y.ndim == 1 else y.shape[1])
        size, columns = n_samples(batch), self.coef.shape[1]
        known = self.bound
        P = np.zeros((columns, self.quad.size, size))
        if self.coef.shape[0]:
            P += np.einsum("mbs,sk->kmb", known.cross(batch), self.coef)
        rows = BoundKernels(known.kernels, batch, known.normaliser).cross(batch)
        A, H, window = np.zeros((3, size, columns))
        scalars, factors = np.zeros(6), np.zeros(self.quad.size)
        scalars[SIG] = 1.0
        block_factors(self.quad, self.q, 0.0, factors)
        order = np.arange(size)
        form = derivative_of(loss, y)
        kernel_epoch(
            order, order, rows, P, np.ascontiguousarray(np.diagonal(rows, axis1=1, axis2=2)), A, H, window,
            self.quad, factors, scalars, FIXED_STEP, self.q, 1.0, self.eta, 1.0, 0.0, weight,
            form.kind, form.target, form.width, form.low, form.high,
        )  # fmt: skip
        used = support(A)
        self.bound = BoundKernels(known.kernels, _joined(known.samples, take(batch, used)), known.normaliser)
        self.coef = np.vstack([self.coef, A[used]])
        return int(used.size)


def _joined(first: Any, second: Any) -> Any:
    """Samples one after the other, of whatever kind they are."""
    if sp.issparse(first):
        return sp.vstack([first, second], format="csr")
    if hasattr(first, "iloc"):
        import pandas as pd

        return pd.concat([first, second])
    if hasattr(first, "shape"):
        return np.concatenate([first, second])
    return [*first, *second]


def _learns_online(estimator: Any) -> bool:
    if estimator.solver == "obscure" or isinstance(estimator.solver, Obscure):
        return True
    raise AttributeError("partial_fit needs solver='obscure', whose first stage learns from a stream")


class LearnsOnline:
    """``partial_fit`` for classifiers whose solver has an online stage."""

    # of the classifier that this is mixed into
    kernels: Any
    normalize: Any
    center: bool
    intercept_: Any
    _components: Any
    _sample_weights: Any
    _problems: Any
    _training: Any
    _check_length: Any

    @available_if(_learns_online)
    @unchanged_where_it_raises
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn from one more batch by OBSCURE's online stage (``solver="obscure"`` only).

        Every sample is visited once, in its order, and only those that changed the function are kept.  Widths that
        depend on the samples and the normalisation are settled on the first batch.  There is no certificate: what was
        not kept cannot be judged.  ``fit`` begins afresh.

        Parameters
        ----------
        X, y : samples and labels of the batch
        classes : array-like, optional
            All labels that will ever come; needed at the first call.
        sample_weight : array of shape (n,), optional
            Factors of the steps by sample.

        Returns
        -------
        self

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from kernelweave import MKLClassifier, kernels as kw, norms
        >>> X, y = load_digits(return_X_y=True)
        >>> bank, norm = kw.gaussian([10.0, 20.0]), norms.Block(1.25)
        >>> clf = MKLClassifier(bank, norm=norm, solver="obscure", fit_intercept=False)
        >>> for first in range(0, 1500, 300):
        ...     clf = clf.partial_fit(X[first : first + 300], y[first : first + 300], classes=range(10))
        >>> clf.score(X[1500:], y[1500:]) > 0.9
        True
        """
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
        stream: Stream | None = getattr(self, "_stream", None)
        if stream is None:
            if classes is None:
                raise ValueError("classes must be given at the first call of partial_fit: all labels to come")
            self.classes_ = np.unique(np.asarray(classes))
            if self.classes_.size < 2:
                raise ValueError(f"classification needs at least two classes, got {self.classes_}")
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(f"classes differ from those of the first call of partial_fit, {self.classes_}")
        unseen = np.setdiff1d(y, self.classes_)
        if unseen.size:
            raise ValueError(
                f"y has labels {unseen.tolist()} that were not among the classes of the first call of partial_fit, "
                f"{self.classes_.tolist()}"
            )
        loss, norm, solver = self._components()
        assert solver is not None
        if self.center or self.normalize == "cosine" or self.kernels == "precomputed":
            raise ValueError(
                "partial_fit needs kernels it can evaluate, center=False and normalize='trace' or None"
            )
        codes = np.searchsorted(self.classes_, y)
        weight = self._sample_weights(sample_weight, codes)
        targets = self._problems(codes, weight)[0]
        if len(targets) > 1:
            raise ValueError("partial_fit learns all classes together: use multi_class='joint' or 'shared'")
        if stream is None:
            training = self._training(X, len(y))
            self._check_length(training, y)
            columns = 1 if targets[0].ndim == 1 else targets[0].shape[1]
            norm.check(len(training.names))
            stream = Stream.begin(
                training.kernels, training.samples, self.normalize, norm.for_kernels(len(training.names)),
                solver.eta, columns,
            )  # fmt: skip
            self._kind, batch = training.kind, training.samples
            self.kernel_names_ = np.array(training.names, dtype=object)
            self.kernels_ = stream.bound.kernels
        else:
            batch = new_samples(self, X, stream.bound, self._kind)
            if n_samples(batch) != len(y):
                raise ValueError(
                    f"Found input variables with inconsistent numbers of samples: {n_samples(batch)} and {len(y)}"
                )
        self.n_updates_ = stream.learn(batch, targets[0], weight, loss)
        self._stream = stream
        self.solver_, self.status_, self.intercept_ = solver.registered_as, "streaming", 0.0
        self.weights_ = stream.weights
        coef = stream.coef / stream.q
        self.dual_coef_ = coef if targets[0].ndim == 2 else coef[:, 0]
        self.support_ = np.arange(stream.coef.shape[0])
        self._active = active_kernels(self.weights_)
        self._bound, self._coef = stream.bound.restrict(self._active, self.dual_coef_)
        return self
