"""Resident memory of this process, and its peak."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")
GB = 1e9


def _status(field: str) -> int | None:
    """Bytes of a line of /proc/self/status, None where there is none."""
    if not STATUS.exists():
        return None
    for line in STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    return None


def resident() -> int:
    """Bytes resident now; the peak where the system does not say."""
    now = _status("VmRSS")
    return peak() if now is None else now


def peak() -> int:
    """Most bytes resident since the start, or since ``reset_peak``."""
    # ru_maxrss is the fallback only: on Linux a child inherits the figure of the parent that started it
    high = _status("VmHWM")
    if high is not None:
        return high
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def reset_peak() -> bool:
    """Let the peak start from what is resident now; False where the system cannot."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True
