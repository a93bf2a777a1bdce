"""The rules that decide how kernels are kept and which solver runs, on facts alone: no data, no kernels."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from kernelweave import kernels as kw
from kernelweave.banks import ArrayRows, build_bank
from kernelweave.banks.decide import (
    KEEPING,
    KNOWN,
    RULES,
    SOLVING,
    Abilities,
    Asked,
    Case,
    Decision,
    Facts,
    Split,
    decide,
    keep,
    model_bytes,
)
from kernelweave.banks.facts import facts_of_bank, facts_of_kernels
from kernelweave.exceptions import MemoryBudgetError
from kernelweave.losses import make_loss
from kernelweave.losses import registry as losses
from kernelweave.norms import make_norm
from kernelweave.norms import registry as norms
from kernelweave.solvers import abilities, choose_solver, registry

HINGE = abilities(make_loss("hinge"), make_norm("l1"))
LOGISTIC = abilities(make_loss("logistic"), make_norm(1.5))
SQUARED = abilities(make_loss("squared"), make_norm("l1"))
MEAN = abilities(make_loss("hinge"), make_norm("uniform"))
MAXIMUM = abilities(make_loss("logistic"), make_norm("max"))
SUBSETS = abilities(make_loss("hinge"), norms["at_most"](2))
SOFTMAX = abilities(make_loss("multinomial"), make_norm("l1"))


def matrices(n=2000, m=110, chains=None, **others):
    """Kernels without features."""
    chains = m if chains is None else chains
    split = Split(matrices=m, chains=chains)
    known = {"unranked": m, "without": "gaussian", "can": HINGE, "memory": 12e9, "process_memory": 12e9}
    return Facts(n, m, every=split, own=split, low=split, none=split, **{**known, **others})


def features(n=2000, m=10, rank=20, **others):
    """Kernels that all have so many features, in memory where these are few."""
    all_of_them, nothing = Split(m, 8 * n * m * rank, 0, 0), Split(matrices=m, chains=m)
    splits = {"every": all_of_them, "none": nothing}
    splits |= {"own": all_of_them if rank <= n else nothing, "low": all_of_them if 4 * rank <= n else nothing}
    known = {"can": LOGISTIC, "memory": 12e9, "process_memory": 12e9}
    return Facts(n, m, rank=rank, columns=m * rank, **splits, **{**known, **others})


def both(n=2000, m=10, rank=20, **others):
    """Half of the kernels with features."""
    half, known = m // 2, {"can": HINGE, "memory": 12e9, "process_memory": 12e9}
    split = Split(half, 8 * n * half * rank, m - half, m - half)
    nothing = Split(matrices=m, chains=m)
    ranks = {"rank": rank, "columns": half * rank, "unranked": m - half, "without": "gaussian"}
    return Facts(n, m, every=split, own=split, low=split, none=nothing, **{**ranks, **known, **others})


def triangle(n):
    return 8 * n * (n + 1) // 2


def rules(facts, **asked):
    return decide(facts, Asked(**asked)).rules


def kept(facts, **asked):
    return keep(facts, Asked(**asked)).rules[0]


def solver(facts, **asked):
    return decide(facts, Asked(**asked)).solver


# ---- the sentence that a fit prints --------------------------------------------------------------------------------


def test_a_decision_says_what_was_decided_and_why():
    found = decide(matrices(), Asked())
    assert found == Decision(
        "newton", "gram", "family", "host", "float64", 110 * triangle(2000) + 16 * 2000**2, found.reason,
        ("packed matrices", "second order"), True, "float64", 0, None, found.kept_reason,
    )  # fmt: skip
    assert str(found) == (
        "newton on packed matrices: n = 2,000, 110 kernels in 1.8 GB of 12.0 GB; second-order steps take the "
        "fewest passes over the kernels"
    )
    # one of them is not several
    alone = decide(replace(matrices(), m=1, none=Split(0, 0, 1, 1), low=Split(0, 0, 1, 1)), Asked())
    assert "n = 2,000, 1 kernel in" in str(alone)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_is_whole(rule):
    assert rule.name
    assert rule.when
    assert rule.because
    case = Case(features(needed=10, block_bytes=1, height=3), Asked(solver="svrg"))
    assert "{" not in rule.because.format(case)
    if rule in KEEPING:
        assert rule.words
        assert rule.representation in ("gram", "features")
        assert rule.storage in ("family", "dense", "lowrank", "lazy", "stream", "products")
        assert not rule.size or isinstance(getattr(case, rule.size), int)
        assert not rule.dtype or getattr(case, rule.dtype) in ("float64", "float32", "float16")
    else:
        assert rule.solver in registry or rule.name == "as asked"


def test_names_of_rules_are_unique():
    assert len({rule.name for rule in RULES}) == len(RULES) == len(KEEPING) + len(SOLVING)


# ---- on the host, matrices -----------------------------------------------------------------------------------------


def test_matrices_are_packed_up_to_the_last_byte():
    n, chains = 300, 5
    needed = chains * triangle(n) + 16 * n**2
    facts = matrices(n, 9, chains, can=MAXIMUM, memory=needed)
    assert kept(facts) == "packed matrices"
    assert keep(facts, Asked()).storage == "family"
    assert keep(facts, Asked()).bytes == needed
    assert kept(replace(facts, memory=needed - 1)) == "computed entries"
    assert kept(replace(facts, memory=16 * n**2)) == "computed entries"
    with pytest.raises(MemoryBudgetError, match="raise memory_budget"):
        keep(replace(facts, memory=16 * n**2 - 1), Asked())
    # single precision halves the matrices, not what works on them
    single = chains * triangle(n) // 2 + 16 * n**2
    assert kept(replace(facts, memory=single), dtype="float32") == "packed matrices"
    assert kept(replace(facts, memory=single - 1), dtype="float32") == "computed entries"
    # without powers, and where dense is asked for, every kernel has a matrix
    each = 9 * triangle(n) + 16 * n**2
    assert kept(replace(facts, memory=each - 1, factors=False)) == "computed entries"
    found = keep(replace(facts, memory=each, factors=False), Asked())
    assert (found.rules[0], found.storage) == ("packed matrices", "dense")
    assert keep(replace(facts, memory=each), Asked(storage="dense")).storage == "dense"
    with pytest.raises(MemoryBudgetError, match="storage='auto'"):
        keep(replace(facts, memory=each - 1), Asked(storage="dense"))
    with pytest.raises(MemoryBudgetError, match="dtype='float32'"):
        keep(replace(facts, memory=needed - 1), Asked(storage="family"))
    # a solver that mixes nothing has no need of the working memory, but of features where it knows nothing else
    alone = replace(facts, memory=chains * triangle(n))
    assert kept(alone, solver="working_set", mixes=False) == "packed matrices"
    below = replace(facts, memory=chains * triangle(n) - 1)
    assert kept(below, solver="working_set", mixes=False) == "computed entries"
    made = 2 * 9 * 8 * n**2
    assert kept(replace(facts, memory=made), solver="lbfgs", mixes=False) == "computed entries"
    with pytest.raises(MemoryBudgetError, match="solver='auto', which factorises no kernel"):
        keep(replace(facts, memory=made - 1), Asked("lbfgs", mixes=False))
    wide = replace(facts, memory=made - 1, unranked=0, rank=1000, columns=9000)
    with pytest.raises(MemoryBudgetError, match="storage='lowrank', which takes sparse features"):
        keep(wide, Asked("lbfgs", mixes=False))


def test_second_order_models_that_do_not_fit_are_refused_with_another_solver():
    asked = Asked("proximal_newton", mixes=False)
    room = model_bytes(10 * 20)
    fits = features(2000, 10, 20, can=LOGISTIC, memory=room + 8 * 2000 * 200)
    assert keep(fits, asked).rules == ("features for sums",)
    with pytest.raises(
        MemoryBudgetError, match=r"model of 200 features.*solver='lbfgs'; solver='block_descent'"
    ):
        keep(replace(fits, memory=room - 1), asked)
    assert keep(replace(fits, memory=room - 1), Asked("lbfgs", mixes=False)).rules
    # under a norm that chooses kernels one at a time is enough, and kernels without features get as many as samples
    corners = abilities(make_loss("logistic"), make_norm("l1"))
    few = replace(fits, can=corners, memory=model_bytes(20))
    assert keep(few, asked).storage == "stream"
    with pytest.raises(MemoryBudgetError, match="model of 20 features"):
        keep(replace(few, memory=model_bytes(20) - 1), asked)
    with pytest.raises(MemoryBudgetError, match="model of 2,000 features"):
        keep(matrices(can=corners, memory=model_bytes(2000) - 1), asked)
    # where the solver is open and would be this one, the kernels are mixed instead
    coupled = abilities(make_loss("cox"), make_norm("l1"))
    wide = features(4000, 3, 900, can=coupled, memory=model_bytes(4000))
    assert rules(wide) == ("features for blocks", "sums over features, with corners")
    less = features(1000, 3, 1000, can=coupled, memory=model_bytes(1000))
    assert kept(less) == "features for blocks"
    assert kept(replace(less, memory=model_bytes(1000) - 1)) == "packed matrices"
    # on a device it is the memory of this process that counts
    there = replace(wide, place="device", process_memory=model_bytes(900) - 1)
    with pytest.raises(MemoryBudgetError, match="fewer features"):
        keep(there, Asked())


def test_entries_are_computed_where_that_is_asked_for():
    found = keep(matrices(), Asked(storage="lazy"))
    assert (found.rules, found.storage, found.bytes) == (("computed entries",), "lazy", 16 * 2000**2)


@pytest.mark.parametrize("n", [3000, 9000])
def test_working_sets_need_memory_for_some_samples(n):
    least = min(n, 4000)
    facts = matrices(n, can=HINGE, memory=16 * n**2)
    assert kept(facts) == "computed entries"
    smaller = replace(facts, memory=16 * n**2 - 1)
    if n <= 4000:  # there is no smaller set
        with pytest.raises(MemoryBudgetError):
            keep(smaller, Asked())
        return
    found = decide(smaller, Asked())
    assert found.rules == ("working sets", "a mixed kernel of some samples")
    assert (found.solver, found.whole, found.bytes) == ("working_set", False, 16 * least**2)
    assert kept(replace(facts, memory=16 * least**2)) == "working sets"
    with pytest.raises(MemoryBudgetError):
        keep(replace(facts, memory=16 * least**2 - 1), Asked())
    # a solver that is asked for, or a loss without working sets, needs all of it
    for asked, can in ((Asked(solver="newton"), HINGE), (Asked(), MAXIMUM), (Asked(storage="family"), HINGE)):
        with pytest.raises(MemoryBudgetError):
            keep(replace(smaller, can=can), asked)


def test_features_of_all_kernels_with_working_sets_are_kept():
    facts = features(9000, 4, 30, can=HINGE, memory=16 * 9000**2)
    found = keep(facts, Asked())
    assert found.rules == ("working sets",)
    assert (found.representation, found.storage, found.whole, found.rank) == (
        "features",
        "lowrank",
        False,
        30,
    )


# ---- on the host, features -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rank", "rule"), [(75, "features of low rank"), (76, "packed matrices")])
def test_features_pay_up_to_a_quarter_of_the_samples(rank, rule):
    found = keep(features(300, 3, rank), Asked())
    assert found.rules == (rule,)
    assert found.rank == (rank if rule.startswith("features") else None)
    assert found.representation == ("features" if rule.startswith("features") else "gram")


@pytest.mark.parametrize(("rank", "rule"), [(300, "features for sums"), (301, "packed matrices")])
def test_features_pay_up_to_all_samples_where_nothing_is_mixed(rank, rule):
    assert kept(features(300, 3, rank), solver="lbfgs", mixes=False) == rule


def test_features_beside_matrices():
    found = decide(both(), Asked())
    assert (found.representation, found.rank, found.rules) == (
        "mixed",
        None,
        ("packed matrices", "second order"),
    )
    size = 5 * 20 * 8 * 2000
    assert found.bytes == size + 5 * triangle(2000) + 16 * 2000**2
    lazy = keep(both(memory=found.bytes - 1), Asked())
    assert (lazy.representation, lazy.storage, lazy.bytes) == ("mixed", "lazy", size + 16 * 2000**2)


def test_features_that_do_not_fit_are_streamed():
    size = 8 * 300 * 3 * 20
    facts = features(300, 3, 20, memory=size)
    assert kept(facts, solver="lbfgs", mixes=False) == "features for sums"
    small = replace(facts, memory=size - 1)
    assert rules(small, solver="lbfgs", mixes=False) == ("features that do not fit", "as asked")
    # half of it in single precision
    half = replace(facts, memory=size // 2)
    found = keep(half, Asked("lbfgs", False, dtype="float32"))
    assert (found.rules[0], found.feature_dtype, found.bytes) == ("features for sums", "float32", size // 2)
    assert keep(replace(half, samples="other"), Asked("lbfgs", False, dtype="float32")).storage == "stream"
    with pytest.raises(ValueError, match="normalize='trace'"):
        keep(replace(small, factors=False), Asked("lbfgs", False))
    with pytest.raises(MemoryBudgetError):
        keep(small, Asked("lbfgs", False, "lowrank"))


@pytest.mark.parametrize(
    ("facts", "rule", "chosen"),
    [
        (features(499, 3, 5), "features of low rank", "newton"),
        (features(500, 3, 5), "features for blocks", "block_descent"),
        (features(500, 3, 500), "features for blocks", "block_descent"),
        (features(500, 3, 501), "packed matrices", "newton"),
        (features(999, 3, 5, can=SQUARED), "features for blocks", "newton"),
        (features(1000, 3, 5, can=SQUARED), "features for blocks", "block_descent"),
        (features(600, 600, 5), "features for blocks", "block_descent"),
        (features(600, 601, 150, can=SQUARED), "features of low rank", "nesterov"),
        (features(600, 601, 151), "features for blocks", "block_descent"),
        (features(600, 3, 5, can=HINGE), "features of low rank", "newton"),
        (features(600, 3, 2, can=HINGE), "features of low rank", "level"),
        (features(600, 3, 3, can=HINGE), "features of low rank", "newton"),
        (features(600, 3, 2, can=MAXIMUM), "features of low rank", "lp_analytic"),
        (features(600, 3, 2, can=SUBSETS), "features of low rank", "outer_approximation"),
        (features(100, 101, 25, can=SQUARED), "features of low rank", "nesterov"),
        (features(100, 101, 26, can=SQUARED), "packed matrices", "newton"),
        (features(100, 100, 25, can=SQUARED), "features of low rank", "newton"),
        (matrices(can=MEAN), "packed matrices", "fixed_weights"),
    ],
)
def test_which_solver_features_go_to(facts, rule, chosen):
    found = decide(facts, Asked())
    assert (found.rules[0], found.solver) == (rule, chosen)


def test_features_for_blocks_have_to_fit():
    facts = features(600, 3, 300)
    size = facts.every.feature_bytes
    assert kept(replace(facts, memory=size)) == "features for blocks"
    small = replace(facts, memory=size - 1, low=facts.none)
    with pytest.raises(MemoryBudgetError):
        keep(small, Asked())
    assert kept(replace(facts, memory=size), storage="lowrank") == "features for blocks"
    assert kept(facts, storage="dense") == "packed matrices"
    assert kept(facts, solver="newton") == "packed matrices"


def test_low_rank_may_be_asked_for():
    facts = features(300, 3, 290, can=HINGE)
    assert kept(facts) == "packed matrices"
    assert kept(facts, storage="lowrank") == "features of low rank"
    with pytest.raises(ValueError, match="nystroem"):
        keep(both(), Asked(storage="lowrank"))


def test_too_large_a_mixed_kernel_sends_to_working_sets():
    n = 1000
    facts = matrices(n, 3, process_memory=32 * n**2)
    assert solver(facts) == "newton"
    assert solver(replace(facts, process_memory=32 * n**2 - 1)) == "working_set"
    assert solver(replace(facts, process_memory=32 * n**2 - 1, can=MAXIMUM)) == "lp_analytic"
    assert solver(replace(facts, process_memory=32 * n**2 - 1, can=MEAN)) == "working_set"


# ---- streams, matrices, completed kernels --------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [{"storage": "stream"}, {"samples": "rows"}])
def test_streams(asked):
    facts = features(samples=asked.get("samples", "numbers"), memory=1.0)
    storage = asked.get("storage", "auto")
    assert rules(facts, storage=storage) == ("streamed features", "steps on single rows")
    assert solver(replace(facts, can=SQUARED), storage=storage) == "proximal_newton"
    assert solver(replace(facts, can=SOFTMAX), storage=storage) == "newton"
    softmax = abilities(make_loss("multinomial"), make_norm(1.5))
    assert solver(replace(facts, can=softmax), storage=storage) == "lbfgs"
    assert solver(replace(facts, can=MEAN), storage=storage) == "fixed_weights"
    with pytest.raises(ValueError, match="random_fourier"):
        keep(replace(both(), samples=facts.samples), Asked(storage=storage))
    with pytest.raises(ValueError, match="normalize='trace'"):
        keep(replace(facts, factors=False), Asked(storage=storage))


@pytest.mark.parametrize("storage", ["dense", "family", "lazy", "lowrank"])
def test_rows_are_streamed_and_nothing_else(storage):
    with pytest.raises(ValueError, match="storage='stream'"):
        keep(features(samples="rows"), Asked(storage=storage))


@pytest.mark.parametrize(
    ("samples", "rule"), [("matrices", "given matrices"), ("incomplete", "completed kernels")]
)
@pytest.mark.parametrize("storage", ["auto", "dense", "lowrank", "stream"])
def test_matrices_that_are_there_have_to_fit(samples, rule, storage):
    facts = Facts(10, 3, HINGE, samples=samples, needed=5000, memory=5000)
    found = decide(facts, Asked(storage=storage))
    assert (found.rules[0], found.bytes, found.storage, found.solver) == (rule, 5000, "dense", "newton")
    with pytest.raises(MemoryBudgetError, match=r"needs 5\.0 kB.*raise memory_budget"):
        keep(replace(facts, memory=4999), Asked(storage=storage))


def test_pairs_are_products_of_matrices_that_fit_whatever_their_number():
    facts = Facts(10**6, 100, SQUARED, samples="pairs", needed=5000, memory=5000, process_memory=10**9)
    facts = replace(
        facts,
        unranked=100,
        without="a x b",
        **dict.fromkeys(("every", "own", "low", "none"), Split(0, 0, 100, 100)),
    )
    found = decide(facts, Asked(dtype="float32"))
    assert (found.rules[0], found.storage, found.dtype) == ("products of pairs", "products", "float64")
    assert found.solver == "newton"  # no mixed kernel of all pairs
    assert decide(replace(facts, can=HINGE), Asked()).solver == "working_set"
    with pytest.raises(MemoryBudgetError, match="fewer objects"):
        keep(replace(facts, memory=4999), Asked())


# ---- on a device ---------------------------------------------------------------------------------------------------


def there(facts, **others):
    return replace(facts, place="device", device="cuda", block_bytes=1000, **others)


def test_matrices_on_a_device_in_the_first_type_that_fits():
    n, m = 100, 5
    facts, mixed = there(matrices(n, m)), 4 * n**2 + 1000
    one = m * n**2
    found = keep(replace(facts, memory=4 * one + mixed), Asked())
    assert (found.rules, found.dtype, found.place) == (("matrices on a device",), "float32", "device")
    assert found.bytes == 4 * one + mixed
    found = keep(replace(facts, memory=4 * one + mixed - 1), Asked())
    assert (found.rules[0], found.dtype) == ("matrices on a device in half precision", "float16")
    assert keep(replace(facts, memory=2 * one + mixed), Asked()).dtype == "float16"
    assert kept(replace(facts, memory=2 * one + mixed - 1)) == "computed on a device"
    assert kept(replace(facts, memory=mixed)) == "computed on a device"
    with pytest.raises(MemoryBudgetError, match="working_set"):
        keep(replace(facts, memory=mixed - 1), Asked())
    # who mixes nothing gets exact columns instead of half of the digits
    alone = replace(facts, memory=4 * one + 999)
    assert kept(alone, solver="svrg", mixes=False) == "computed on a device"
    assert kept(replace(alone, samples="matrices"), solver="svrg", mixes=False) != "matrices on a device"
    assert kept(replace(facts, memory=1e9), storage="lazy") == "computed on a device"


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_types_that_are_asked_for_on_a_device(dtype):
    n, m, size = 100, 5, {"float64": 8, "float32": 4}.get(dtype, 2)
    facts = there(matrices(n, m), memory=size * m * n**2 + 4 * n**2 + 1000)
    assert keep(facts, Asked(storage="dense", dtype=dtype)).dtype == dtype
    with pytest.raises(MemoryBudgetError, match="storage='lazy'"):
        keep(replace(facts, memory=facts.memory - 1), Asked(storage="dense", dtype=dtype))
    if size == 2:
        assert keep(facts, Asked(dtype=dtype)).dtype == dtype


def test_features_on_a_device():
    facts = there(features(100, 5, 20), memory=4 * 100 * 100)
    found = decide(facts, Asked())
    assert found.rules == ("features on a device", "sums over samples")
    assert (found.dtype, found.bytes, found.rank) == ("float32", 40000, None)
    with pytest.raises(MemoryBudgetError, match=r"device=None.*float16"):
        keep(replace(facts, memory=39999), Asked())
    assert keep(replace(facts, memory=39999), Asked(dtype="float16")).dtype == "float16"
    assert kept(there(features(99, 5, 20))) == "matrices on a device"  # more features than samples
    assert kept(there(features(99, 5, 20)), storage="lowrank") == "features on a device"
    assert kept(there(features(100, 5, 20, can=HINGE))) == "matrices on a device"
    assert kept(replace(facts, memory=80000), solver="newton", storage="lowrank") == "features on a device"
    assert rules(facts, solver="proximal_newton", mixes=False)[0] == "features on a device"
    assert keep(there(features(100, 5, 20)), Asked(storage="lowrank", dtype="float64")).dtype == "float64"
    apple = replace(there(features(100, 5, 20)), device="mps")
    assert keep(apple, Asked(storage="lowrank", dtype="float64")).dtype == "float32"
    for wrong, way in (
        (there(features(samples="other")), "needs rows"), (there(both()), "nystroem"),
        (there(features(factors=False)), "normalize='trace'"), (there(features(samples="rows")), "stream"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=way):
            keep(wrong, Asked(storage="lowrank"))


# ---- on a cluster --------------------------------------------------------------------------------------------------


def spread(facts, **others):
    return replace(facts, place="cluster", height=facts.n // 2, **others)


def test_features_on_a_cluster():
    facts = spread(features(100, 5, 20), memory=8 * 50 * 100)
    assert rules(facts) == ("features on a cluster", "sums over samples")
    assert rules(replace(facts, memory=39999)) == ("features computed on a cluster", "sums over samples")
    assert kept(replace(facts, memory=20000), dtype="float32") == "features on a cluster"
    assert kept(facts, storage="stream") == "features computed on a cluster"
    assert decide(facts, Asked(storage="stream")).solver == "lbfgs"  # no steps on single rows
    with pytest.raises(MemoryBudgetError, match="storage='stream'"):
        keep(replace(facts, memory=39999), Asked(storage="lowrank"))
    for other in (features(99, 5, 20), features(100, 5, 20, can=HINGE), features(100, 5, 20, factors=False)):
        assert kept(spread(other)) == "kernels on a cluster"
    for other in (features(99, 5, 20), features(100, 5, 20, can=HINGE)):
        assert kept(spread(other, samples="rows")) == "features on a cluster"
        assert kept(spread(other), storage="lowrank") == "features on a cluster"
    with pytest.raises(ValueError, match="storage='dense' or 'lazy'"):
        keep(spread(features(factors=False)), Asked(storage="lowrank"))
    with pytest.raises(ValueError, match="nystroem"):
        keep(spread(both()), Asked(storage="stream"))
    with pytest.raises(ValueError, match="storage='stream' or 'lowrank'"):
        keep(spread(features(samples="rows")), Asked(storage="lazy"))


def test_kernels_on_a_cluster():
    facts = spread(matrices(100, 5), memory=8 * 5 * 50 * 100)
    assert rules(facts) == ("kernels on a cluster", "second order")
    assert kept(replace(facts, memory=facts.memory - 1)) == "kernels computed on a cluster"
    assert kept(facts, storage="lazy") == "kernels computed on a cluster"
    assert kept(replace(facts, samples="other"), storage="dense") == "kernels on a cluster"
    with pytest.raises(MemoryBudgetError, match="more workers"):
        keep(replace(facts, memory=facts.memory - 1), Asked(storage="dense"))
    with pytest.raises(ValueError, match="storage must be one of"):
        keep(replace(facts, samples="other"), Asked(storage="family"))


# ---- the whole table -----------------------------------------------------------------------------------------------

#: words that tell a reader what to do
WAYS = (
    "use ",
    "wrap ",
    "Ways out",
    "go with ",
    "takes normalize",
    "needs rows",
    "must be one of",
    "choose another",
    "has both",
    "must be auto",
)


def grid():
    """Facts and what is asked for, of every kind."""
    made = [
        (matrices(100, 5), 1e9), (matrices(9000, 5), 1e10), (features(600, 3, 2), 1e9), (features(2000, 10, 20), 1e9),
        (features(100, 101, 20), 1e9), (features(100, 3, 90), 1e9), (both(), 1e9),
    ]  # fmt: skip
    abler = (
        HINGE,
        LOGISTIC,
        SQUARED,
        MEAN,
        MAXIMUM,
        SUBSETS,
        SOFTMAX,
        abilities(make_loss("multinomial"), make_norm(2)),
        abilities(make_loss("cox"), make_norm(2)),
        abilities(make_loss("cox"), make_norm("l1")),
    )
    places = ("host", "device", "cluster")
    kinds = ("numbers", "other", "rows", "matrices", "incomplete", "pairs")
    memories = (1.0, 0.08, 0.004, 1e-6)
    storages = ("auto", "family", "dense", "lowrank", "lazy", "stream")
    askers = ((None, True), ("newton", True), ("lbfgs", False))
    for (facts, most), can, place, kind, share, factors in itertools.product(
        made, abler, places, kinds, memories, (True, False)
    ):
        here = replace(
            facts, can=can, place=place, samples=kind, memory=share * most, factors=factors, needed=10**6,
            device="cuda", block_bytes=1000, height=facts.n // 2,
        )  # fmt: skip
        for storage, (name, mixes), dtype in itertools.product(storages, askers, ("float64", "float32")):
            yield here, Asked(name, mixes, storage, dtype)


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.full)])
def test_every_rule_is_reached_and_every_refusal_names_a_way_out(every):
    seen: set[str] = set()
    refusals: set[str] = set()
    for facts, asked in itertools.islice(grid(), 0, None, every):
        try:
            found = decide(facts, asked)
        except (ValueError, MemoryBudgetError) as error:
            refusals.add(str(error))
            continue
        seen.update(found.rules)
        assert found.solver in registry
        assert found.place == facts.place
        assert found.reason.startswith(f"{found.solver} on ")
        # what is kept fits
        assert found.bytes <= facts.memory
        # a solver that was asked for is taken
        assert asked.solver in (None, found.solver)
        if asked.storage in ("lazy", "stream") and facts.samples in ("numbers", "other"):
            assert found.storage == asked.storage or found.representation == "features"
        if facts.samples in ("matrices", "incomplete"):
            assert found.representation == "gram"
        if facts.samples == "rows":
            assert found.representation == "features"
        # asking again for what is kept changes nothing
        again = decide(facts, replace(asked, kept=found))
        assert again == found
    assert seen == {rule.name for rule in RULES}
    assert len(refusals) > 100
    assert [text for text in refusals if not any(way in text for way in WAYS)] == []


def test_the_first_rule_that_holds_wins():
    for facts, asked in itertools.islice(grid(), 0, None, 97):
        case = Case(facts, asked)
        held = [rule.name for rule in KEEPING if rule.holds(case)]
        if held:
            assert keep(facts, asked).rules == (held[0],)


def test_without_a_solver_a_problem_is_refused():
    with pytest.raises(ValueError, match="no solver fits this loss and norm: choose another"):
        decide(matrices(can=Abilities()), Asked())


@pytest.mark.parametrize("name", KNOWN)
def test_abilities_are_those_of_the_registry(name):
    for loss, norm in itertools.product(losses, norms):
        made = losses[loss](), norms[norm]()
        assert (name in abilities(*made).serves) == registry[name].serves(*made)


# ---- facts are read from kernels and samples -----------------------------------------------------------------------


@pytest.mark.parametrize("n", [30, 60])
def test_facts_of_kernels(n):
    X = np.random.default_rng(0).normal(size=(n, 10))
    spec = kw.linear() + kw.gaussian([1.0, 2.0, 3.0]) + kw.polynomial([2, 3]).on([0, 1, 2])
    kernels = kw.resolve_kernels(kw.expand_kernels(spec, kw.Schema.of(X)), X)
    facts = facts_of_kernels(kernels, X, "trace", False, memory_budget=1000)
    assert (facts.n, facts.m, facts.unranked, facts.without) == (n, 6, 3, kernels[1].name)
    assert (facts.rank, facts.columns, facts.memory, facts.samples) == (20, 10 + 10 + 20, 1000, "numbers")
    # Gaussians of widths 1 and 2 are one chain, and nothing else is
    assert facts.none == Split(0, 0, 6, 5)
    assert facts.every == facts.own == Split(3, 8 * n * 40, 3, 2)
    assert facts.low == (Split(2, 8 * n * 20, 4, 3) if n == 60 else facts.none)
    assert facts_of_kernels(kernels, X, "trace", False, place="device").every == Split()


@pytest.mark.parametrize("storage", ["auto", "family", "dense", "lazy", "lowrank", "stream"])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_the_solver_that_was_decided_is_that_of_the_bank(storage, loss):
    """Facts of the kernels and facts of the bank that is made of them lead to the same solver."""
    rng = np.random.default_rng(0)
    for n, spec in itertools.product(
        (40, 520),
        (
            kw.per_feature(kw.linear()),
            kw.nystroem(kw.gaussian([1.0, 2.0]), 8),
            kw.linear() + kw.gaussian(1.0),
        ),
    ):
        X = rng.normal(size=(n, 45))
        kernels = kw.resolve_kernels(kw.expand_kernels(spec, kw.Schema.of(X)), X)
        can = abilities(make_loss(loss), make_norm("l1"))
        facts = facts_of_kernels(kernels, X, None, False, can=can)
        if storage in ("lowrank", "stream") and facts.unranked:
            continue
        expected = decide(facts, Asked(storage=storage))
        bank = build_bank(kernels, X, decision=keep(facts, Asked(storage=storage)))
        assert choose_solver(make_loss(loss), make_norm("l1"), bank).registered_as == expected.solver
        assert decide(facts_of_bank(bank, can), Asked(storage=storage, kept=bank.decision)) == expected


@pytest.mark.parametrize("n", [79, 80, 81, 320])
@pytest.mark.parametrize("mixing", [True, False])
@pytest.mark.parametrize("storage", ["auto", "lazy", "dense", "family"])
def test_the_bank_is_what_was_decided(n, mixing, storage):
    """Kernels of rank 3, 20 and 80, and two without features."""
    X = np.random.default_rng(0).normal(size=(n, 80))
    spec = kw.linear().on([0, 1, 2]) + kw.linear().on(list(range(20))) + kw.linear() + kw.gaussian([1.0, 3.0])
    kernels = kw.resolve_kernels(kw.expand_kernels(spec, kw.Schema.of(X)), X)
    facts = facts_of_kernels(kernels, X, "trace", False)
    decision = keep(facts, Asked(mixes=mixing, storage=storage))
    bank = build_bank(kernels, X, decision=decision)
    assert bank.decision is decision
    assert bank.nbytes == decision.bytes - (16 * n**2 if mixing else 0)
    explicit = [j for j, rank in enumerate((3, 20, 80)) if rank <= (n / 4 if mixing else n)]
    if storage != "auto":
        explicit = []
    assert decision.representation == ("mixed" if explicit else "gram")
    if explicit:
        assert list(bank.storage.kernels[0]) == explicit


def test_rows_that_are_read_as_needed_have_facts():
    X = np.random.default_rng(0).normal(size=(50, 4))
    facts = facts_of_kernels([kw.linear()], ArrayRows(X), None, False, kind="rows")
    assert (facts.n, facts.rank, facts.samples) == (50, 4, "rows")


def test_facts_of_matrices():
    stack = np.stack([np.eye(4), 2 * np.eye(4)])
    assert facts_of_kernels(None, stack, "trace", False).needed == 16 * 16
    copies = 16 * 16 + 2 * 10 * 8
    for matrices, center in (
        (stack, True),
        (list(stack), False),
        (stack.astype(int), False),
        (stack[:, ::2], False),
    ):
        facts = facts_of_kernels(None, matrices, None, center)
        assert (facts.samples, facts.m, facts.factors) == ("matrices", 2, not center)
        assert facts.needed >= (copies if len(matrices[0]) == 4 else 0)
