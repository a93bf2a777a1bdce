"""Parts of a bank on the workers of a Dask cluster: made, asked in rounds, and made again where a worker is lost.

A round is one message to every part and one answer from it, carried by Dask's actors: no task is scheduled.  Parts hold
nothing that they were not made of or had attached, so a round that a worker did not survive is simply asked again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._dask import check_client

__all__ = ["ClusterCost", "Workers"]

#: seconds between two looks at whether a worker that does not answer is still there
PATIENCE = 5.0
#: seconds until a lost worker has to be missed by the scheduler, or another one to turn up
GRACE = 60.0
#: losses per part, on average, after which the fit gives up: so many are no accident
LOSSES = 4


@dataclass
class ClusterCost:
    """What a fit cost the cluster.

    Attributes
    ----------
    parts : int
        Parts that the rows were cut into, one per worker.
    rounds : int
        Messages to all parts, and back.
    sent, received : int
        Bytes of arrays from and to the client, over all rounds and parts.
    seconds : float
        Time of all rounds on the client's clock.
    busy : float
        Time that the slowest part of each round worked; the rest is overhead.
    stored : int
        Bytes of the bank on all workers together.
    rebuilt : int
        Parts that were made again because their worker was lost.
    """

    parts: int = 0
    rounds: int = 0
    sent: int = 0
    received: int = 0
    seconds: float = 0.0
    busy: float = 0.0
    stored: int = 0
    rebuilt: int = 0

    @property
    def overhead(self) -> float:
        """Seconds a round beyond what the slowest part worked."""
        return (self.seconds - self.busy) / self.rounds if self.rounds else 0.0


@dataclass
class _Place:
    """One part: how it is made, where it is, and what was attached to it since."""

    make: Callable[[str], Any]
    address: str = ""
    future: Any = None
    actor: Any = None
    attached: dict[str, tuple[Any, ...]] = field(default_factory=dict)


class Workers:
    """The parts of one bank.

    Parameters
    ----------
    client : dask.distributed.Client
    makers : sequence of callables
        One a part: given the address of a worker, start making the part there and return the future of its actor.
    """

    def __init__(self, client: Any, makers: Sequence[Callable[[str], Any]]) -> None:
        self.client = client
        self.places = [_Place(make) for make in makers]
        self.cost = ClusterCost(parts=len(self.places))
        addresses = sorted(client.nthreads())
        for k, place in enumerate(self.places):
            place.address = addresses[k % len(addresses)]
            place.future = place.make(place.address)
        for place in self.places:
            try:
                self._started(place)
            except _losses() as error:
                self._await_loss(place, error)
                self._make_anew(place)

    # ---- rounds ----------------------------------------------------------------------------------------------

    def attach(self, name: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Ask a method of every part that changes it; it is called again where a part is made again."""
        for place, args in zip(self.places, arguments, strict=True):
            place.attached[name] = args
        return self.ask(name, arguments)

    def ask(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """One round: the method of every part, each with arguments of its own."""
        began = time.perf_counter()
        calls = [self._call(place, method, args) for place, args in zip(self.places, arguments, strict=True)]
        answers = [
            self._finish(place, method, args, call)
            for place, args, call in zip(self.places, arguments, calls, strict=True)
        ]
        self.cost.rounds += 1
        self.cost.seconds += time.perf_counter() - began
        self.cost.busy += max(seconds for seconds, _ in answers)
        self.cost.sent += sum(_bytes(args) for args in arguments)
        self.cost.received += sum(_bytes(result) for _, result in answers)
        return [result for _, result in answers]

    def ask_all(self, method: str, *args: Any) -> list[Any]:
        """One round with the same arguments for every part."""
        return self.ask(method, [args] * len(self.places))

    # ---- one part --------------------------------------------------------------------------------------------

    def _call(self, place: _Place, method: str, args: tuple[Any, ...]) -> Any:
        try:
            return place.actor.call(method, *args)
        except RuntimeError:  # Dask knows already that the worker is lost
            return None

    def _finish(self, place: _Place, method: str, args: tuple[Any, ...], call: Any) -> tuple[float, Any]:
        """Wait for an answer; where the worker is lost meanwhile, make its part again elsewhere and ask again."""
        while True:
            try:
                return self._answer(place, call)
            except _losses() as error:
                self._await_loss(place, error)
            self._make_anew(place)
            call = self._call(place, method, args)

    def _answer(self, place: _Place, call: Any) -> Any:
        """Wait for an answer, or a part, as long as the worker is there."""
        while call is not None:
            try:
                return call.result(timeout=PATIENCE)
            except TimeoutError:
                if place.address not in self._addresses():
                    break
            except RuntimeError:
                check_client(self.client)  # closed, with all that ran in it
                raise
        raise OSError(f"the worker at {place.address} was lost")

    def _started(self, place: _Place) -> None:
        """Wait until a part is made, and attach what had been attached to it."""
        place.actor = self._answer(place, place.future)
        for method, args in place.attached.items():
            self._answer(place, self._call(place, method, args))

    def _await_loss(self, place: _Place, error: Exception) -> None:
        """Return once the scheduler knows that the worker is lost; an error of a worker that is there is passed on."""
        until = time.monotonic() + GRACE
        while place.address in self._addresses():
            if time.monotonic() > until or not _is_about_contact(error):
                raise error
            time.sleep(0.05)

    def _make_anew(self, place: _Place) -> None:
        """Make a part on the worker with the fewest parts, and attach what was attached."""
        until = time.monotonic() + GRACE
        while time.monotonic() < until:
            addresses = self._addresses()
            if not addresses:
                time.sleep(0.1)
                continue
            loads = dict.fromkeys(addresses, 0)
            for other in self.places:
                if other is not place and other.address in loads:
                    loads[other.address] += 1
            place.address = min(loads, key=lambda address: (loads[address], address))
            if self.cost.rebuilt >= LOSSES * len(self.places):
                raise ConnectionError(
                    f"workers were lost {self.cost.rebuilt} times, which looks like too little memory: use more "
                    "workers, a higher memory_limit, storage='lazy' (kernels) or 'stream' (features), or a lower "
                    "memory_budget"
                )
            self.cost.rebuilt += 1
            try:
                place.future = place.make(place.address)
                return self._started(place)
            except _losses() as error:
                self._await_loss(place, error)
        raise ConnectionError(
            f"all workers of the Dask scheduler at {self.client.scheduler.address} are lost, and none came back within "
            f"{GRACE:.0f} s: start some and fit again; with checkpoint=... a fit goes on from its best point"
        )

    def _addresses(self) -> list[str]:
        """Addresses of the workers that are there, or say that the scheduler is not."""
        until = time.monotonic() + PATIENCE
        while self.client.status != "running" and time.monotonic() < until:
            time.sleep(0.1)
        if self.client.status != "running":
            check_client(self.client)
        return list(self.client.nthreads())


def _losses() -> tuple[type[Exception], ...]:
    """Errors with which Dask says that a worker, or the scheduler, is gone."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    return OSError, KilledWorker, FutureCancelledError


def _is_about_contact(error: Exception) -> bool:
    """Whether an error says that a worker could not be reached, and not that its work failed."""
    return not isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError)


def _bytes(value: Any) -> int:
    """Bytes of the arrays in arguments or an answer."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tuple | list):
        return sum(_bytes(one) for one in value)
    return 8 if isinstance(value, int | float) else 0
