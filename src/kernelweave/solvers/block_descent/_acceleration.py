"""Anderson acceleration: the combination of the last iterates whose last changes cancel best."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ._iterate import Iterate, Place

__all__ = ["Anderson"]


class Anderson:
    """Remember the last places of an iterate, and try their extrapolation."""

    def __init__(self, memory: int = 5) -> None:
        self.memory = memory
        self.places: list[Place] = []

    def forget(self) -> None:
        """Begin again, where the blocks at work have changed."""
        self.places.clear()

    def push(self, at: Iterate) -> None:
        """Note where the iterate is, and go to the extrapolated place where that is lower."""
        self.places.append(at.place())
        if len(self.places) <= self.memory:
            return
        places = self.places[-self.memory - 1 :]
        self.places = places
        moves = np.array([(b.w - a.w).ravel() for a, b in pairwise(places)])
        gram = moves @ moves.T
        trace = float(np.trace(gram))
        if trace == 0.0:
            return
        share = np.linalg.solve(gram + 1e-10 * trace * np.eye(len(moves)), np.ones(len(moves)))
        total = float(np.sum(share))
        if total == 0.0:
            return
        share = share / total
        w = sum(c * place.w for c, place in zip(share, places[1:], strict=True))
        f = sum(c * (place.f - place.b) for c, place in zip(share, places[1:], strict=True))
        if at.try_place(Place(np.asarray(w), np.zeros_like(at.b), np.asarray(f))):
            self.places = [at.place()]
