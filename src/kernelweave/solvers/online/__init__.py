"""Online solvers: stochastic steps on one sample at a time, for (2, r) block norms."""

from ._stream import Stream
from .obscure import Obscure
from .pegasos import Pegasos
from .ufo import UFO

__all__ = ["UFO", "Obscure", "Pegasos", "Stream"]
