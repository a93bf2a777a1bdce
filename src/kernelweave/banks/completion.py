"""Kernels that some samples lack, completed in feature space by weighted samples that have them.

A *part* is what samples have or lack: the kernels of one view (or of several views together, for kernels on all of
these).  A *pattern* is the set of parts that a sample has.  Every part that a pattern lacks is completed from those it
has, by ridge regression in feature space (``_numerics/feature_ridge.py``), one solve for each pair of pattern and part.

With T the training samples that have a part and P the matrix whose rows are those of the identity for samples that
have it and ridge weights for the others, the completed kernels are ``K_j <- P K_j P'`` on all samples: positive
semidefinite by construction, so every solver and every certificate works on them as on any others.  Rows of samples
that lack a part are never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._components import check_choice
from .._numerics.feature_ridge import (
    PENALTIES,
    Centred,
    PenaltyChoice,
    Target,
    centred_gram,
    choose_penalty,
    ridge_weights,
)
from .._numerics.stopping import check_time
from .._typing import Array, Index
from ..kernels import Kernel, n_samples, resolve_kernels, take
from .bound import BoundKernels, MatrixRows, MissingViewSummary, Term
from .decide import Asked, Facts, keep
from .gram import Gram
from .memory import parse_bytes
from .normalise import Normaliser
from .parts import MeanScale, Part
from .power import Chain, Powers, packed_offsets

#: what ``missing`` may be
HOW = ("error", "mean", "predict")
Mask = NDArray[np.bool_]


def check_missing(missing: object) -> str:
    """Return the treatment of missing views, or raise a ValueError that lists what there is."""
    check_choice("missing", missing, HOW)
    return str(missing)


@dataclass
class Fill:
    """Samples that lack a part, and the weights they give to the training samples that have it."""

    rows: Index
    weights: Array


@dataclass
class Completion:
    """Parts of kernels that samples may lack, and what was learnt for completing them.

    Parameters
    ----------
    how : {"mean", "predict"}
    rows : list of index arrays
        For every part, the training samples that have it.
    patterns : bool array of shape (q, parts)
        Patterns of training samples that lack something.
    counts : int array of shape (q,)
        Training samples with each pattern.
    penalties, r2 : arrays of shape (q, parts)
        Penalty of the ridge regression (infinity is the mean), and how much of the part's variance is predicted when
        samples are left out in turn; NaN for parts that the pattern has.
    predictability : array of shape (parts,)
        R2 of each part from all parts that share no view with it; NaN where there are none.
    fills : list of Fill, or None
        Weights of the training samples that lack something; None once coefficients were spread over the samples of
        every part.
    parts : list of Part
    n, m : int
        Training samples and kernels.
    means : array of shape (parts, n, n), optional
        Mean kernels of the training samples, centred and scaled, zero where one of two lacks the part; made again from
        the parts where they are not kept.
    """

    how: str
    rows: list[Index]
    patterns: Mask
    counts: Index
    penalties: Array
    r2: Array
    predictability: Array
    fills: list[Fill] | None
    parts: list[Part]
    n: int
    m: int
    means: Array | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "means": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read completed kernels of 0.2.0 too, which had what was learnt in an object of its own."""
        vars(self).update({**vars(state["completion"]), **state} if "completion" in state else state)
        vars(self).pop("completion", None)

    @classmethod
    def learn(
        cls, how: str, parts: list[Part], means: Array, present: Mask, train: Index, apart: Mask, m: int
    ) -> Completion:
        """Choose penalties for every pattern among all samples, by the training samples alone, and complete them.

        ``means`` ``(parts, n, n)`` are the mean kernels, centred and scaled on the training samples that have the part,
        zero elsewhere; ``apart`` says which parts share no view.  Samples out of ``train`` are completed as new ones.
        """
        rows = [train[present[train, p]] for p in range(present.shape[1])]
        patterns, counts = np.unique(present[~present.all(axis=1)], axis=0, return_counts=True)
        shape = patterns.shape
        gone = [np.flatnonzero(~present[:, p]) for p in range(present.shape[1])]
        fills = [Fill(lack, np.empty((lack.size, have.size))) for lack, have in zip(gone, rows, strict=True)]
        made = cls(
            how, rows, patterns, counts, np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape[1], np.nan),
            fills, parts, len(present), m, means,
        )  # fmt: skip
        ranks: dict[int, dict[int, int]] = {}  # by part and number of predictors
        targets: dict[int, Target] = {}

        def choose(p: int, predictors: Mask, gram: Array) -> tuple[Centred, PenaltyChoice]:
            """Choose the penalty of a part, given the kernel of its predictors."""
            own = centred_gram(gram[np.ix_(rows[p], rows[p])])
            check_time(preparing=True)
            if p not in targets:
                targets[p] = Target.of(means[p][np.ix_(rows[p], rows[p])])
            # the best penalty hardly depends on more than the number of predictors: begin where a similar walk ended
            known, size = ranks.setdefault(p, {}), int(np.count_nonzero(predictors))
            near = known[min(known, key=lambda other: abs(other - size))] if known else None
            choice = choose_penalty(own.gram, targets[p], near)
            known[size] = len(PENALTIES) - 1 if choice.rank is None else choice.rank
            return own, choice

        gram = np.empty(means.shape[1:])  # of the pattern at hand
        for p in np.flatnonzero(apart.any(axis=1)).tolist():
            made.predictability[p] = choose(p, apart[p], made.predictors(means, apart[p], gram))[1].r2
        for q, pattern in enumerate(patterns):
            members = np.flatnonzero(np.all(present == pattern, axis=1))
            if how == "predict":
                made.predictors(means, pattern, gram)
            for p in np.flatnonzero(~pattern).tolist():
                at = np.searchsorted(fills[p].rows, members)
                if how != "predict":
                    made.penalties[q, p], made.r2[q, p] = np.inf, 0.0
                    fills[p].weights[at] = 1.0 / rows[p].size
                    continue
                own, choice = choose(p, pattern, gram)
                made.penalties[q, p], made.r2[q, p] = choice.penalty, choice.r2
                fills[p].weights[at] = ridge_weights(own, choice.penalty, gram[np.ix_(members, rows[p])])
        return made

    def predictors(self, means: Array, pattern: Mask, out: Array | None = None) -> Array:
        """Return the kernel that a pattern is predicted with: the mean of its parts' mean kernels."""
        total = np.empty(means.shape[1:]) if out is None else out
        total[:] = 0.0
        for p in np.flatnonzero(pattern):
            total += means[p]
        total /= max(1, int(np.count_nonzero(pattern)))
        return total

    def weights(self, pattern: Mask, p: int, means: Array, gram: Array, cross: Array) -> Array:
        """Return the weights over ``rows[p]`` of samples that lack part p, ``(n_new, len(rows[p]))``.

        ``gram`` is ``predictors(means, pattern)``, ``cross`` the same kernel between them and the training samples.
        """
        mine = self.rows[p]
        here = np.ix_(mine, mine)
        own = centred_gram(gram[here])
        # among those of the training samples
        known = np.flatnonzero(np.all(self.patterns == pattern, axis=1))
        if known.size:
            penalty = float(self.penalties[known[0], p])
        elif self.how == "mean":
            penalty = np.inf
        else:  # all penalties are tried: the answer must not depend on what came before
            penalty = choose_penalty(own.gram, Target.of(means[p][here])).penalty
        return ridge_weights(own, penalty, cross[:, mine])

    # ---- prediction ------------------------------------------------------------------------------------------------

    @property
    def kernels(self) -> list[Kernel]:
        """Settled kernels in the order of the weights; none where the user computes them."""
        placed = {
            j: kernel
            for part in self.parts
            for j, kernel in zip(part.members, part.bound.kernels, strict=False)
            if j >= 0
        }
        return [placed[j] for j in sorted(placed)] if len(placed) == self.m else []

    @property
    def completion(self) -> Completion:
        """Return what a function keeps of this: its coefficients are spread over the samples of every part."""
        return replace(self, fills=None)

    def missing_view_summary(self) -> MissingViewSummary:
        """Return the R2 of every part from the others, and a table of the patterns that lack something."""
        import pandas as pd

        names = [part.name for part in self.parts]
        table = pd.DataFrame(self.patterns, columns=names).assign(samples=self.counts)
        for p, name in enumerate(names):
            if np.any(~self.patterns[:, p]):
                table[f"R2 of {name}"] = self.r2[:, p]
        table = table.sort_values("samples", ascending=False, kind="stable", ignore_index=True)
        return MissingViewSummary(dict(zip(names, self.predictability.tolist(), strict=True)), table)

    def choose(self, kernels: Index) -> None:
        """Return nothing: what completes some kernels is learnt from these alone."""

    def restrict(self, kernels: Index, weights: Array, coef: Array) -> list[Term]:
        """Return a term for every part, on the samples that have it, with coefficients ``P' coef``."""
        terms, begin = [], 0
        for p, (part, rows) in enumerate(zip(self.parts, self.rows, strict=True)):
            if self.fills is None:
                spread, begin = coef[begin : begin + rows.size], begin + rows.size
            else:
                spread = coef[rows] + self.fills[p].weights.T @ coef[self.fills[p].rows]
            mine = np.flatnonzero(np.isin(part.members, kernels))
            index = np.asarray(part.members)[mine]
            own = np.zeros((*weights.shape[:-1], len(part.members)))
            own[..., mine] = weights[..., index]
            (term,) = part.bound.restrict(mine, own, spread)
            terms.append(replace(term, index=index, part=p))
        return terms

    def total(self, terms: list[Term], new: Any, dtype: Any = np.float64) -> Array:
        """Return the sum of some terms at new samples, completed where these lack a part."""
        present = np.stack([part.present(new) for part in self.parts], axis=1)
        out = np.zeros((present.shape[0], *terms[0].coef.shape[1:]))
        own: dict[int, Array] = {}  # values of the training samples, which the others' are mixtures of
        for term in terms:
            if not (np.any(term.weights) and np.any(term.coef)):
                continue
            here = np.flatnonzero(present[:, term.part])
            if here.size:
                out[here] += term.kernels.decision(take(new, here), term.weights, term.coef, dtype)
            if here.size < present.shape[0]:
                known = self.parts[term.part].bound.samples
                values = term.kernels.decision(known, term.weights, term.coef, dtype)
                own[term.part] = own.get(term.part, 0.0) + values
        if own and self.how == "mean":
            for p, values in own.items():
                out[~present[:, p]] += values.mean(axis=0)
        elif own:
            self._add_predicted(new, present, own, out)
        return out

    def _add_predicted(self, new: Any, present: Mask, own: dict[int, Array], out: Array) -> None:
        """Add what samples get from the parts that they lack, pattern by pattern."""
        incomplete = ~present[:, list(own)].all(axis=1)
        means = self.means
        if means is None:  # of the training samples, zero where one of two lacks the part
            means = self.means = np.zeros((len(self.parts), self.n, self.n))
            for p, (part, known) in enumerate(zip(self.parts, self.rows, strict=True)):
                total, everyone = np.zeros((known.size, known.size)), np.arange(known.size)
                for j, entries in part.raw(part.bound.samples):
                    total += part.bound.normaliser.train_block(j, entries, everyone, everyone)
                assert part.scale is not None
                means[p][np.ix_(known, known)] = part.scale(total / len(part.members), slice(None))
        for pattern in np.unique(present[incomplete], axis=0):
            rows = np.flatnonzero(np.all(present == pattern, axis=1))
            gram = self.predictors(means, pattern)
            cross = np.zeros((rows.size, self.n))
            has = np.flatnonzero(pattern).tolist()
            for p in has:
                part = self.parts[p]
                assert part.scale is not None
                mean = part.mean_kernel(take(new, rows))
                cross[:, self.rows[p]] += part.scale(mean, slice(None))
            cross /= max(1, len(has))
            for p, values in own.items():
                if not pattern[p]:
                    out[rows] += self.weights(pattern, p, means, gram, cross) @ values


