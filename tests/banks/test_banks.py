"""Every storage, normalisation, centring and precision against the naive tensor."""

from __future__ import annotations

import runpy
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.banks import (
    Bank,
    Computed,
    FeatureMatrix,
    Features,
    Gram,
    Powers,
    SideBySide,
    Storage,
    build_bank,
    support,
)
from kernelweave.banks.decide import thin
from kernelweave.exceptions import MemoryBudgetError
from kernelweave.losses import Hinge
from kernelweave.norms import L1
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, registry, solve

from .naive import FAMILIES, check_bank, check_passes, data, library_kernels, tensors

NORMALISATIONS = [
    pytest.param(mode, center, id=f"{mode}-{'centred' if center else 'plain'}")
    for mode in ("trace", "cosine", None)
    for center in (False, True)
]


def built(family, X, **options):
    bank = build_bank(library_kernels(family, X), X, **options)
    return bank, bank.source.normaliser


def matrices(bank: Bank) -> Powers:
    """The stored matrices of a bank of nothing else."""
    assert isinstance(bank, Gram)
    assert isinstance(bank.storage, Powers)
    return bank.storage


@pytest.mark.pairs
@pytest.mark.parametrize(("mode", "center"), NORMALISATIONS)
@pytest.mark.parametrize("storage", ["auto", "family", "dense", "lazy"])
@pytest.mark.parametrize("family", list(FAMILIES))
def test_every_storage_agrees_with_the_tensor(family, storage, mode, center):
    X, new = data()
    bank, _ = built(family, X, storage=storage, normalize=mode, center=center)
    check_bank(bank, tensors(family, X, new, mode, center)[0], 1e-10)


@pytest.mark.parametrize(("mode", "center"), NORMALISATIONS)
def test_explicit_features_agree_with_the_tensor(mode, center):
    X, new = data()
    bank, _ = built("features", X, storage="lowrank", normalize=mode, center=center)
    assert isinstance(bank, Features)
    assert isinstance(bank.storage, FeatureMatrix)
    check_bank(bank, tensors("features", X, new, mode, center)[0])


@pytest.mark.parametrize(("mode", "center"), NORMALISATIONS)
@pytest.mark.parametrize("family", ["doubling", "degrees", "mixed"])
def test_single_precision_stays_close(family, mode, center):
    X, new = data()
    bank, _ = built(family, X, storage="family", normalize=mode, center=center, dtype=np.float32)
    check_bank(bank, tensors(family, X, new, mode, center)[0], 3e-6)


def test_many_squarings_of_single_precision_stay_close():
    """Distances are stored, not a float32 kernel that would be squared twenty times."""
    X, _ = data(40)
    widths = 2.0 ** np.arange(-4, 7)
    bank = build_bank(list(kw.gaussian(widths)), X, normalize=None, storage="family", dtype=np.float32)
    assert matrices(bank).store.shape[0] == 1
    assert matrices(bank).store.dtype == np.float32
    distances = np.array([[np.sum((a - b) ** 2) for b in X] for a in X])
    tensor = np.array([np.exp(-distances / (2 * w**2)) for w in widths])
    check_bank(bank, tensor, 1e-6)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_the_answer(threads):
    X, new = data(33)
    bank, _ = built("mixed", X, storage="family", threads=threads)
    check_bank(bank, tensors("mixed", X, new, "trace", False)[0])


def test_small_blocks_give_the_same_answers(monkeypatch):
    monkeypatch.setattr(Storage, "block_entries", 50)
    monkeypatch.setattr("kernelweave.banks.build.BLOCK_ENTRIES", 100)
    monkeypatch.setattr("kernelweave.banks.power.MIXED_TO_MULTIPLY", 10)
    X, new = data()
    for storage in ("lazy", "family"):
        for center in (False, True):
            bank, _ = built("mixed", X, storage=storage, center=center)
            check_bank(bank, tensors("mixed", X, new, "trace", center)[0], 1e-10)


