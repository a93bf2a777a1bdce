"""Recorded sequences of GPU kernels, for steps whose many small parts take longer to launch than to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["recorded"]

#: runs before a recording, in which libraries choose their kernels and take their memory
WARM_UP = 3


def recorded(function: Callable[..., tuple[Any, ...]], *examples: Any) -> Callable[..., tuple[Any, ...]]:
    """Return the function of CUDA tensors, replayed as one graph; arguments keep the examples' shapes and types.

    The function must not wait for the device, nor look at a value.  Numbers may stand for tensors without axes.
    Results are copies: the next replay does not change them.
    """
    import torch

    places = [example.clone() for example in examples]
    side = torch.cuda.Stream(device=places[0].device)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            function(*places)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = function(*places)

    def replay(*values: Any) -> tuple[Any, ...]:
        for place, value in zip(places, values, strict=True):
            if isinstance(value, float):
                place.fill_(value)
            else:
                place.copy_(value)
        graph.replay()
        return tuple(result.clone() for result in results)

    return replay
