"""The section on groups of columns: there where groups are, right in its numbers, absent elsewhere."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.inspection import group_table
from kernelweave.report import make_report

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 12))
Y = np.where(X[:, 0] + X[:, 1] + 0.3 * RNG.normal(size=120) > 0, "up", "down")


def page_of(bank):
    model = MKLClassifier(bank, loss="logistic", C=0.2).fit(X, Y)
    return model, make_report(model, X, Y, n_folds=2, n_repeats=1)


def test_the_section_says_what_the_table_says():
    names = [f"gene {j}" for j in range(12)]
    sets = {f"<set {k}>": names[3 * k : 3 * k + 3] for k in range(4)}
    model, page = page_of(kw.from_groups(sets, kw.linear(), columns=names))
    section = page[page.index('id="groups"') : page.index("<h2", page.index('id="groups"') + 5)]
    rows = group_table(model, X)
    assert f"{int((rows['weight'] > 0).sum())} of 4 groups have weight" in section
    assert "&lt;set 0&gt;" in section
    assert "<set" not in section
    assert rows["top_members"][0] in section
    shares = re.findall(r'data-v="([^"]+)"', section)
    assert any(float(share) == pytest.approx(rows["variance"][0]) for share in shares)
    assert section.count("<svg") == 1


@pytest.mark.parametrize(
    "bank", [kw.per_feature(kw.linear()), kw.per_view({"a": [0, 1], "b": [2, 3]}, kw.linear())]
)
def test_no_section_without_groups(bank):
    assert 'id="groups"' not in page_of(bank)[1]