# ---- which storage -------------------------------------------------------------------------------------------------


def test_families_store_one_matrix_a_chain():
    X, _ = data()
    triangle = 21 * 22 // 2
    bank, _ = built("doubling", X, storage="family")
    assert matrices(bank).nbytes == bank.nbytes == 8 * triangle
    dense, _ = built("doubling", X, storage="dense")
    assert dense.nbytes == 4 * 8 * triangle
    single, _ = built("doubling", X, storage="family", dtype=np.float32)
    assert single.nbytes == 4 * triangle
    # centring breaks the powers: every kernel has its own matrix
    centred, _ = built("doubling", X, storage="family", center=True)
    assert centred.nbytes == dense.nbytes


def test_auto_keeps_features_of_low_rank_and_matrices_of_the_rest():
    X, _ = data(40)
    bank, _ = built("mixed", X)
    storage = bank.storage
    assert isinstance(storage, SideBySide)
    kinds = {type(part): list(index) for part, index in zip(storage.parts, storage.kernels, strict=True)}
    assert sorted(kinds[Features]) == [0, 2, 6]
    assert sorted(kinds[Powers]) == [1, 3, 4, 5, 7]
    assert bank.nbytes == sum(part.nbytes for part in storage.parts)
    # 10 features of 3 columns squared are more than a quarter of 21 samples
    small = built("mixed", data(21)[0])[0].storage
    assert sorted(j for j, part in enumerate(small.part_of) if isinstance(small.parts[part], Features)) == [
        0,
        6,
    ]


def test_lowrank_refuses_kernels_without_features_and_says_which():
    X, _ = data()
    with pytest.raises(ValueError, match=r"'gaussian\(width=1\)'.*nystroem.*storage='auto'"):
        built("mixed", X, storage="lowrank")


def test_unknown_options():
    X, _ = data()
    with pytest.raises(ValueError, match="auto, family, dense, lowrank, lazy"):
        built("doubling", X, storage="packed")
    with pytest.raises(ValueError, match="float64 or float32"):
        built("doubling", X, dtype=np.int32)
    with pytest.raises(ValueError, match="'trace', 'cosine' or None"):
        built("doubling", X, normalize="max")


# ---- memory --------------------------------------------------------------------------------------------------------


