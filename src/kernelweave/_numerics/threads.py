"""How many threads the linear algebra may use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["few_blas_threads"]

#: rows from which a second thread pays for the waiting
LARGE = 4000


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # looks through all loaded libraries: once is enough

    return ThreadpoolController()


@contextmanager
def few_blas_threads(n: int) -> Iterator[None]:
    """One BLAS thread for small matrices: more gain nothing there, and wait for each other on a busy machine."""
    if n >= LARGE:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield
