"""Settings that all tests share."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from kernelweave import exceptions

# the same examples every time: a failure can be repeated, and a green run means the same thing everywhere
settings.register_profile(
    "kernelweave",
    derandomize=True,
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("kernelweave")


# Collecting tests makes a million objects that all stay: looking through them for garbage took a tenth of the time.
gc.disable()


def pytest_collection_finish(session):
    gc.collect()
    gc.freeze()
    gc.enable()


# The first warning of a kind says where it is explained: none of these is, whatever order they come in.
exceptions._issued.update(
    kind
    for kind in vars(exceptions).values()
    if isinstance(kind, type) and issubclass(kind, exceptions.KernelWeaveWarning)
)

# A shell that starts pytest in the background (``pytest &``, nohup, some runners) has it ignore Ctrl-C, and so would every
# process that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def covering(rows):
    """Return the positions of rows that hold, between them, every pair of values of two columns that any row holds.

    Greedy: the row with the most pairs that are still missing comes next, the first of them in a tie.
    """
    pairs = [
        {((i, row[i]), (j, row[j])) for i, j in itertools.combinations(range(len(row)), 2)} for row in rows
    ]
    missing, chosen = set().union(*pairs), set()
    while missing:
        best = max(range(len(rows)), key=lambda k: len(pairs[k] & missing))
        missing -= pairs[best]
        chosen.add(best)
    return chosen


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark as ``full`` what a grid under ``pytest.mark.pairs`` holds beyond every pair of its parameters' values."""
    grids: dict[object, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("pairs"):
            grids.setdefault((item.path, item.originalname), []).append(item)
        marker = item.get_closest_marker("gate_runs")
        if marker and not marker.kwargs["only"](**item.callspec.params):
            item.add_marker(pytest.mark.full)
    for grid in grids.values():
        plain = str | int | float | None  # anything else is the same object wherever it is the same value
        chosen = covering(
            [
                tuple(v if isinstance(v, plain) else id(v) for v in item.callspec.params.values())
                for item in grid
            ]
        )
        for number, item in enumerate(grid):
            if number not in chosen:
                item.add_marker(pytest.mark.full)
    if config.pluginmanager.has_plugin("_cov"):
        config.pluginmanager.register(Tracing(items))


#: of a test with more parameters than this, so many are traced where coverage is measured
TRACED = 3


#: What others do for a while without calling the library.
FOREIGN = [
    ("cvxpy", "Problem", "solve"),
    ("matplotlib.figure", "Figure", "savefig"),
    ("sklearn.model_selection", "GridSearchCV", "fit"),
]


def untraced(method):
    """Return a method of another package that is not traced, unless one of its parameters is of the library."""

    @functools.wraps(method)
    def call(self, *arguments, **named):
        tracer = sys.gettrace()
        parts = self.get_params().values() if hasattr(self, "get_params") else ()
        if tracer is None or any(type(part).__module__.startswith("kernelweave") for part in parts):
            return method(self, *arguments, **named)
        sys.settrace(None)
        try:
            return method(self, *arguments, **named)
        finally:
            sys.settrace(tracer)

    return call


class Tracing:
    """Trace fixtures and tests where coverage is measured, and neither pytest between them nor most tests of a grid.

    Tracing takes longer than most tests do: what is reported is a lower bound.
    """

    def __init__(self, items):
        self.tracer = None
        grids: dict[object, list[pytest.Item]] = {}
        for item in items:
            grids.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
        self.untraced = {item for item in items if item.get_closest_marker("no_cover")}
        for grid in grids.values():
            last = len(grid) - 1
            if last >= TRACED:
                spread = {round(k * last / (TRACED - 1)) for k in range(TRACED)}
                self.untraced |= {item for number, item in enumerate(grid) if number not in spread}
        for module, name, method in FOREIGN:
            if module in sys.modules:
                owner = getattr(sys.modules[module], name)
                setattr(owner, method, untraced(getattr(owner, method)))

    def pause(self):
        self.tracer = sys.gettrace() or self.tracer  # a new one after every test that is marked no_cover
        sys.settrace(None)

    def traced(self):
        """Trace what a hook does; where something is traced already, a test has asked for a fixture."""
        if sys.gettrace() is not None:
            return (yield)
        sys.settrace(self.tracer)
        try:
            return (yield)
        finally:
            self.pause()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, request):
        return (yield from self.traced())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item):
        return (yield from self.traced())

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item):
        return (yield) if item in self.untraced else (yield from self.traced())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        self.pause()
        try:
            return (yield)
        finally:
            if sys.gettrace() is None:
                sys.settrace(self.tracer)


#: threads of the linear algebra; ``.ci/run`` runs the numeric tests a second time with two
BLAS_THREADS = int(os.environ.get("KERNELWEAVE_TEST_BLAS_THREADS", "1"))


@pytest.fixture(scope="session", autouse=True)
def few_blas_threads():
    """Test problems are small: threads would spend their time waiting for each other, most of all on a busy machine."""
    with threadpool_limits(limits=BLAS_THREADS, user_api="blas"):
        yield
