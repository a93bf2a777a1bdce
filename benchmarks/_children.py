"""Cases in processes of their own: peak memory and start-up belong to a whole process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from _threads import ONE


def in_child(script: str | Path, case: str, **parameters: Any) -> dict[str, Any]:
    """Run ``script --case case`` with parameters as JSON, and return the JSON object on its last line."""
    command = [sys.executable, str(script), "--case", case, "--parameters", json.dumps(parameters)]
    done = subprocess.run(command, env={**os.environ, **ONE}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"case {case!r} of {Path(script).name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def answer(values: dict[str, Any]) -> None:
    """What a case prints for ``in_child``."""
    print(json.dumps(values), flush=True)
