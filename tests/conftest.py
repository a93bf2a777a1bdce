"""Settings that all tests share."""

from __future__ import annotations

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


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread():
    """Test problems are small: threads would spend their time waiting for each other, most of all on a busy machine."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield
