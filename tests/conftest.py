"""Settings that all tests share."""

from __future__ import annotations

import gc
import os

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


#: of a test with more parameters than this, so many are traced where coverage is measured
TRACED = 3


def pytest_collection_modifyitems(config, items):
    """Leave most tests of every grid untraced, because tracing takes longer than they do: coverage is a lower bound."""
    if not config.pluginmanager.has_plugin("_cov"):
        return
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