def test_a_bank_beyond_the_budget_is_refused_with_bytes_and_ways_out():
    X, _ = data()
    n = 21
    needed = 4 * 8 * (n * (n + 1) // 2) + 16 * n * n
    with pytest.raises(MemoryBudgetError) as caught:
        built("doubling", X, storage="dense", memory_budget=needed - 1)
    message = str(caught.value)
    assert f"{needed:,} bytes" in message
    assert f"{needed - 1:,} bytes" in message
    # the way that costs least comes first
    places = [message.index(way) for way in ("storage='auto'", "float32", "raise memory_budget", "nystroem")]
    assert places == sorted(places)
    assert isinstance(caught.value, MemoryError)
    bank, _ = built("doubling", X, storage="dense", memory_budget=needed)
    assert bank.nbytes + 16 * n * n == needed


def test_auto_computes_what_does_not_fit():
    X, new = data(40)
    n = 40
    working = 16 * n * n
    features = 8 * n * (1 + 6 + 3)
    tight = working + features + 8 * (n * (n + 1) // 2)
    bank, _ = built("mixed", X, memory_budget=tight)
    assert {type(part) for part in bank.storage.parts} == {Features, Computed}
    check_bank(bank, tensors("mixed", X, new, "trace", False)[0], 1e-10)
    with pytest.raises(MemoryBudgetError, match=f"{working + features:,} bytes"):
        built("mixed", X, memory_budget=working)
    lazy, _ = built("doubling", X, storage="lazy", memory_budget=working)
    assert isinstance(lazy.storage, Computed)
    assert lazy.nbytes == 0


@pytest.mark.parametrize(
    ("written", "means"),
    [("2GB", 2 * 10**9), ("1.5 MiB", 1.5 * 2**20), ("300k", 300_000), (5e6, 5_000_000), ("7", 7)],
)
def test_budgets_in_words(written, means):
    from kernelweave.banks.memory import parse_bytes

    assert parse_bytes(written) == means


@pytest.mark.parametrize("nonsense", ["plenty", "2 GBB", -5, 0, [1], float("nan")])
def test_nonsense_budgets_are_refused(nonsense):
    from kernelweave.banks.memory import parse_bytes

    with pytest.raises(ValueError, match="memory_budget"):
        parse_bytes(nonsense)


def test_default_budget_is_a_positive_number():
    from kernelweave.banks.memory import parse_bytes

    assert parse_bytes(None) > 10**8


# ---- passes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["auto", "family", "dense", "lazy"])
def test_passes_are_what_was_read(storage):
    X, _ = data(40)
    bank, _ = built("mixed", X, storage=storage)
    assert bank.passes == 0  # building is not a pass
    check_passes(bank)


class Plain(Storage):
    """A storage that only knows its entries."""

    def __init__(self, tensor):
        super().__init__(tensor.shape[1], tensor.shape[0])
        self.tensor = tensor

    def block(self, rows, cols, kernels):
        return self.tensor[np.ix_(kernels, rows, cols)]


@pytest.mark.parametrize("entries", [4_000_000, 50, 7, 1])
def test_a_storage_that_only_knows_its_entries_answers_every_question(entries):
    """In temporary blocks of so many entries, or of one row where that is more."""
    X, new = data()
    tensor, _ = tensors("mixed", X, new, "trace", False)
    storage = Plain(tensor)
    storage.block_entries = entries
    bank = Gram(storage)
    check_bank(bank, tensor)
    check_passes(bank)
    quad, mixed = bank.judged(np.eye(8)[3], X[:, 0])
    np.testing.assert_allclose(quad, bank.quad(X[:, 0]))
    np.testing.assert_allclose(mixed, tensor[3] @ X[:, 0])
    np.testing.assert_allclose(bank.factors().combine(np.ones(8)), tensor.sum(axis=0), atol=1e-9)


def test_fit_on_a_storage_of_ones_own_is_that_on_the_matrices():
    """A storage that has ``block`` alone, asked for no more than the passes say; new samples are among its own."""
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.repeat([-1.0, 1.0], 30)
    X += 0.7 * y[:, None]
    tensor = np.array([np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / (2 * w**2)) for w in (0.5, 1.0, 2.0)])
    train, test = np.arange(5, 55), np.r_[0:5, 55:60]
    everything = Gram(Plain(tensor))
    problem = MKLProblem(everything.among(train), Hinge(), L1(), y[train], C=2.0)
    solution = solve(problem, registry["newton"](), Stop(tol=1e-6))
    clf = MKLClassifier("precomputed", normalize=None, C=2.0, tol=1e-6, solver="newton")
    clf.fit(tensor[:, train][:, :, train], y[train])
    assert solution.converged
    assert solution.certificate.primal == pytest.approx(clf.certificate_.primal, rel=2e-6)
    assert everything.passes == pytest.approx(problem.passes * (50 / 60) ** 2)
    beta = np.zeros(60)
    beta[train] = solution.point.beta
    values = everything.mix_product(solution.point.weights, beta) + solution.certificate.intercept
    found = clf.decision_function(tensor[:, test][:, :, train])
    np.testing.assert_allclose(values[test], found, atol=1e-3)


def test_the_example_of_a_storage_of_ones_own(monkeypatch):
    from matplotlib import pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    found = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "plot_own_storage.py"))
    assert found["solution"].certificate.relative_gap <= 1e-3
    test = found["test"]
    assert np.mean(np.sign(found["values"][test]) == found["y"][test]) > 0.8


