"""A cluster of two workers in this process: Dask's own messages, without the start of other processes."""

import pytest
from dask.distributed import Client, LocalCluster


@pytest.fixture(scope="package")
def client():
    options = {"processes": False, "dashboard_address": ":0", "memory_limit": "2GB"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster, Client(cluster) as made:
        yield made