def _part(
    kernels: Sequence[Kernel] | None,
    samples: Any,
    needs: tuple[int, ...],
    members: list[int],
    train: Index,
    normalize: str | None,
    center: bool,
) -> Part:
    """Bind the kernels that need the same views to the training samples that have these; nothing else is read."""
    if kernels is None:
        name, matrix = f"kernel {members[0]}", samples[members[0]]
        having = ~np.isnan(matrix).all(axis=1)
    else:
        name = " and ".join(samples.names[k] for k in needs)
        having = samples.present[:, list(needs)].all(axis=1)
    rows = train[having[train]]
    if rows.size < 2:
        raise ValueError(
            f"only {rows.size} of {train.size} training samples have {name!r}: leave it out, there is nothing to learn "
            "about it"
        )
    if kernels is None:
        normaliser = Normaliser.empty(normalize, center, 1, rows.size, [name])
        entries = np.array(matrix[np.ix_(rows, rows)], dtype=float)
        return Part(name, needs, members, Part.bind_matrix(entries, members[0], rows, normaliser))
    known = take(samples, rows).bare()
    settled = list(resolve_kernels([kernels[j] for j in members], known))
    if center:
        settled = [kernel.recentred(known) for kernel in settled]
    names = [kernel.name for kernel in settled]
    normaliser = Normaliser.empty(normalize, center, len(settled), n_samples(known), names)
    return Part(name, needs, members, BoundKernels(settled, known, normaliser))


def completed_bank(
    kernels: Sequence[Kernel] | None,
    samples: Any,
    how: str,
    *,
    normalize: str | None = "trace",
    center: bool = False,
    memory_budget: int | float | str | None = None,
    threads: int = 1,
    train: Index | None = None,
) -> Gram:
    """Bind kernels to samples of which some lack views, or complete matrices.

    The kernels of every part, those that need the same views, are stored on the samples that have it, then completed in
    place.

    Parameters
    ----------
    kernels : sequence of Kernel or None
        Expanded, not settled: widths are settled on the samples that have the view.  None where matrices are given.
    samples : Views or (m, n, n) array
        Samples that lack a matrix have rows and columns of NaN in it.
    how : {"mean", "predict"}
    train : index array, optional
        Samples that everything is learnt from; the others are completed as new samples are.  By default all.
    """
    from .._numerics.passes import mirror, pack_rows

    m, n = len(samples if kernels is None else kernels), len(samples[0] if kernels is None else samples)
    train = np.arange(n) if train is None else np.sort(train)
    members: dict[tuple[int, ...], list[int]] = {}  # kernels by the views that a sample must have for them
    for j in range(m):
        needs: tuple[int, ...] = (j,)
        if kernels is not None:
            columns = np.fromiter(kernels[j].looks_at(samples.shape[1]), dtype=np.intp)
            needs = tuple(np.unique(samples.view_of(columns)).tolist())
        members.setdefault(needs, []).append(j)
    needed = 8 * (m * (n * (n + 1) // 2) + (len(members) + 4) * n * n)
    facts = Facts(n, m, samples="incomplete", needed=needed, memory=parse_bytes(memory_budget))
    decision = keep(facts, Asked())
    if kernels is None and normalize == "cosine":
        raise ValueError(
            "normalize='cosine' needs k(x, x) of new samples, which precomputed rows do not hold"
        )
    parts = [
        _part(kernels, samples, needs, mine, train, normalize, center) for needs, mine in members.items()
    ]
    samples = MatrixRows(samples) if kernels is None else samples
    present = np.stack([part.present(samples) for part in parts], axis=1)
    offsets = packed_offsets(n)
    store = np.zeros((m, n * (n + 1) // 2))
    means = np.zeros((len(parts), n, n))
    for p, part in enumerate(parts):
        rows = np.flatnonzero(present[:, p])
        block = np.ix_(rows, rows)
        learnt_on = np.flatnonzero(np.isin(rows, train))
        full = np.zeros((n, n))
        total = np.zeros((rows.size, rows.size))
        for j, entries in part.raw(take(samples, rows)):
            full[block] = _normalised(part.bound.normaliser, j, entries, learnt_on)
            total += full[block]
            pack_rows(full, 0, offsets, store[part.members[j]])
        total /= len(part.members)
        part.scale = MeanScale.learn(total, learnt_on)
        means[p][block] = part.scale(total, learnt_on, total[:, learnt_on].mean(axis=1))
    apart = np.array([[not set(one.needs) & set(other.needs) for other in parts] for one in parts])
    completion = Completion.learn(how, parts, means, present, train, apart, m)
    assert completion.fills is not None
    for p, (part, fill) in enumerate(zip(parts, completion.fills, strict=True)):
        if fill.rows.size:
            for j in part.members:
                # P K P' in the place of a kernel that is zero for samples that lack it
                here, own = np.flatnonzero(present[:, p]), completion.rows[p]
                full = np.empty((n, n))
                for i, start in enumerate(offsets):
                    full[i, : i + 1] = store[j, start : start + i + 1]
                mirror(full, np.array([0, n]))
                cross = fill.weights @ full[np.ix_(own, here)]
                full[np.ix_(fill.rows, here)] = cross
                full[np.ix_(here, fill.rows)] = cross.T
                among = cross[:, np.searchsorted(here, own)] @ fill.weights.T
                full[np.ix_(fill.rows, fill.rows)] = 0.5 * (among + among.T)
                pack_rows(full, 0, offsets, store[j])
    bank = Gram(Powers(store, offsets, [Chain((j,), (0,), (0,)) for j in range(m)], threads=threads))
    bank.decision = decision
    bank.completed, bank.source = not bool(np.all(present)), completion
    return bank


def _normalised(normaliser: Normaliser, j: int, entries: Array, train: Index) -> Array:
    """Learn a kernel on the training samples among the rows, and normalise all rows by what was learnt."""
    means = entries[:, train].mean(axis=1) if normaliser.center else None
    diagonal = np.diagonal(entries).copy()
    normaliser.learn(j, diagonal[train], None if means is None else means[train])
    if train.size == entries.shape[0]:
        everyone = np.arange(train.size)
        return normaliser.train_block(j, entries, everyone, everyone)
    # rows that nothing is learnt from have means and lengths of their own
    everyone, all_rows = np.arange(entries.shape[0]), normaliser.restrict(np.array([j]))
    if means is not None:
        all_rows.row_means = means[None, :]
        assert all_rows.grand_means is not None
        diagonal = diagonal - 2.0 * means + all_rows.grand_means[0]
    if all_rows.diagonal is not None:
        all_rows.diagonal = np.where(diagonal > 1e-300, diagonal, np.inf)[None, :]
    return all_rows.train_block(0, entries, everyone, everyone)
