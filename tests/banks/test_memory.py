"""The default budget: half of what the process may use, which is often less than the machine has."""

from __future__ import annotations

import os

import pytest

import forked
from kernelweave._numerics import resources as _limits

GB = 2**30


def make(root, files, mounts, cgroup):
    """Write files of a system under ``root``."""
    for name, content in {**files, "proc/self/mountinfo": mounts, "proc/self/cgroup": cgroup}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return _limits._of_control_groups(str(root))


SECOND = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
FIRST = (
    "30 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
)
SYSTEMS = {
    "second version": (
        {"sys/fs/cgroup/a/b/memory.max": f"{3 * GB}\n"}, SECOND, "0::/a/b\n", 3 * GB,
    ),
    "no limit": (
        {"sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.high": "max\n"}, SECOND, "0::/a\n", None,
    ),
    "a limit above": (
        {"sys/fs/cgroup/a/memory.max": f"{2 * GB}", "sys/fs/cgroup/a/b/c/memory.max": "max"},
        SECOND, "0::/a/b/c\n", 2 * GB,
    ),
    "the smallest of several": (
        {"sys/fs/cgroup/a/memory.max": f"{5 * GB}", "sys/fs/cgroup/a/b/memory.max": f"{7 * GB}"},
        SECOND, "0::/a/b\n", 5 * GB,
    ),
    "throttled before it is killed": (
        {"sys/fs/cgroup/a/memory.max": f"{5 * GB}", "sys/fs/cgroup/a/memory.high": f"{GB}"},
        SECOND, "0::/a\n", GB,
    ),
    "a container that sees its own part": (
        {"sys/fs/cgroup/memory.max": f"{GB}"}, SECOND, "0::/\n", GB,
    ),
    "a container that sees the path of its host": (
        {"sys/fs/cgroup/memory.max": f"{GB}"}, SECOND, "0::/../../docker/0123\n", GB,
    ),
    "first version": (
        {"sys/fs/cgroup/memory/x/memory.limit_in_bytes": f"{GB}"}, FIRST, "4:memory:/x\n3:cpu:/\n", GB,
    ),
    "first version, above": (
        {"sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GB}",
         "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "9223372036854771712"}, FIRST, "4:memory:/x\n", GB,
    ),
    "first version, no limit": (
        {"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}, FIRST, "4:memory:/\n", None,
    ),
    "first version in a container": (
        {"sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GB}"},
        "35 31 0:32 /docker/0123 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", "4:memory:/docker/0123\n", GB,
    ),
    "both versions": (
        {"sys/fs/cgroup/memory/x/memory.limit_in_bytes": f"{2 * GB}", "sys/fs/cgroup/unified/y/memory.max": f"{GB}"},
        FIRST + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", "4:memory:/x\n0::/y\n", GB,
    ),
    "nonsense": (
        {"sys/fs/cgroup/memory.max": "lots"}, SECOND + "what is this\n\n", "0::/\nand this\n", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("system", SYSTEMS)
def test_limits_of_control_groups(tmp_path, system):
    *files, limit = SYSTEMS[system]
    assert make(tmp_path, *files) == limit


def test_a_system_without_control_groups(tmp_path):
    assert _limits._of_control_groups(str(tmp_path)) is None


def test_half_of_the_smallest_counts(monkeypatch):
    def known(*limits):
        monkeypatch.setattr(_limits, "_known_limits", lambda: iter(limits))

    known(8 * GB, 6 * GB, 7 * GB, 4 * GB)
    assert _limits.default_budget() == 2 * GB
    known(8 * GB, 6 * GB)
    assert _limits.default_budget() == 3 * GB
    known(8 * GB)
    assert _limits.default_budget() == 4 * GB
    known()
    assert _limits.default_budget() == 4 * 10**9


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the size of a process is read from /proc")
@pytest.mark.parametrize("name", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_a_limit_of_the_system_is_obeyed(name):
    """With a real limit: what would break it is refused with a number before any work, what is below is fitted."""
    forked.run(
        """
        import resource, sys
        import numpy as np
        from kernelweave import MKLClassifier, kernels as kw
        from kernelweave._numerics.resources import default_budget
        from kernelweave.exceptions import MemoryBudgetError

        X = np.random.default_rng(0).normal(size=(3000, 3)); y = X[:, 0] > 0
        MKLClassifier().fit(X[:30], y[:30])  # imported and compiled
        name, free = sys.argv[1], default_budget()
        used = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in open("/proc/self/status") if " kB" in line}
        used = used["VmSize" if name == "RLIMIT_AS" else "VmData"]
        room = 500 * 2**20
        resource.setrlimit(getattr(resource, name), (used + room, used + room))
        assert 0.3 * room < default_budget() <= 0.5 * room, default_budget()
        assert default_budget() < free
        try:  # 60 kernels of 3000 x 3000
            MKLClassifier(kw.per_feature(kw.laplacian(np.linspace(0.1, 3.0, 20))), storage="dense").fit(X, y)
        except MemoryBudgetError as error:
            assert "memory_budget is" in str(error)
        else:
            raise AssertionError("more was stored than there is")
        model = MKLClassifier(kw.gaussian([1.0, 2.0])).fit(X[:800], y[:800])
        assert model.status_ == "converged"
        """,
        name,
    )
