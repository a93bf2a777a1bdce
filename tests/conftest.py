"""Settings that all tests share."""

from __future__ import annotations

import gc
import itertools
import os
import signal

import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

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
        trace_few(items)


#: of a test with more parameters than this, so many are traced where coverage is measured
TRACED = 3


def trace_few(items):
    """Leave most tests of every grid untraced, because tracing takes longer than they do: coverage is a lower bound."""
    grids: dict[object, list[pytest.Item]] = {}
    for item in items:
        grids.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    for grid in grids.values():
        last = len(grid) - 1
        spread = (
            {round(k * last / (TRACED - 1)) for k in range(TRACED)}
            if len(grid) > TRACED
            else range(len(grid))
        )
        for number, item in enumerate(grid):
            if number not in spread:
                item.add_marker(pytest.mark.no_cover)


#: threads of the linear algebra; ``.ci/run`` runs the numeric tests a second time with two
BLAS_THREADS = int(os.environ.get("KERNELWEAVE_TEST_BLAS_THREADS", "1"))


@pytest.fixture(scope="session", autouse=True)
def few_blas_threads():
    """Test problems are small: threads would spend their time waiting for each other, most of all on a busy machine."""
    with threadpool_limits(limits=BLAS_THREADS, user_api="blas"):
        yield
