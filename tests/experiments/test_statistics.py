"""What tables are made of: means with their spread, runs side by side, effective numbers of kernels."""

import pandas as pd

from kernelweave.experiments._statistics import mean_sd, wide


def test_wide_leaves_incomplete_runs_out():
    rows = pd.DataFrame(
        {"seed": [0, 0, 1], "method": ["a", "b", "a"], "accuracy": [0.5, 0.6, 0.7]},
    )
    table = wide(rows, "seed")
    assert table.index.tolist() == [0]
    assert table.loc[0].to_dict() == {"a": 0.5, "b": 0.6}


def test_mean_and_deviation():
    assert mean_sd([0.5, 0.7]) == "60.0 ± 14.1"
    assert mean_sd([0.5]) == "50.0"
