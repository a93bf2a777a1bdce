"""In a worker of joblib, threads of BLAS, of numba and of the library together are no more than its share."""

from __future__ import annotations

import json
import os
import subprocess
import sys

#: workers of joblib, and threads that each may have
WORKERS, SHARE = 2, 2

SCRIPT = f"""
import json, threading
import numpy as np
from joblib import Parallel, delayed, parallel_config

def fit(seed, n_jobs):
    from threadpoolctl import threadpool_info
    from kernelweave import MKLClassifier, kernels as kw
    from kernelweave._numerics import resources
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(600, 4)), rng.integers(0, 2, 600)
    blas = []

    def look(_):  # in the middle of the fit
        blas.append(max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"))

    model = MKLClassifier(kw.per_feature(kw.gaussian([0.5, 1.0])), n_jobs=n_jobs, callback=look, tol=1e-6).fit(X, y)
    own = sum(thread.name.startswith("kernelweave") for thread in threading.enumerate())
    import numba
    from numba.np.ufunc import parallel
    compiled = numba.get_num_threads() if getattr(parallel, "_is_initialized", False) else 1
    return [1 + own, max(blas), compiled, resources.thread_count(n_jobs)]

with parallel_config("loky", inner_max_num_threads={SHARE}):
    for n_jobs in (None, 5):
        print(json.dumps(Parallel({WORKERS})(delayed(fit)(seed, n_jobs) for seed in range({WORKERS}))))
"""


def test_two_workers_of_joblib():
    """In each of two processes no more threads than joblib gives it, whatever the estimators in it are asked for."""
    unset = {name for name in os.environ if name.endswith("_NUM_THREADS")}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    alone, shared = (json.loads(line) for line in done.stdout.splitlines()[-2:])
    for threads, blas, compiled, _ in alone:
        assert threads * max(blas, compiled) == 1
    for threads, blas, compiled, allowed in shared:
        assert allowed == SHARE
        assert 1 < threads <= allowed
        assert threads * max(blas, compiled) <= allowed