def test_fields_compose_in_any_order():
    X, new = data(24)
    tensor = tensors("mixed", X, new, "trace", False)[0]
    bank, _ = built("mixed", X, storage="family")
    factors, some, chosen = np.linspace(0.5, 3.0, 8), np.array([1, 4, 5, 9, 17, 2, 20, 23]), [5, 0, 3, 3]
    origin = np.array([0, 3, 6])  # among some: samples 1, 9 and 20
    share = np.zeros(24)
    share[some[origin]] = 1 / 3
    shift = np.eye(24) - np.outer(np.ones(24), share)
    moved = (shift @ tensor @ shift.T) * factors[:, None, None]
    expected = moved[chosen][:, some][:, :, some]
    for seen in (
        bank.recentred(some[origin]).rescaled(factors).select(chosen).among(some),
        bank.among(some).select(chosen).rescaled(factors[chosen]).recentred(origin),
        bank.rescaled(factors).select([5, 0, 3]).among(some).recentred(origin).select([0, 1, 2, 2]),
        bank.recentred(np.arange(9)).among(some[::-1]).among(np.arange(8)[::-1]).recentred(origin)
        .rescaled(factors**2).rescaled(1 / factors).select(chosen),
    ):  # fmt: skip
        assert seen.storage is bank.storage
        check_bank(seen, expected)
        check_passes(seen)


def test_passes_of_features_and_views():
    X, _ = data()
    bank, _ = built("features", X, storage="lowrank")
    check_passes(bank)
    whole, _ = built("mixed", X, storage="family")
    check_passes(whole.select([1, 4, 5]))
    check_passes(whole.rescaled(np.arange(1.0, 9.0)))
    recentred = whole.recentred(np.arange(5))
    check_passes(recentred)


# ---- views ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["auto", "family", "lazy"])
def test_selection(storage):
    X, new = data(40)
    tensor = tensors("mixed", X, new, "trace", False)[0]
    bank, _ = built("mixed", X, storage=storage)
    chosen = [5, 0, 3, 6]
    part = bank.select(chosen)
    assert part.storage is bank.storage
    check_bank(part, tensor[chosen], 1e-10)
    check_bank(part.select([2, 0, 1]), tensor[[3, 5, 0]], 1e-10)
    check_bank(bank.select([1, 6, 1, 0]), tensor[[1, 6, 1, 0]], 1e-10)  # a kernel twice is two kernels


def test_rescaled_and_recentred():
    X, new = data(24)
    tensor = tensors("mixed", X, new, "trace", False)[0]
    bank, _ = built("mixed", X, storage="family")
    factors = np.linspace(0.5, 3.0, 8)
    check_bank(bank.rescaled(factors), tensor * factors[:, None, None])
    assert bank.rescaled(factors).nbytes == bank.nbytes
    samples = np.array([0, 3, 4, 11])
    share = np.zeros(24)
    share[samples] = 1 / 4
    shift = np.eye(24) - np.outer(np.ones(24), share)  # phi(x) - mean over the samples
    check_bank(bank.recentred(samples), shift @ tensor @ shift.T)
    # a translation: centring twice is centring once, wherever the first centre was
    twice = bank.recentred(np.arange(10)).recentred(samples)
    check_bank(twice, shift @ tensor @ shift.T)


