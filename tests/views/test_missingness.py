"""Refusals and warnings about who lacks what."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave.exceptions import KernelWeaveWarning
from kernelweave.views import (
    MissingRates,
    ViewColumns,
    Views,
    pattern_table,
    refuse_missing,
    warn_of_classes,
)


def views_without(gone):
    values = np.where(np.asarray(gone)[:, None], np.nan, 1.0)
    return Views({"a": np.ones((len(gone), 1)), "b": values})


def test_a_missing_view_is_refused_by_name_and_number():
    with pytest.raises(ValueError, match=r"view 'b' is missing for 3 of 10 samples: write missing='predict'"):
        refuse_missing(views_without(np.arange(10) < 3))
    refuse_missing(views_without(np.zeros(10, dtype=bool)))


def test_missingness_that_depends_on_the_class_is_warned_of():
    codes = np.repeat([0, 1], 60)
    with pytest.warns(
        KernelWeaveWarning, match=r"'b' is missing for 50 % of class 'ill' and 0 % of class 'well'"
    ):
        warn_of_classes(views_without(np.arange(120) < 30), codes, np.array(["ill", "well"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_classes(views_without(np.arange(120) % 3 == 0), codes, np.array(["ill", "well"]))


def test_missingness_that_changes_is_warned_of():
    rates = MissingRates.of(views_without(np.arange(200) < 20))
    with pytest.warns(
        KernelWeaveWarning, match=r"missing for 60 % of the new samples and was missing for 10 %"
    ):
        rates.warn_of_change(views_without(np.arange(50) < 30))
    with pytest.warns(KernelWeaveWarning, match="none of the 30 new samples has view 'b'.*drop_view"):
        rates.warn_of_change(views_without(np.ones(30, dtype=bool)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rates.warn_of_change(views_without(np.arange(50) < 6))
        rates.warn_of_change(views_without(np.ones(3, dtype=bool)))


def test_patterns_are_counted():
    table = pattern_table(views_without(np.arange(10) < 3))
    assert table.to_dict("list") == {"a": [True, True], "b": [True, False], "samples": [7, 3]}


def test_columns_become_views_learnt_where_they_are():
    frame = pd.DataFrame(
        {"x": [1.0, np.nan, 3.0, np.nan], "z": [0.0, 5.0, 2.0, np.nan], "w": [1.0, 2.0, 3.0, 4.0]}
    )
    prepare = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    made = ViewColumns([("first", prepare, ["x", "z"]), ("second", prepare, ["w"])]).fit(frame)
    views = made.transform(frame)
    np.testing.assert_array_equal(views.present[:, 0], [True, True, True, False])
    expected = prepare.fit_transform(frame.loc[:2, ["x", "z"]])
    np.testing.assert_allclose(views["first"][:3], expected)
    assert list(made.get_feature_names_out()) == ["x", "z", "w"]
