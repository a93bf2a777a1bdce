"""A short run of the judge of files; ``python -m tests.judge.files`` is the long one."""

from __future__ import annotations

import sys

import pytest

from .files import CATEGORIES, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="waits for a process as POSIX does")


def test_no_file_breaks_anything(tmp_path):
    found = run(70, seed=20261116, keep=tmp_path / "kept")
    assert not found.violations, "\n".join(map(str, found.violations))
    assert set(found.outcomes) == set(CATEGORIES)
    assert all(counts.total() for counts in found.outcomes.values())
    # most damage is found; what is not is harmless
    refused = sum(counts["refused"] for counts in found.outcomes.values())
    assert refused > 55
