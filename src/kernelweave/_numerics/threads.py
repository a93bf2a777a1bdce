"""How many threads the linear algebra may use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["few_blas_threads"]

#: rows from which a second thread pays for the waiting
LARGE = 4000

#: The number of BLAS threads belongs to the whole process, and fits in several threads overlap in any order: if each
#: put back what it found, the last would put back the limit of another one.  Only the holder of this lock sets it.
_setting = threading.Lock()


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # looks through all loaded libraries: once is enough

    return ThreadpoolController()


@contextmanager
def few_blas_threads(n: int) -> Iterator[None]:
    """One BLAS thread for small matrices: more gain nothing there, and wait for each other on a busy machine.

    Within the limit of another fit nothing is set, and nothing is put back.
    """
    if n >= LARGE or not _setting.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _setting.release()