def test_sums_by_columns_are_exact_where_coefficients_cancel():
    """Linear kernels far from the origin, and a constant one: forms of coefficients of which next to nothing is left."""
    rng = np.random.default_rng(0)
    n = 30
    X = 1000.0 + rng.normal(size=(n, 3))
    kernels = [kw.gaussian(1.0), kw.linear(), kw.linear().on([1]), kw.gaussian(1e20)]
    bank = build_bank(kernels, X)
    bound = bank.source
    normaliser = bound.normaliser
    exact = bank.by_columns(bound.exact_columns())
    tensor = bank.block(np.arange(n), np.arange(n), np.arange(4))
    check_bank(exact, tensor, 1e-10)
    check_passes(exact)
    # orthogonal to the columns and to a constant, up to a trillionth
    basis = np.linalg.qr(np.column_stack([X, np.ones(n), rng.normal(size=(n, 1))]))[0]
    for shape in ((n,), (n, 2)):
        beta = 1e3 * basis[:, 4] + 1e-9 * rng.normal(size=n)
        beta = beta if len(shape) == 1 else np.column_stack([beta, -2.0 * beta])
        forms, whole = exact.quad(beta), bank.quad(beta)
        columns = np.atleast_2d(beta.T)
        for j, chosen in ((1, X), (2, X[:, [1]]), (3, np.ones((n, 1)))):
            scale = Fraction(float(normaliser.scale[j])) if j < 3 else Fraction(float(tensor[3, 0, 0]))
            dots = [
                sum(Fraction(float(x)) * Fraction(float(b)) for x, b in zip(column, row, strict=True))
                for column in chosen.T
                for row in columns
            ]
            expected = float(scale * sum(dot**2 for dot in dots))
            assert forms[j] == pytest.approx(expected, rel=1e-12)
            assert abs(whole[j] - expected) > 1e-6 * expected  # which is what it is for
        assert forms[0] == whole[0]
    assert np.all(exact.rounding_lengths()[1:] == 0.0)
    assert np.all(exact.rounding_lengths()[0] > 0.0)
    # columns of another kernel than the bank's are not taken, and without any there is nothing to sum
    other = bank.rescaled(np.full(4, 2.0)).by_columns(bound.exact_columns())
    assert set(other.columns) == {3}
    assert build_bank([kw.gaussian(1.0)], X).by_columns({}) is None
    # numbers that cannot be taken apart are summed as they are
    one, weights = np.eye(n)[3], np.array([0.0, 1.0, 0.0, 0.0])
    expected = 1e301 * bank.mix_product(weights, one)
    np.testing.assert_allclose(exact.mix_product(weights, 1e301 * one), expected, rtol=1e-9)


@pytest.mark.parametrize("storage", ["auto", "family", "lazy"])
def test_factors_rebuild_the_kernels(storage):
    X, new = data()
    bank, _ = built("mixed", X, storage=storage)
    factors = bank.factors()
    check_bank(factors, tensors("mixed", X, new, "trace", False)[0], 1e-9)
    assert factors.ranks[0] == 1  # linear on one column
    assert factors.ranks[6] == 3
    assert factors.factors() is factors
    times = np.linspace(0.5, 3.0, 8)
    other = bank.rescaled(times)
    check_bank(other.factors(), tensors("mixed", X, new, "trace", False)[0] * times[:, None, None], 1e-9)
    assert other.factors() is other.factors()


def test_thin_banks_have_many_kernels_of_small_rank():
    X, _ = data(40)
    many = Features(FeatureMatrix(np.random.default_rng(0).normal(size=(12, 60)), range(0, 61, 3)))
    assert thin(many.n, many.m, many.decision.rank)  # 20 kernels of rank 3 on 12 samples
    for starts in ([0, 30, 60], [0, 20, *range(21, 61)]):
        other = Features(FeatureMatrix(np.ones((12, 60)), starts))
        assert not thin(other.n, other.m, other.decision.rank)
    assert built("mixed", X)[0].decision.rank is None


def test_support():
    np.testing.assert_array_equal(support(np.array([0.0, 1.0, 0.0, -2.0])), [1, 3])
    np.testing.assert_array_equal(support(np.array([[0.0, 0.0], [0.0, 3.0], [1.0, 0.0]])), [1, 2])


# ---- sparse features -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "center"), NORMALISATIONS)
@pytest.mark.parametrize("storage", ["auto", "lowrank", "family", "lazy"])
def test_sparse_samples(storage, mode, center):
    rng = np.random.default_rng(3)
    dense = np.where(rng.uniform(size=(30, 6)) < 0.3, rng.normal(size=(30, 6)), 0.0)
    dense[:, 0] += 1.0  # no empty row: its cosine would not be defined
    tensor = []
    for columns in (range(6), (0, 2)):
        part = dense[:, list(columns)]
        K = part @ part.T
        if center:
            H = np.eye(30) - 1 / 30
            K = H @ K @ H
        if mode == "trace":
            K = K * 30 / np.trace(K)
        elif mode == "cosine":
            K = K / np.sqrt(np.outer(np.diagonal(K), np.diagonal(K)))
        tensor.append(K)
    X = sp.csr_matrix(dense)
    kernels = kw.resolve_kernels(kw.expand_kernels([kw.linear(), kw.linear().on([0, 2])], kw.Schema.of(X)), X)
    bank = build_bank(kernels, X, storage=storage, normalize=mode, center=center)
    check_bank(bank, np.array(tensor))
    if storage == "lowrank" and not center:
        assert sp.issparse(bank.features)  # centring fills the zeros, nothing else does


def test_sparse_and_dense_features_are_one_bank():
    rng = np.random.default_rng(4)
    dense = np.where(rng.uniform(size=(15, 9)) < 0.4, rng.normal(size=(15, 9)), 0.0)
    starts, scale = [0, 4, 4, 5, 9], np.array([1.0, 2.0, 0.5, 3.0])  # the second kernel has no feature at all
    tensor = np.array(
        [s * dense[:, a:b] @ dense[:, a:b].T for a, b, s in zip(starts[:-1], starts[1:], scale, strict=True)]
    )
    for features in (dense, sp.csr_matrix(dense), dense.astype(np.float32).astype(float)):
        bank = Features(FeatureMatrix(features, starts, scale))
        check_bank(bank, tensor, 1e-6 if features is not dense and not sp.issparse(features) else 1e-11)
        assert list(bank.ranks) == [4, 0, 1, 4]
    single = Features(FeatureMatrix(dense, range(10)))  # rank one each: a shortcut of its own
    check_bank(single, np.array([np.outer(z, z) for z in dense.T]))
    trailing = Features(FeatureMatrix(dense, [0, 9, 9]))
    check_bank(trailing, np.array([dense @ dense.T, np.zeros((15, 15))]))


# ---- new rows ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "center"), NORMALISATIONS)
@pytest.mark.parametrize("family", list(FAMILIES))
def test_new_rows(family, mode, center):
    X, new = data()
    kernels = library_kernels(family, X)
    bound = build_bank(kernels, X, normalize=mode, center=center).source
    tensor, cross = tensors(family, X, new, mode, center)
    np.testing.assert_allclose(bound.cross(new), cross, atol=1e-10 * np.abs(cross).max())
    np.testing.assert_allclose(bound.cross(X), tensor, atol=1e-10 * np.abs(tensor).max())
    rng = np.random.default_rng(5)
    m = len(kernels)
    coef = np.where(rng.uniform(size=21) < 0.5, rng.normal(size=21), 0.0)
    columns = np.stack([coef, rng.normal(size=21)], axis=1)
    shared, own = rng.uniform(size=m) * (np.arange(m) != 1), rng.uniform(size=(2, m))
    scale = 1e-10 * np.abs(cross).max() * m * 21
    single = np.einsum("j,jai,i->a", shared, cross, coef)
    several = np.einsum("j,jai,ik->ak", shared, cross, columns)
    each = np.einsum("kj,jai,ik->ak", own, cross, columns)
    np.testing.assert_allclose(bound.decision(new, shared, coef), single, atol=scale)
    np.testing.assert_allclose(bound.decision(new, shared, columns), several, atol=scale)
    np.testing.assert_allclose(bound.decision(new, own, columns), each, atol=scale)
    # after cutting down to what is used the answers are the same
    active = np.flatnonzero(shared)
    (small,) = bound.restrict(active, shared, coef)
    np.testing.assert_allclose(small.kernels.decision(new, small.weights, small.coef), single, atol=scale)
    assert len(small.kernels.kernels) == m - 1
    if not center:
        assert len(small.kernels.samples) == np.count_nonzero(coef)


