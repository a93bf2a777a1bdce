"""+ stacks, * multiplies, summed sums inside one kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from kernelweave import kernels as kw
from kernelweave.kernels import Kernel, KernelSpec, Schema, Stack, as_spec, expand_kernels

from .suite import numbers

X = numbers()


def names(spec, d=3):
    return [kernel.name for kernel in as_spec(spec).expand(Schema(d))]


def same(a, b):
    return float(np.array_equal(a, b))


def test_plus_stacks_and_stays_flat():
    one, two, three = kw.linear(), kw.cosine(), kw.gaussian([1, 2])
    bank = one + two + three
    assert isinstance(bank, Stack)
    assert len(bank.parts) == 4
    assert names(bank) == names((one + two) + three) == names(one + (two + three))
    assert names(bank) == ["linear", "cosine", "gaussian(width=1)", "gaussian(width=2)"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["linear", "cosine", "stack", "function", "list"]), min_size=1, max_size=6))
def test_any_sum_expands_in_order(kinds):
    parts = {
        "linear": kw.linear(),
        "cosine": kw.cosine(),
        "stack": kw.gaussian([1.0, 2.0]),
        "function": same,
        "list": [kw.linear(), same],
    }
    total = kw.constant() + parts[kinds[0]]
    for kind in kinds[1:]:
        total = total + parts[kind]
    wanted = ["constant"] + [name for kind in kinds for name in names(parts[kind])]
    assert names(total) == wanted
    assert len(total) == len(wanted)


def test_callables_and_sequences_on_either_side():
    assert names(same + kw.linear()) == ["same", "linear"]
    assert names(kw.linear() + same) == ["linear", "same"]
    assert names([kw.cosine(), same] + kw.linear()) == ["cosine", "same", "linear"]  # noqa: RUF005
    assert names(kw.linear() + (same,)) == ["linear", "same"]  # noqa: RUF005
    assert names(same + kw.gaussian([1, 2])) == ["same", "gaussian(width=1)", "gaussian(width=2)"]


def test_sum_of_a_list():
    assert names(sum([kw.linear(), kw.cosine(), kw.gaussian([1, 2])])) == names(
        kw.linear() + kw.cosine() + kw.gaussian([1, 2])
    )
    assert sum([kw.linear()]).name == "linear"


def test_adding_a_number_is_refused():
    with pytest.raises(ValueError, match="kernels must be"):
        kw.linear() + 3


def test_stack_is_a_sequence():
    bank = kw.gaussian([1, 2, 3]) + kw.linear()
    assert len(bank) == 4
    assert bank[-1].name == "linear"
    assert isinstance(bank[1:3], Stack)
    assert [kernel.name for kernel in bank] == names(bank)
    assert bank


def test_a_stack_that_needs_features_has_no_length():
    bank = kw.linear() + kw.per_feature(kw.linear())
    assert bank
    with pytest.raises(TypeError, match=r"depends on the features.*expand"):
        len(bank)
    with pytest.raises(TypeError, match="depends on the features"):
        list(bank)
    assert len(bank.expand(Schema(3))) == 4


def test_product_of_kernels():
    product = kw.gaussian(2.0) * kw.linear() * same
    assert isinstance(product, Kernel)
    assert len(product.kernels) == 3
    assert product.name == "gaussian(width=2) x linear x same"
    np.testing.assert_allclose((kw.gaussian(2.0) * kw.linear())(X), kw.gaussian(2.0)(X) * kw.linear()(X))


def test_products_of_stacks_are_all_pairs():
    left, right = kw.gaussian([1, 2]), kw.linear() + kw.cosine()
    assert names(left * kw.linear()) == ["gaussian(width=1) x linear", "gaussian(width=2) x linear"]
    assert names(kw.linear() * left) == ["linear x gaussian(width=1)", "linear x gaussian(width=2)"]
    assert names(left * right) == [f"{one.name} x {other.name}" for one in left for other in right]
    assert isinstance(left * right, Stack)
    for kernel, wanted in zip(left * right, [a(X) * b(X) for a in left for b in right], strict=True):
        np.testing.assert_allclose(kernel(X), wanted)


def test_product_with_a_spec_that_waits():
    spec = kw.per_feature(kw.linear()) * kw.constant(2.0)
    assert isinstance(spec, KernelSpec)
    kernels = spec.expand(Schema(4))
    assert len(kernels) == 4
    np.testing.assert_allclose(kernels[2](X), 2 * np.outer(X[:, 2], X[:, 2]))
    assert len((kw.gaussian([1, 2]) * kw.per_feature(kw.linear(), kw.cosine())).expand(Schema(3))) == 12


@pytest.mark.parametrize("number", [2, 2.0, np.float64(2.0), np.array([1.0, 2.0])])
def test_a_number_times_a_kernel_is_refused(number):
    with pytest.raises(TypeError, match="summed"):
        number * kw.linear()
    with pytest.raises(TypeError, match="summed"):
        kw.gaussian([1, 2]) * number


def test_summed_is_one_kernel():
    kernel = kw.summed(kw.gaussian([1.0, 2.0]), kw.linear(), weights=[1.0, 0.5, 2.0])
    assert isinstance(kernel, Kernel)
    wanted = kw.gaussian(1.0)(X) + 0.5 * kw.gaussian(2.0)(X) + 2 * kw.linear()(X)
    np.testing.assert_allclose(kernel(X), wanted)
    assert kernel.name == "gaussian(width=1) + 0.5 gaussian(width=2) + 2 linear"
    assert (kernel * kw.linear()).name.startswith("(gaussian")


def test_summed_refuses_bad_weights():
    with pytest.raises(ValueError, match="2 kernels but 1 weights"):
        kw.summed(kw.linear(), kw.cosine(), weights=[1.0])
    with pytest.raises(ValueError, match="weight in summed"):
        kw.summed(kw.linear(), weights=[-1.0])
    with pytest.raises(ValueError, match="at least one"):
        kw.summed()


def test_parts_of_products_keep_their_columns():
    product = kw.linear().on(0) * kw.linear().on(2)
    np.testing.assert_allclose(product(X), np.outer(X[:, 0], X[:, 0]) * np.outer(X[:, 2], X[:, 2]))
    with pytest.raises(ValueError, match="already on columns"):
        product.on(1)
    with pytest.raises(ValueError, match="already on columns"):
        kw.summed(kw.linear().on(0), kw.linear()).on(1)


@pytest.mark.parametrize("what", [None, 3, {"a": 1}, 1.5, np.arange(3)])
def test_as_spec_refuses(what):
    with pytest.raises(ValueError, match="kernels must be"):
        as_spec(what)


def test_as_spec_points_to_the_holder_and_to_objects():
    with pytest.raises(ValueError, match="held"):
        as_spec(np.zeros((2, 3, 3)))
    with pytest.raises(ValueError, match="not classes"):
        as_spec(type(kw.linear()))


def test_empty_bank():
    for empty in ([], Stack(), ()):
        with pytest.raises(ValueError, match="the bank is empty"):
            expand_kernels(empty, Schema(3))


def test_duplicates_are_named_with_the_way_out():
    with pytest.raises(ValueError, match=r"'linear'.*\.named"):
        expand_kernels(kw.linear() + kw.cosine() + kw.linear(), Schema(3))
    kernels = expand_kernels(kw.linear() + kw.linear().named("again"), Schema(3))
    assert [kernel.name for kernel in kernels] == ["linear", "again"]
    assert kernels[0].base_key == kernels[1].base_key


def test_bases_are_shared_exactly_where_they_are_equal():
    def key(kernel):
        return kernel.base_key

    assert key(kw.gaussian(1.0)) == key(kw.gaussian(2.0)) == ("sqeuclidean", None)
    assert key(kw.gaussian(1.0).on([0, 1])) == key(kw.gaussian(2.0).on((0, 1))) == ("sqeuclidean", (0, 1))
    assert key(kw.gaussian(1.0).on([0, 1])) != key(kw.gaussian(1.0).on([1, 0]))
    assert key(kw.gaussian(1.0)) != key(kw.laplacian(1.0))
    assert key(kw.polynomial(1)) == key(kw.polynomial(2)) != key(kw.polynomial(2, coef0=2.0))
    assert key(kw.polynomial(1)) != key(kw.polynomial(1, gamma=2.0))
    assert key(kw.chi2(1.0)) == key(kw.chi2(2.0))
    assert key(kw.function(same)) == key(kw.function(same, name="other"))
    assert key(kw.function(same)) != key(kw.function(lambda a, b: 1.0))
    assert key(kw.constant(1.0)) != key(kw.constant(2.0))
    assert key(kw.linear() * kw.gaussian(1.0)) == key(kw.linear() * kw.gaussian(1.0))
    assert key(kw.linear() * kw.gaussian(1.0)) != key(kw.linear() * kw.gaussian(2.0))
    assert key(kw.summed(kw.linear(), weights=[1])) != key(kw.summed(kw.linear(), weights=[2]))
    one, two = kw.held(np.ones((2, 3, 3))), kw.held(np.ones((2, 3, 3)))
    assert key(one[0]) == key(one[0]) != key(one[1])
    assert key(one[0]) != key(two[0])


def test_specs_are_components():
    for spec in (
        kw.gaussian([1, 2]) + same,
        kw.per_feature(kw.linear(), columns=[0, 1]),
        kw.per_view({"a": [0], "b": slice(1, 3)}, kw.linear()),
        kw.per_feature(kw.linear()) * kw.cosine(),
        kw.summed(kw.per_feature(kw.linear())),
        kw.nystroem(kw.per_feature(kw.linear()), rank=2),
        kw.default_bank(),
        kw.preset("stpmkl"),
    ):
        copy = clone(spec)
        assert copy is not spec
        assert names(copy) == names(spec)
        assert repr(spec)


def test_stacks_are_values_in_a_grid():
    grid = ParameterGrid({"kernels": [kw.gaussian([1, 2]), kw.gaussian([1, 2]) + kw.linear(), kw.linear()]})
    assert [len(as_spec(point["kernels"]).expand(Schema(2))) for point in grid] == [2, 3, 1]
