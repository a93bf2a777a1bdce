"""Settings that all tests share."""

from __future__ import annotations

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


#: threads of the linear algebra; ``.ci/run`` runs the numeric tests a second time with two
BLAS_THREADS = int(os.environ.get("KERNELWEAVE_TEST_BLAS_THREADS", "1"))


@pytest.fixture(scope="session", autouse=True)
def few_blas_threads():
    """Test problems are small: threads would spend their time waiting for each other, most of all on a busy machine."""
    with threadpool_limits(limits=BLAS_THREADS, user_api="blas"):
        yield
