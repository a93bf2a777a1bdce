"""One decision for every fit: which solver, what is kept of the kernels, how and where, and why.

``decide(facts, asked)`` reads ``RULES`` from top to bottom.  The first rule that holds says how the kernels are kept
(unless ``asked.kept`` says that they are kept already), the first below it that holds says which solver runs.  Facts
are plain numbers, so that the rules can be read, and tested, without data.  Where no rule holds, an error says why,
and what else could be done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..exceptions import MemoryBudgetError
from .memory import Place, check_storage, human, refuse

#: solvers that ask explicit features for nothing but sums over samples, the better one first
ON_SUMS = ("lbfgs", "proximal_newton")
#: samples from which steps on blocks of features beat those on the mixed kernel, whatever the ranks
MANY_SAMPLES = 500
#: the same with losses that are quadratic or a line: before that, the mixed kernel solves those exactly at no cost
QUADRATIC = 1000
#: a mixed kernel of all samples may take this part of the memory that the process may use, else some samples are mixed
MIXED_SHARE = 4
#: samples whose mixed kernel must fit where that of all samples need not: the working sets of a solver grow from half
LEAST_WORKING_SET = 4000
#: a matrix is quicker to mix than features of a similar size: features pay where n is this many times their number
MIXING_SHARE = 4
#: numbers of a case that are no bytes
COUNTS = ("n", "m", "rank", "columns", "height")
#: numbers of a case that are written with what they count
NOUNS = {"kernels": ("m", "kernel"), "all_features": ("columns", "feature")}
#: bytes of a number
SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


def model_bytes(columns: Any) -> Any:
    """Bytes of a second-order model of so many features: its Hessian, the factor of that, and copies of both."""
    return 4 * 8 * columns**2


@dataclass(frozen=True)
class Abilities:
    """What a loss and a norm let solvers do: who serves them, and attributes of both by which solvers are chosen."""

    #: names of the solvers that serve both, of those that the rules know
    serves: frozenset[str] = frozenset()
    #: the loss is smooth, and evaluates every sample and class by itself
    smooth: bool = False
    #: the derivative of the loss is a sigmoid
    sigmoid: bool = False
    #: the loss is made of planes: no curvature, no ridge, and samples are added up one by one
    planes: bool = False
    #: the norm has closed-form weights
    analytic: bool = False
    #: samples stand in each other's losses: sums over all of them are what features can be asked for
    coupled: bool = False
    #: loss and norm by name, for messages
    names: str = "this loss and norm"


@dataclass(frozen=True)
class Split:
    """Some kernels as explicit features and the others as matrices: how many there are of each, and how large."""

    features: int = 0
    #: in double precision, without the zeros of sparse samples
    feature_bytes: int = 0
    #: kernels that are kept as matrices, and the chains of powers that these make
    matrices: int = 0
    chains: int = 0


@dataclass(frozen=True)
class Facts:
    """What is known of kernels, samples, loss, norm and memory before anything is computed."""

    n: int
    m: int
    can: Abilities = Abilities()
    place: Place = "host"
    #: ``numbers`` or ``other`` things in memory, ``rows`` that are read as needed, ``matrices`` of the kernels,
    #: ``pairs`` of objects, or ``incomplete`` samples, whose kernels are completed
    samples: str = "numbers"
    #: kernels without explicit features, and the name of the first
    unranked: int = 0
    without: str = ""
    #: highest number of features of a kernel, and of all kernels side by side; of those that have features
    rank: int = 0
    columns: int = 0
    #: normalisation gives every kernel a factor and no more
    factors: bool = True
    #: who is kept as features: all that have some, those of a rank up to n, up to n / 4, or none
    every: Split = Split()
    own: Split = Split()
    low: Split = Split()
    none: Split = Split()
    #: bytes that the bank may take (of a device, or of the smallest worker), and all that the process may use
    memory: float = float("inf")
    process_memory: float = float("inf")
    #: bytes that matrices take that are given or completed
    needed: int = 0
    #: samples on one worker of a cluster
    height: int = 0
    #: kind of device, bytes of the blocks that are computed there at once
    device: str = ""
    block_bytes: int = 0


@dataclass(frozen=True)
class Asked:
    """What a user asks for: a solver by its name, or None, and how the bank is kept."""

    solver: str | None = None
    #: whether the solver works on the mixed kernel; one that is still to be chosen may
    mixes: bool = True
    storage: str = "auto"
    dtype: str = "float64"
    #: how the kernels are kept already
    kept: Decision | None = None


@dataclass(frozen=True)
class Decision:
    """What was decided for a fit, and why.

    Attributes
    ----------
    solver : str
        Name of the solver.
    representation : {"gram", "features", "mixed"}
        Matrices of kernel values, explicit features, or features of some kernels beside matrices of others.
    storage : str
        One of the values of ``storage=``, never ``"auto"``: how the matrices are kept, or the features.
    place : {"host", "device", "cluster"}
    dtype : str
        Type of the numbers that are kept.
    bytes : int
        What the decision reckons with: kernels that are kept, and working memory for the mixed kernel.
    reason : str
        Solver, what it works on, and why, in one sentence.
    rules : tuple of str
        Names of the rules that held, of the table in docs/choosing.md.
    """

    solver: str = ""
    representation: str = "gram"
    storage: str = "dense"
    place: str = "host"
    dtype: str = "float64"
    bytes: int = 0
    reason: str = ""
    rules: tuple[str, ...] = ()
    #: whether the mixed kernel of all samples fits into memory
    whole: bool = True
    #: type of explicit features, and the highest rank of kernels that are kept as such beside matrices
    feature_dtype: str = "float64"
    feature_rank: int = 0
    #: highest rank, where features of all kernels are in this process's memory
    rank: int | None = None
    #: the part of the reason that says how the kernels are kept
    kept_reason: str = ""

    def __str__(self) -> str:
        """Return the reason."""
        return self.reason


class Case:
    """Facts and what is asked for, together: the quantities that conditions and reasons speak of."""

    def __init__(self, facts: Facts, asked: Asked) -> None:
        self.facts, self.asked, self.kept = facts, asked, asked.kept or Decision()
        self.n, self.m, self.can, self.storage = facts.n, facts.m, facts.can, asked.storage
        self.memory, self.needed, self.auto = facts.memory, facts.needed, asked.storage == "auto"
        #: sums over samples are all that a solver needs
        self.sums = not asked.mixes
        if asked.solver is None:
            self.sums = bool(self.can.serves.intersection(ON_SUMS))
        self._count_model(facts, asked, asked.solver is None)
        self._read_host(facts, asked, asked.solver is None)
        self._count_host(facts, asked, asked.solver is None)
        values = self.storage in ("auto", "dense", "lazy")
        self._read_device(facts, asked, values)
        self._read_cluster(facts, SIZES[asked.dtype], values)
        #: features are read in sweeps: streamed, on a device or on a cluster
        far = self.kept.storage == "stream" or self.kept.place != "host"
        self.swept = self.kept.representation == "features" and far
        #: the mixed kernel of all samples takes too much memory
        self.too_many = not self.kept.whole or 8 * self.n**2 > facts.process_memory // MIXED_SHARE
        self.too_many &= not (self.kept.storage == "products" and self.can.smooth)
        #: the only type of numbers that products are computed in
        self.double = "float64"
        #: explicit features of all kernels are in this process's memory
        self.at_hand = self.kept.rank is not None

    def _count_model(self, facts: Facts, asked: Asked, is_open: bool) -> None:
        """Count what `proximal_newton` needs in this process, where it is asked for or the one that would be taken."""
        # a norm with corners chooses kernels: one of them is at work, at least
        corners = "lbfgs" not in self.can.serves
        taken = is_open and corners and "proximal_newton" in self.can.serves
        taken &= self.can.coupled or facts.place != "host"
        #: features at work in its model, at least, its bytes, and what they may be; kernels that have none get n
        as_they_are = (
            facts.place != "host" or facts.samples == "rows" or self.storage in ("lowrank", "stream")
        )
        most = facts.rank if as_they_are else facts.n
        every = min(facts.columns, facts.m * most) + facts.n * facts.unranked
        self.at_work = (facts.n if facts.unranked else min(facts.rank, most)) if corners else every
        self.model = model_bytes(self.at_work) if taken or asked.solver == "proximal_newton" else 0
        self.room = facts.memory if facts.place == "host" else facts.process_memory

    def _read_host(self, facts: Facts, asked: Asked, is_open: bool) -> None:
        """Find out which kernels become features in this process's memory; ``is_open``: any solver may run."""
        n = facts.n
        #: kernels are computed from samples in this process's memory, and may stay there
        self.in_memory = facts.place == "host" and facts.samples in ("numbers", "other", "pairs")
        self.in_memory &= self.storage != "stream" and not (self.storage == "lowrank" and facts.unranked)
        #: features are computed in every sweep, because that is asked for or rows are not in memory
        self.streams = self.storage == "stream" or (self.auto and facts.samples == "rows")
        self.streams &= facts.samples not in ("matrices", "incomplete")
        #: kernels of these ranks, on n samples, are better served by their features than by a mixed kernel
        self.suits_blocks = n >= MANY_SAMPLES and facts.unranked == 0 and facts.rank <= n
        self.suits_blocks &= not thin(n, facts.m, facts.rank)
        #: an open solver will go over explicit features of all kernels, which fit
        sums = self.can.coupled and not self.can.serves.isdisjoint(ON_SUMS)
        self.by_blocks = is_open and (sums or "block_descent" in self.can.serves) and self.suits_blocks
        self.by_blocks &= self.storage in ("auto", "lowrank") and facts.every.feature_bytes <= self.memory
        self.by_blocks &= self.model <= self.room
        if is_open and facts.place == "host":  # other solvers mix the kernels
            self.model = 0
        #: the mixed kernel will be wanted
        self.mixes = asked.mixes and not self.by_blocks
        #: which kernels are kept as features, and up to which rank
        self.feature_rank = n // MIXING_SHARE if self.mixes else n
        self.split = facts.every if self.storage == "lowrank" else facts.none
        if self.auto:
            self.split = facts.low if self.mixes else facts.own

    def _count_host(self, facts: Facts, asked: Asked, is_open: bool) -> None:
        """Count bytes in this process's memory."""
        n = facts.n
        #: features are in single precision where that is asked for and they are merely summed
        single = asked.dtype == "float32" and not self.mixes and facts.factors and facts.samples == "numbers"
        self.feature_dtype = "float32" if single else "float64"
        #: bytes of explicit features, and of packed matrices
        self.features = self.split.feature_bytes // (2 if single else 1)
        powers = self.storage != "dense" and facts.factors
        stored = self.split.chains if powers else self.split.matrices
        self.matrices = stored * (n * (n + 1) // 2) * SIZES[asked.dtype]
        #: the mixed kernel of all samples fits, where one of some of them would do
        fewer = self.mixes and is_open and self.serves("working_set") and self.storage in ("auto", "lazy")
        self.whole = not fewer or self.features + 2 * 8 * n**2 <= self.memory
        #: bytes of the mixed kernel of all samples, or of a working set, and of what the SVM engine copies of it
        mixed = n if self.whole else min(n, LEAST_WORKING_SET)
        self.working = 2 * 8 * mixed**2 if self.mixes or not self.whole else 0
        #: features of kernels that are kept as matrices, by eigendecomposition, for solvers that know nothing else
        by_features = not (is_open or asked.mixes or asked.solver == "working_set")
        self.factors = 2 * 8 * self.split.matrices * n**2 if by_features else 0
        self.working += self.factors
        #: bytes of everything where entries are computed in every pass, and where matrices are stored
        self.computed = self.features + self.working
        self.stored = self.computed + self.matrices

    def _read_device(self, facts: Facts, asked: Asked, values: bool) -> None:
        """Find out what a device is to keep, and count it; ``values``: kernel values may be kept."""
        n, itemsize = facts.n, SIZES[asked.dtype]
        #: on a device explicit features, fewer than samples, are all that is needed
        self.features_there = facts.place == "device" and facts.samples == "numbers" and facts.unranked == 0
        self.features_there &= facts.factors and (
            self.storage == "lowrank" or (self.auto and self.sums and facts.columns <= n)
        )
        #: their type, what is asked for or else single precision, and their bytes
        self.device_dtype = asked.dtype
        if (self.storage != "lowrank" and itemsize > 2) or (facts.device == "mps" and itemsize == 8):
            self.device_dtype = "float32"
        self.device_bytes = n * facts.columns * SIZES[self.device_dtype]
        #: kernel values are wanted on a device, and the mixed kernel
        self.on_device = facts.place == "device" and facts.samples != "rows" and values
        self.on_device &= not self.features_there
        self.device_mixes = asked.mixes or facts.samples == "matrices"
        #: types in which a device stores kernels if it can, the first one first
        self.first_dtype = "float32" if itemsize > 2 and self.auto else asked.dtype
        self.half_dtype = "float16"
        #: bytes of blocks and of the mixed kernel there, and with all kernels in each of these types
        self.device_working = facts.block_bytes + (4 * n**2 if self.device_mixes else 0)
        self.device_stored = self.on_device_in(self.first_dtype)
        self.device_halved = self.on_device_in(self.half_dtype)

    def _read_cluster(self, facts: Facts, itemsize: int, values: bool) -> None:
        """Find out what the workers of a cluster are to keep, and count it."""
        n = facts.n
        #: rows stay on the workers of a cluster, because explicit features of them are all that will be needed
        self.rows_there = facts.place == "cluster" and facts.samples in ("numbers", "rows")
        self.rows_there &= facts.unranked == 0 and facts.factors
        if self.auto and facts.samples != "rows":
            self.rows_there &= self.sums and facts.columns <= n
        else:
            self.rows_there &= self.storage in ("auto", "lowrank", "stream")
        #: kernel values are kept on the workers, or computed there
        self.kernels_there = facts.place == "cluster" and facts.samples in ("numbers", "other") and values
        self.kernels_there &= not self.rows_there
        #: bytes of the features of a worker's rows, and of their kernel values
        self.row_bytes = facts.height * facts.columns * itemsize
        self.worker_bytes = facts.m * facts.height * n * itemsize

    def on_device_in(self, dtype: str) -> int:
        """Bytes of all kernels on a device in some type, and of the working memory."""
        return self.m * self.n**2 * SIZES[dtype] + self.device_working

    def serves(self, solver: str) -> bool:
        """Whether a solver serves loss and norm."""
        return solver in self.can.serves

    def __format__(self, name: str) -> str:
        """Write one of the numbers above, bytes in readable units: ``{0:features}``; ``{0:kernels}`` with the noun."""
        if name in NOUNS:
            number = getattr(self.facts, NOUNS[name][0])
            return f"{number:,} {NOUNS[name][1]}{'' if number == 1 else 's'}"
        value = getattr(self, name) if hasattr(self, name) else getattr(self.facts, name)
        return f"{value:,}" if name in COUNTS else human(value)


def thin(n: int, m: int, rank: int) -> bool:
    """Whether there are more kernels than samples, all of a rank far below n: one kernel per term of a text."""
    return m > n and 4 * rank <= n


@dataclass(frozen=True)
class Rule:
    """One row of the table: when it holds, and what it settles, how the kernels are kept or which solver runs.

    ``because`` names numbers of the case as in ``{0:features}``, ``size`` the bytes that the rule reckons with.  Where
    some kernels are kept as features, matrices of the others are ``mixed``; those of kernels that may not be powers of
    one matrix are ``dense`` instead of a ``family``.
    """

    name: str
    when: str
    holds: Callable[[Case], bool]
    because: str
    solver: str = ""
    #: what a solver works on, in words
    words: str = ""
    representation: str = ""
    storage: str = ""
    size: str = ""
    #: name of a type of numbers in the case; empty for the one that is asked for
    dtype: str = ""


#: how the kernels are kept: on the host, on a device, on a cluster
KEEPING = (
    Rule(
        "completed kernels", "samples lack kernels, which are completed (`missing=`)",
        lambda c: c.facts.place == "host" and c.facts.samples == "incomplete" and c.facts.needed <= c.memory,
        "{0:kernels} on {0:n} samples, completed within {0:needed} of {0:memory}",
        words="completed matrices", representation="gram", storage="dense", size="needed",
    ),
    Rule(
        "products of pairs", "samples are pairs of objects, and matrices of the objects of each side fit",
        lambda c: c.facts.place == "host" and c.facts.samples == "pairs" and c.auto and c.facts.needed <= c.memory,
        "{0:kernels} on {0:n} pairs from matrices of both sides in {0:needed} of {0:memory}",
        words="products", representation="gram", storage="products", size="needed",
        dtype="double",
    ),
    Rule(
        "given matrices", "the kernels are matrices in memory",
        lambda c: c.facts.place == "host" and c.facts.samples == "matrices" and c.facts.needed <= c.memory,
        "{0:kernels} on {0:n} samples, and {0:needed} of {0:memory} beside what is given",
        words="the given matrices", representation="gram", storage="dense", size="needed",
    ),
    Rule(
        "streamed features", "streams are asked for, or rows are read as needed",
        lambda c: c.facts.place == "host" and c.streams and c.facts.unranked == 0 and c.facts.factors,
        "{0:all_features} of {0:n} samples, computed in every sweep",
        words="streamed features", representation="features", storage="stream",
    ),
    Rule(
        "features for blocks",
        "`block_descent` serves loss and norm (`lbfgs` or `proximal_newton` a loss of all samples together), n >= 500, "
        "every kernel has at most n features, all of them fit into memory, and it is not one kernel per term of a text",
        lambda c: c.in_memory and c.by_blocks,
        "n = {0:n}, {0:all_features} in {0:features} of {0:memory}, where a mixed kernel is n x n",
        words="explicit features", representation="features", storage="lowrank", size="stored",
    ),
    Rule(
        "features for sums",
        "the solver asked for needs no mixed kernel, every kernel has at most n features, and all fit",
        lambda c: c.in_memory and not c.mixes and c.split.matrices == 0 and c.stored <= c.memory,
        "n = {0:n}, {0:all_features} in {0:features} of {0:memory}, and sums over samples are all that is needed",
        words="explicit features", representation="features", storage="lowrank", size="stored",
    ),
    Rule(
        "features that do not fit", "the same, and they do not fit",
        lambda c: c.in_memory and c.auto and not c.mixes and c.split.matrices == 0 and c.facts.factors,
        "{0:all_features} of {0:n} samples would take {0:features}, more than {0:memory}",
        words="streamed features", representation="features", storage="stream",
    ),
    Rule(
        "features of low rank", "every kernel has at most n / 4 features (or `lowrank` is asked for), and all fit",
        lambda c: c.in_memory and c.split.matrices == 0 and c.whole and c.stored <= c.memory,
        "n = {0:n}, {0:kernels} of rank {0:rank} or less in {0:features} of {0:memory}",
        words="explicit features", representation="features", storage="lowrank", size="stored",
    ),
    Rule(
        "packed matrices", "matrices of the kernels that have more features, and the mixed kernel, fit",
        lambda c: c.in_memory and c.storage != "lazy" and c.whole and c.stored <= c.memory,
        "n = {0:n}, {0:kernels} in {0:stored} of {0:memory}",
        words="packed matrices", representation="gram", storage="family", size="stored",
    ),
    Rule(
        "computed entries", "the mixed kernel fits, matrices do not (or `lazy` is asked for)",
        lambda c: c.in_memory and c.storage in ("auto", "lazy") and c.whole and c.computed <= c.memory,
        "n = {0:n}, {0:kernels} would take {0:stored} of {0:memory}, and {0:computed} if computed in every pass",
        words="computed entries", representation="gram", storage="lazy", size="computed",
    ),
    Rule(
        "working sets",
        "`working_set` serves loss and norm, and a mixed kernel of some samples fits, of all it does not",
        lambda c: c.in_memory and not c.whole and c.computed <= c.memory,
        "the mixed kernel of all {0:n} samples does not fit into {0:memory}, one of some of them does",
        words="computed entries", representation="gram", storage="lazy", size="computed",
    ),
    Rule(
        "features on a device",
        "`lowrank` is asked for, or sums over samples will do and there are at most n features in all, and they fit",
        lambda c: c.features_there and c.device_bytes <= c.memory,
        "{0:all_features} of {0:n} samples in {0:device_bytes} of {0:memory}",
        words="explicit features on the device", representation="features", storage="lowrank", size="device_bytes",
        dtype="device_dtype",
    ),
    Rule(
        "matrices on a device", "matrices in single precision (or in the type asked for) fit",
        lambda c: c.on_device and c.storage != "lazy" and c.device_stored <= c.memory,
        "{0:kernels} on {0:n} samples in {0:device_stored} of {0:memory}",
        words="matrices on the device", representation="gram", storage="dense", size="device_stored",
        dtype="first_dtype",
    ),
    Rule(
        "matrices on a device in half precision", "those fit, and the solver mixes the kernels",
        lambda c: c.on_device and c.auto and c.device_mixes and c.device_halved <= c.memory,
        "{0:kernels} on {0:n} samples in {0:device_halved} of {0:memory}, in single precision {0:device_stored}",
        words="matrices on the device", representation="gram", storage="dense", size="device_halved",
        dtype="half_dtype",
    ),
    Rule(
        "computed on a device", "blocks and the mixed kernel fit, matrices do not (or `lazy` is asked for)",
        lambda c: c.on_device and c.storage != "dense" and c.device_working <= c.memory,
        "{0:kernels} on {0:n} samples would take {0:device_stored} of {0:memory}",
        words="entries that the device computes", representation="gram", storage="lazy", size="device_working",
    ),
    Rule(
        "features on a cluster",
        "`lowrank` or a file of rows is asked for, or sums over samples will do and there are at most n features in "
        "all, and they fit",
        lambda c: c.rows_there and c.storage != "stream" and c.row_bytes <= c.memory,
        "{0:all_features} of {0:height} rows in {0:row_bytes} of {0:memory} on every worker",
        words="explicit features on the workers", representation="features", storage="lowrank", size="row_bytes",
    ),
    Rule(
        "features computed on a cluster", "the same, and they do not fit (or `stream` is asked for)",
        lambda c: c.rows_there and c.storage != "lowrank",
        "{0:all_features} of {0:height} rows, computed on every worker in every sweep",
        words="features that the workers compute", representation="features", storage="stream",
    ),
    Rule(
        "kernels on a cluster", "the kernel values of a worker's rows fit",
        lambda c: c.kernels_there and c.storage != "lazy" and c.worker_bytes <= c.memory,
        "{0:kernels}, {0:height} rows each, in {0:worker_bytes} of {0:memory} on every worker",
        words="matrices on the workers", representation="gram", storage="dense", size="worker_bytes",
    ),
    Rule(
        "kernels computed on a cluster", "they do not fit (or `lazy` is asked for)",
        lambda c: c.kernels_there and c.storage != "dense",
        "{0:kernels}, {0:height} rows each, would take {0:worker_bytes} of {0:memory} on every worker",
        words="entries that the workers compute", representation="gram", storage="lazy",
    ),
)  # fmt: skip

#: which solver runs, from the kernels as they are kept
SOLVING = (
    Rule("as asked", "a solver is asked for", lambda c: c.asked.solver is not None, "it is asked for"),
    Rule(
        "steps on single rows", "features are streamed on one machine",
        lambda c: c.swept and c.kept.place == "host" and c.serves("svrg"),
        "stochastic steps take few sweeps over rows that are read anew", solver="svrg",
    ),
    Rule(
        "sums over samples", "features are streamed, on a device or on a cluster",
        lambda c: c.swept and c.serves("lbfgs"),
        "it asks for nothing but sums over samples", solver="lbfgs",
    ),
    Rule(
        "sums over samples, with corners", "the same, and the norm has corners",
        lambda c: c.swept and c.serves("proximal_newton"),
        "it asks for little but sums over samples, and the norm has corners", solver="proximal_newton",
    ),
    Rule(
        "blocks of features", "explicit features are in memory as above, and n >= 1000 or the loss is logistic",
        lambda c: c.at_hand and c.suits_blocks and c.serves("block_descent") and (c.can.sigmoid or c.n >= QUADRATIC),
        "explicit features of {0:n} samples never need a mixed kernel", solver="block_descent",
    ),
    Rule(
        "sums over features", "the same with a loss of all samples together",
        lambda c: c.at_hand and c.suits_blocks and c.can.coupled and c.serves("lbfgs"),
        "explicit features of {0:n} samples never need a mixed kernel", solver="lbfgs",
    ),
    Rule(
        "sums over features, with corners", "the same, and the norm has corners",
        lambda c: c.at_hand and c.suits_blocks and c.can.coupled and c.serves("proximal_newton"),
        "explicit features of {0:n} samples never need a mixed kernel", solver="proximal_newton",
    ),
    Rule(
        "a mixed kernel of some samples", "the mixed kernel of all samples takes more than a quarter of the memory",
        lambda c: c.too_many and c.serves("working_set"),
        "the mixed kernel of all {0:n} samples takes too much memory", solver="working_set",
    ),
    Rule(
        "given weights", "the weights are given",
        lambda c: c.serves("fixed_weights"),
        "given weights need one inner solve", solver="fixed_weights",
    ),
    Rule(
        "first order", "there are more kernels than samples, each of at most n / 4 features",
        lambda c: c.at_hand and thin(c.n, c.m, c.facts.rank) and not c.can.analytic and c.serves("nesterov"),
        "{0:kernels} of rank {0:rank} or less on {0:n} samples: sparse mixtures are singular, and a pass is cheap",
        solver="nesterov",
    ),
    Rule(
        "planes", "every kernel is a feature or two, the norm is l1 and the loss is made of lines",
        lambda c: c.at_hand and c.facts.rank <= 2 and c.can.planes and c.serves("level"),
        "kernels of rank {0:rank} make an objective of planes, which it describes best", solver="level",
    ),
    Rule(
        "second order", "the objective is convex in the weights",
        lambda c: c.serves("newton"),
        "second-order steps take the fewest passes over the kernels", solver="newton",
    ),
    Rule(
        "alternation", "weights have a closed form and the objective is not convex in them",
        lambda c: c.serves("lp_analytic"),
        "weights have a closed form", solver="lp_analytic",
    ),
    Rule(
        "programs over subsets", "at most k kernels",
        lambda c: c.serves("outer_approximation"),
        "the weights are a choice among subsets", solver="outer_approximation",
    ),
)  # fmt: skip

#: the whole table
RULES = (*KEEPING, *SOLVING)
#: solvers that the rules know
KNOWN = tuple(rule.solver for rule in SOLVING if rule.solver)


def keep(facts: Facts, asked: Asked) -> Decision:
    """Decide how the kernels are kept; the solver stays open."""
    case = Case(facts, asked)
    if case.model > case.room:
        raise _model_too_large(case)
    rule = next((rule for rule in KEEPING if rule.holds(case)), None)
    if rule is None:
        raise refusal(case)
    chosen = case.in_memory and facts.place == "host"
    representation, storage, words = rule.representation, rule.storage, rule.words
    if chosen and representation == "gram" and case.split.features:
        representation, words = "mixed", f"explicit features and {words}"
        if not case.split.matrices:  # working sets of kernels that are all features
            representation, storage, words = "features", "lowrank", "explicit features"
    if storage == "family" and (case.storage == "dense" or not facts.factors):
        storage = "dense"
    at_hand = facts.place == "host" and representation == "features" and storage == "lowrank"
    return Decision(
        representation=representation,
        storage=storage,
        place=facts.place,
        dtype=getattr(case, rule.dtype) if rule.dtype else asked.dtype,
        bytes=int(getattr(case, rule.size)) if rule.size else 0,
        kept_reason=f"{words}: {rule.because.format(case)}",
        rules=(rule.name,),
        whole=case.whole if chosen else True,
        feature_dtype=case.feature_dtype if chosen else asked.dtype,
        feature_rank=case.feature_rank if representation == "mixed" else 0,
        rank=facts.rank if at_hand else None,
    )


def decide(facts: Facts, asked: Asked) -> Decision:
    """Decide how the kernels are kept, unless they are (``asked.kept``), and which solver runs on them."""
    kept = keep(facts, asked) if asked.kept is None else asked.kept
    case = Case(facts, replace(asked, kept=kept))
    rule = next((rule for rule in SOLVING if rule.holds(case)), None)
    if rule is None:
        raise ValueError(f"no solver fits {facts.can.names}: choose another loss or norm")
    solver, why = rule.solver or str(asked.solver), rule.because.format(case)
    reason = f"{solver} on {kept.kept_reason}; {why}" if kept.kept_reason else f"{solver}: {why}"
    return replace(kept, solver=solver, reason=reason, rules=(*kept.rules[:1], rule.name))


def refusal(case: Case) -> Exception:
    """Return the error that says why no rule keeps the kernels, with the ways out."""
    f, storage = case.facts, case.storage
    if f.place == "device":
        return _refusal_on_device(case)
    if f.place == "cluster":
        return _refusal_on_cluster(case)
    if f.samples == "incomplete":
        ways = ["raise memory_budget", "fewer kernels", "fewer samples"]
        return _too_large(case, f"completing {f.m} kernels of {f.n} samples", f.needed, ways)
    if f.samples == "pairs" and case.auto:
        return _too_large(
            case, f"the kernel matrices of the objects of {f.n} pairs", f.needed,
            ["raise memory_budget", "fewer kernels", "fewer objects"],
        )  # fmt: skip
    if f.samples == "matrices":
        return _too_large(
            case, f"fitting on {f.m} precomputed kernels of {f.n} samples", f.needed,
            ["raise memory_budget", "pass one C-contiguous (m, n, n) array, which is used in place", "fewer samples"],
        )  # fmt: skip
    if f.samples == "rows" and storage not in ("auto", "stream"):
        return ValueError(f"rows that are read as needed go with storage='stream', not {storage!r}")
    if case.streams and f.unranked:
        return _without_features(
            case,
            "storage='stream' needs explicit features",
            "kernels.nystroem(...), or use kernels.random_fourier",
        )
    if case.streams or (case.auto and not case.mixes and case.split.matrices == 0):
        return ValueError(
            "storage='stream' takes normalize='trace' or None, without centring: what else there is needs all rows at "
            "once"
        )
    if storage == "lowrank" and f.unranked:
        return _without_features(
            case, "storage='lowrank' needs explicit features", "kernels.nystroem(...), or use storage='auto'"
        )
    ways = [
        "raise memory_budget",
        "fewer samples",
        "low-rank kernels (kernels.nystroem, kernels.random_fourier)",
    ]
    if case.mixes:
        ways.append(
            "a solver on explicit features (solver='svrg', 'lbfgs' or 'proximal_newton', with a smooth loss)"
        )
    if case.factors:
        ways.insert(0, "solver='auto', which factorises no kernel that has more features than samples")
        ways += ["storage='lowrank', which takes sparse features as they are"] if not f.unranked else []
    half = case.features + case.matrices // 2 + case.working
    if case.asked.dtype == "float64" and half <= case.memory:
        ways.insert(0, "dtype='float32'")
    if storage in ("family", "dense"):
        ways.insert(0, "storage='auto', which computes what does not fit")
    total = case.computed if storage in ("auto", "lazy") else case.stored
    return _too_large(case, f"a bank on {f.n} samples with storage={storage!r}", total, ways)


def _model_too_large(case: Case) -> Exception:
    ways = [f"solver={other!r}" for other in ("lbfgs", "block_descent") if case.serves(other)]
    ways += ["fewer features", "low-rank kernels (kernels.nystroem, kernels.random_fourier)"]
    ways += ["raise memory_budget"] if case.facts.place == "host" else []
    what = f"a second-order model of {case.at_work:,} features, which solver='proximal_newton' makes,"
    return refuse(what, int(case.model), int(case.room), ways)


def _refusal_on_device(case: Case) -> Exception:
    f, storage, n, m = case.facts, case.storage, case.n, case.m
    if f.samples == "rows":
        return ValueError("rows that are read as needed go with storage='stream' and device=None")
    if case.features_there:
        kept = case.device_dtype
        smaller = {8: ["dtype='float32'", "dtype='float16'"], 4: ["dtype='float16'"]}.get(SIZES[kept], [])
        return _too_large(
            case, f"{f.columns} features of {n} samples on {f.device}", case.device_bytes,
            ["device=None, where features that do not fit are computed in every pass", "raise memory_budget", *smaller],
        )  # fmt: skip
    if storage == "lowrank" and f.samples == "matrices":
        return ValueError(f"storage must be auto, dense or lazy on a device, got {storage!r}")
    if storage == "lowrank" and f.samples != "numbers":
        return ValueError("storage='lowrank' needs rows of numbers")
    if storage == "lowrank" and f.unranked:
        return _without_features(
            case, "storage='lowrank' needs explicit features", "kernels.nystroem(...), or use storage='auto'"
        )
    if storage == "lowrank":
        return ValueError("storage='lowrank' on a device takes normalize='trace' or None, without centring")
    ways = ["raise memory_budget", "fewer samples"]
    if storage == "dense":
        asked = case.asked.dtype
        cheaper = [kind for kind in ("float32", "float16") if SIZES[kind] < SIZES[asked]]
        ways = [f"dtype={kind!r}" for kind in cheaper if case.on_device_in(kind) <= case.memory][:1]
        ways += ["storage='lazy', which computes entries in every pass", "raise memory_budget"]
    elif case.device_mixes:
        ways.insert(0, "solver='working_set', which mixes support vectors alone")
    total = case.device_stored if storage == "dense" else case.device_working
    return _too_large(case, f"a bank of {m} kernels on {n} samples on {f.device}", total, ways)


def _refusal_on_cluster(case: Case) -> Exception:
    f, storage = case.facts, case.storage
    if case.rows_there:
        return _too_large(
            case, f"{f.columns} features of {f.height} rows on a worker", case.row_bytes,
            ["more workers", "dtype='float32'", "storage='stream', which computes them in every sweep"],
        )  # fmt: skip
    if f.samples != "other" and storage in ("auto", "lowrank", "stream") and f.unranked:
        return _without_features(
            case, "features on a cluster are asked for",
            "kernels.nystroem(...), use kernels.random_fourier, or storage='dense'",
        )  # fmt: skip
    if f.samples != "other" and storage in ("auto", "lowrank", "stream"):
        return ValueError(
            "features on a cluster take normalize='trace' or None, without centring: what else there is needs all rows "
            "at once; storage='dense' or 'lazy' has both"
        )
    if f.samples == "rows":
        return ValueError(
            f"rows that are read as needed go with storage='stream' or 'lowrank' on a cluster, not {storage!r}"
        )
    check_storage(storage, "cluster")
    return _too_large(
        case, f"{f.m} kernels on {f.n} samples, {f.height} rows a worker,", case.worker_bytes,
        ["more workers", "storage='auto', which computes what does not fit", "raise memory_budget"],
    )  # fmt: skip


def _without_features(case: Case, what: str, ways: str) -> ValueError:
    f = case.facts
    return ValueError(
        f"{what}, which {f.without!r} does not have ({f.unranked} such kernels): wrap them in {ways}"
    )


def _too_large(case: Case, what: str, needed: int, ways: list[str]) -> MemoryBudgetError:
    return refuse(what, needed, int(case.memory), ways)
