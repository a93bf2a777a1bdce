"""The papers' tables and figures, run again: one study per paper, the printed numbers beside ours.

``kernelweave reproduce`` is the way in; :func:`load_study` is the same from Python.  Studies are imported when asked
for, so that the names cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .study import Part as Part
    from .study import Study as Study

__all__ = ["STUDIES", "load_study"]

#: name of a study -> what it reproduces; each lives in the folder of its name
STUDIES = {
    "smkl": "SMKL: smooth optimization for effective multiple kernel learning (Xu, Jin, Zhu, King, Lyu, Yang 2010)",
    "stpmkl": "StPMKL: multiple kernel learning from noisy labels (Yang, Mahdavi, Jin, Zhang, Zhou 2012)",
    "obscure": "OBSCURE: online-batch strongly convex multi kernel learning (Orabona, Jie, Caputo 2010)",
    "similarity": "Kernels from similarities: ESKL, EMKL, REKL (Kundu, Tankasali, Bhattacharyya, Ben-Tal 2010)",
    "svrg": "SVRG: multiple kernel learning via multi-epochs SVRG (Alioscha-Perez, Oveneke, Jiang, Sahli 2017)",
}


def load_study(name: str) -> Study:
    """Return a study by name.

    >>> load_study("smkl").name
    'smkl'
    """
    from kernelweave._components import nearest

    if name not in STUDIES:
        raise ValueError(
            f"unknown study {name!r}.{nearest(name, list(STUDIES))} Known studies: {', '.join(STUDIES)}."
        )
    study: Study = import_module(f"kernelweave_studies.{name}").STUDY
    return study
