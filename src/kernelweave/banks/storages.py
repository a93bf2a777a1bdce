"""Where a bank can be, and how it can keep its kernels there: one table for all that ask."""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["STORAGES", "Place", "check_storage"]

#: memory of this process; a device of torch; workers of a cluster, with kernel values or with explicit features
Place = Literal["host", "device", "cluster", "features on a cluster"]

#: storage -> the places that have it
STORAGES: dict[str, tuple[Place, ...]] = {
    "auto": get_args(Place),
    "family": ("host",),
    "dense": ("host", "device", "cluster"),
    "lowrank": ("host", "device", "features on a cluster"),
    "lazy": ("host", "device", "cluster"),
    "stream": ("host", "features on a cluster"),
}

WORDS = {"device": " with a device"}


def check_storage(storage: object, place: Place = "host") -> str:
    """Return the storage, or raise a ValueError that lists those of the place."""
    if isinstance(storage, str) and place in STORAGES.get(storage, ()):
        return storage
    names = [name for name, places in STORAGES.items() if place in places]
    there = ", ".join(names if place == "host" else sorted(names))
    if place == "cluster":
        raise ValueError(
            f"storage must be one of {there} for kernels on a cluster, or lowrank or stream for kernels with explicit "
            f"features, got {storage!r}"
        )
    raise ValueError(f"storage must be one of {there}{WORDS.get(place, '')}, got {storage!r}")
