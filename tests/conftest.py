"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# the same examples every time: a failure can be repeated, and a green run means the same thing everywhere
settings.register_profile(
    "kernelweave",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("kernelweave")
