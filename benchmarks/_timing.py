"""Median seconds of functions that take turns."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Timed(NamedTuple):
    """Median seconds of the repetitions, and what the last one returned."""

    seconds: float
    result: Any


def in_turns(functions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, Timed]:
    """Time every function ``repeats`` times, in turns: a busy moment of the machine then hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    results: dict[str, Any] = {}
    for _ in range(repeats):
        for name, function in functions.items():
            results.pop(name, None)  # two banks of the same function need not fit into memory
            gc.collect()
            start = time.perf_counter()
            results[name] = function()
            seconds[name].append(time.perf_counter() - start)
    return {name: Timed(statistics.median(seconds[name]), results[name]) for name in functions}