def test_new_rows_in_blocks(monkeypatch):
    monkeypatch.setattr("kernelweave.banks.bound.BLOCK_ENTRIES", 50)
    X, new = data()
    kernels = library_kernels("mixed", X)
    bound = build_bank(kernels, X, center=True).source
    cross = tensors("mixed", X, new, "trace", True)[1]
    coef, weights = np.linspace(-1, 1, 21), np.linspace(0, 1, 8)
    got = bound.decision(new, weights, coef)
    np.testing.assert_allclose(got, np.einsum("j,jai,i->a", weights, cross, coef), atol=1e-9)


def test_the_normaliser_of_training_is_not_changed_by_prediction():
    X, new = data()
    kernels = library_kernels("mixed", X)
    bound = build_bank(kernels, X, normalize="cosine", center=True).source
    normaliser = bound.normaliser
    kept = [np.array(part) for part in (normaliser.scale, normaliser.row_means, normaliser.diagonal)]
    (term,) = bound.restrict(np.array([0, 2]), np.ones(8), np.eye(21)[3])
    term.kernels.decision(new, term.weights, term.coef)
    for before, after in zip(
        kept, (normaliser.scale, normaliser.row_means, normaliser.diagonal), strict=True
    ):
        np.testing.assert_array_equal(before, after)


# ---- degenerate kernels --------------------------------------------------------------------------------------------


def test_kernels_that_vanish_on_the_training_samples_stay_at_zero():
    X = np.zeros((10, 2))
    X[:, 1] = np.arange(10.0)
    for storage in ("family", "dense", "lazy", "auto", "lowrank"):
        bank, normaliser = _build([kw.linear().on(1), kw.linear().on(0)], X, storage=storage)
        assert normaliser.scale[1] == 0.0
        np.testing.assert_array_equal(bank.combine(np.array([0.0, 1.0])), np.zeros((10, 10)))
        np.testing.assert_allclose(bank.diag()[0].mean(), 1.0)
        bank, _ = _build([kw.linear().on(1)], X, storage=storage, normalize="cosine")
        expected = np.ones((10, 10))
        expected[0] = expected[:, 0] = 0.0  # sample 0 is zero
        np.testing.assert_allclose(bank.combine(np.ones(1)), expected)
    bank, _ = _build([kw.gaussian(1.0).on(0)], X, center=True)
    np.testing.assert_array_equal(bank.combine(np.ones(1)), np.zeros((10, 10)))


@pytest.mark.parametrize(("mode", "center"), NORMALISATIONS)
@pytest.mark.parametrize("storage", ["auto", "family", "dense", "lazy", "lowrank"])
def test_a_kernel_whose_sums_would_overflow_is_refused_by_name(storage, mode, center):
    """Entries of 1e150 are finite, their squares and sums in a certificate need not be; 1e120 are no trouble."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    specs = [kw.linear().on(0), kw.linear().on(1)]
    options = {"storage": storage, "normalize": mode, "center": center}
    with pytest.raises(
        ValueError, match=r"kernel .*1.* overflows on the training samples: scale the features"
    ):
        _build(specs, X * [1.0, 1e75], **options)
    large, _ = _build(specs, X * [1.0, 1e60], **options)
    plain, _ = _build(specs, X, **options)
    size = [1.0, 1e120 if mode is None else 1.0]
    np.testing.assert_allclose(large.diag(), plain.diag() * np.array(size)[:, None], rtol=1e-9)


def _build(specs, X, **options):
    kernels = kw.resolve_kernels(kw.expand_kernels(specs, kw.Schema.of(X)), X)
    bank = build_bank(kernels, X, **options)
    return bank, bank.source.normaliser


def test_one_sample_and_one_kernel():
    X = np.array([[1.0, 2.0]])
    for storage in ("auto", "family", "dense", "lazy"):
        bank, _ = _build([kw.gaussian(1.0), kw.linear()], X, storage=storage)
        np.testing.assert_allclose(bank.combine(np.array([1.0, 2.0])), [[3.0]])
        np.testing.assert_allclose(bank.quad(np.array([2.0])), [4.0, 4.0])
