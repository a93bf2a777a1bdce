"""How much of the package a reader meets who follows ``MKLClassifier.fit`` and ``predict``.

Each call is made twice on the same 60 samples, and the second one is watched by ``sys.setprofile``: imports,
compilation and registries belong to the first.  What is counted:

*functions*
    distinct pairs of file and name among the functions entered whose code lies in the package's folder.  Lambdas,
    comprehensions and generator expressions (names such as ``<lambda>``) are not counted; compiled functions do not
    show.
*files*
    the files of those functions.
*depth*
    the most functions of the package, counted as above, that are open at once.
*calls*
    how often such functions are entered in all.

On commit 8535c68 the preset gives 281 functions in 63 files for ``fit`` and 51 in 17 for ``predict``.

Run ``python benchmarks/walk.py``; ``--quick`` writes nothing, ``--names`` also lists every function entered, file by
file, with its number of calls.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from sklearn.datasets import make_classification

import kernelweave
from _report import machine, show, write_table
from _threads import pin
from kernelweave import MKLClassifier, kernels
from kernelweave.exceptions import KernelWeaveWarning

PACKAGE = Path(kernelweave.__file__).parent
NOTE = """`MKLClassifier(...).fit(X, y)` and `.predict(X)` on 60 generated samples with 6 features
(`make_classification`, seed 0), every parameter at its default; each is called twice and the second call is watched.

*Functions*: distinct pairs of file and name entered in the package, without lambdas, comprehensions and compiled code.
*Files*: those they are in. *Depth*: the most of them that are open at once. *Calls*: how often they are entered."""


@dataclass
class Walk:
    """What one call entered."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    depth: int = 0

    @property
    def files(self) -> list[str]:
        """Files entered, sorted, relative to the package's folder."""
        return sorted({file for file, _ in self.calls})


def walk(function: Callable[[], Any]) -> Walk:
    """Call ``function`` and count the functions of the package that it enters."""
    taken, prefix, open_now = Walk(), str(PACKAGE) + "/", 0

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal open_now
        code = frame.f_code
        if not code.co_filename.startswith(prefix) or code.co_name.startswith("<"):
            return
        if event == "call":
            open_now += 1
            taken.depth = max(taken.depth, open_now)
            taken.calls[code.co_filename.removeprefix(prefix), code.co_name] += 1
        elif event == "return":
            open_now -= 1

    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(None)
    return taken


def walks() -> dict[tuple[str, str], Walk]:
    """Walk through the second fit and the second prediction, for both sets of kernels."""
    X, y = make_classification(60, 6, n_informative=3, n_redundant=0, random_state=0)
    taken = {}
    models = {"default": MKLClassifier(), 'preset("stpmkl")': MKLClassifier(kernels.preset("stpmkl"))}
    for name, model in models.items():
        calls: dict[str, Callable[[], Any]] = {
            "fit": lambda m=model: m.fit(X, y),
            "predict": lambda m=model: m.predict(X),
        }
        for call, function in calls.items():
            function()
            taken[name, call] = walk(function)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the same walks; nothing is written")
    parser.add_argument("--names", action="store_true", help="list every function entered")
    options = parser.parse_args()
    pin()
    warnings.simplefilter("ignore", KernelWeaveWarning)
    print(machine())
    taken = walks()
    rows = [
        {
            "kernels": name,
            "call": call,
            "functions": len(way.calls),
            "files": len(way.files),
            "depth": way.depth,
            "calls": way.calls.total(),
        }
        for (name, call), way in taken.items()
    ]
    show(rows)
    if options.names:
        for (name, call), way in taken.items():
            print(f"{call}, kernels {name}")
            for file in way.files:
                entered = sorted(f"{f} {count}" for (where, f), count in way.calls.items() if where == file)
                print(f"  {file}: {', '.join(entered)}")
    if not options.quick:
        write_table("walk", rows, "python benchmarks/walk.py", NOTE)


if __name__ == "__main__":
    main()
