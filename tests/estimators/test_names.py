"""Names that can be guessed: parameters of kernels, kernels and norms by name, columns, and what is said of a wrong one."""

from __future__ import annotations

import json
import pickle
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import pairwise

import kernelweave
from kernelweave import (
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    NoisyLabelMKLClassifier,
    Views,
    norms,
    similarity,
)
from kernelweave import kernels as kw
from kernelweave.cli import main
from kernelweave.persistence import load, save

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
Y = (X[:, 0] + 0.5 * RNG.normal(size=40) > 0).astype(int)
NAMES = ["mean a", "mean b", "se a", "age"]
FRAME = pd.DataFrame(X, columns=NAMES)
SCHEMA = kw.Schema(4)


def named(spec, schema=SCHEMA):
    """Names of the kernels of a spec."""
    return [kernel.name for kernel in kw.expand_kernels(spec, schema)]


# ---- parameters of kernels -----------------------------------------------------------------------------------------

ONE = [
    kw.gaussian(1.0),
    kw.gaussian([1.0]),
    kw.gaussian([1.0, 2.0]),
    kw.gaussian(gamma=[0.5, 1.0]),
    kw.always(kw.gaussian([1.0, 2.0])),
]


@pytest.mark.parametrize("bank", ONE, ids=["one", "list of one", "two", "gammas", "always"])
@pytest.mark.parametrize("name", ["kernels__gaussian__width", "kernels__width"])
def test_one_name_whatever_the_call(bank, name):
    model = clone(MKLClassifier(bank))
    assert named(model.set_params(**{name: 3.0}).kernels) == ["gaussian(width=3)"]
    assert model.get_params()["kernels__gaussian__width"] == 3.0
    assert named(model.set_params(**{name: [0.5, 4.0]}).kernels) == [
        "gaussian(width=0.5)",
        "gaussian(width=4)",
    ]
    model.set_params(kernels=model.kernels + kw.linear()).fit(X, Y)
    assert model.weights_.shape == (3,)
    assert (
        named(clone(model).kernels)
        == named(pickle.loads(pickle.dumps(model)).kernels)
        == list(model.kernel_names_)
    )


AMONG = {
    "on columns": (kw.gaussian([1.0, 2.0]).on([0, 1]), ["gaussian(width=5) on features 0, 1"]),
    "in a sum": (kw.gaussian([1.0, 2.0]) + kw.linear(), ["gaussian(width=5)", "linear"]),
    "on two views": (
        kw.gaussian([1.0, 2.0]).on(0) + kw.gaussian(3.0).on(1),
        ["gaussian(width=5) on feature 0", "gaussian(width=5) on feature 1"],
    ),
    "by feature": (
        kw.per_feature(kw.gaussian([1.0, 2.0]), columns=[0, 1]),
        ["gaussian(width=5) on feature 0", "gaussian(width=5) on feature 1"],
    ),
    "by view": (
        kw.per_view({"v": [0, 1]}, kw.gaussian([1.0, 2.0]) + kw.linear()),
        ["gaussian(width=5) on v", "linear on v"],
    ),
    "by group": (kw.from_groups({"g": [0, 1]}, kw.gaussian([1.0, 2.0])), ["gaussian(width=5) on g"]),
    "one of two kinds": (kw.gaussian(1.0) + kw.gaussian(1.0, relative=True), ["gaussian(width=5)", "gaussian(width=5 x median)"]),
}  # fmt: skip


@pytest.mark.parametrize("where", AMONG)
def test_the_same_name_wherever_the_kernel_is(where):
    bank, wanted = AMONG[where]
    model = clone(MKLClassifier(bank)).set_params(kernels__gaussian__width=5)
    assert named(model.kernels) == wanted
    assert model.get_params()["kernels__gaussian__width"] == 5
    assert named(bank) != wanted  # the given one is as it was


def test_other_families_have_their_own_words():
    bank = (
        kw.polynomial(degree=[1, 2]) + kw.chi2(gamma=1.0) + kw.periodic(period=[7.0, 24.0]) + kw.sigmoid(0.1)
    )
    bank.set_params(polynomial__degree=[2, 3], chi2__gamma=[1, 2], periodic__period=12.0, sigmoid__gamma=0.2)
    assert named(bank) == [
        "polynomial(degree=2)", "polynomial(degree=3)", "chi2(gamma=1)", "chi2(gamma=2)",
        "periodic(period=12, width=1)", "sigmoid(gamma=0.2, coef0=0)",
    ]  # fmt: skip
    bank = kw.random_fourier([1.0, 2.0], n_features=10) + kw.nystroem(kw.gaussian(1.0), rank=5)
    bank.set_params(random_fourier__width=3.0, nystroem__rank=7, nystroem__width=2.0)
    assert named(bank) == ["random_fourier(width=3, n_features=10)", "nystroem(gaussian(width=2), rank=7)"]


def test_kernels_of_objects_have_names_like_the_others():
    words = ["weave", "wave", "loom", "bloom", "weft", "warp", "woof", "worn"]
    for call in (kw.spectrum(2), kw.spectrum([2]), kw.spectrum([1, 2])):
        model = clone(MKLClassifier(call)).set_params(kernels__spectrum__k=[1, 3]).fit(words, [0, 1] * 4)
        assert list(model.kernel_names_) == ["spectrum(k=1)", "spectrum(k=3)"]
    bank = kw.weighted_degree(2) + kw.weisfeiler_lehman(2)
    bank.set_params(weighted_degree__degree=[2, 3], weisfeiler_lehman__iterations=[1, 2])
    assert len(bank) == 4


def test_one_of_several_has_a_number():
    bank = kw.gaussian([1.0, 2.0]) + kw.linear()
    bank.set_params(gaussian_2__width=9.0)
    assert bank.get_params()["gaussian_2__width"] == 9.0
    assert bank.get_params()["gaussian__width"] == [1.0, 9.0]
    assert named(bank.set_params(gaussian=kw.cosine())) == ["cosine", "linear"]
    every = [name for name in clone(bank).get_params() if not name[0].isdigit()]
    assert all(name.isidentifier() for name in every)


def test_names_of_earlier_versions_are_kept():
    bank = kw.gaussian([1.0, 2.0]) + kw.per_feature(kw.gaussian([1.0]), columns=[0])
    names = {
        "0__width": 5.0, "gaussian-2__width": 6.0, "perfeature__stack__0__width": 7.0, "2__columns": [1],
    }  # fmt: skip
    assert names.keys() <= bank.get_params().keys()
    bank.set_params(**names)
    assert named(bank) == ["gaussian(width=5)", "gaussian(width=6)", "gaussian(width=7) on feature 1"]
    for factory, name in {
        kw.gaussian: "widths", kw.laplacian: "widths", kw.matern: "widths", kw.rational_quadratic: "widths",
        kw.random_fourier: "widths", kw.polynomial: "degrees", kw.periodic: "periods", kw.sigmoid: "gammas",
        kw.chi2: "gammas",
    }.items():  # fmt: skip
        assert named(factory(**{name: [1, 2]})) == named(factory([1, 2]))


def test_parameters_of_what_was_given_by_name():
    assert named(MKLClassifier().set_params(kernels__gaussian__width=3.0).kernels) == [
        "gaussian(width=3 x median)", "linear",
    ]  # fmt: skip
    model = MKLRegressor(["rbf", "linear"], norm=2, loss="epsilon_insensitive")
    model.set_params(kernels__gaussian__relative=False, norm__p=3, loss__epsilon=0.2)
    assert named(model.kernels) == ["gaussian(width=1)", "linear"]
    assert (model.norm.p, model.loss.epsilon) == (3, 0.2)


@pytest.mark.parametrize(
    ("bank", "name", "said"),
    [
        (kw.gaussian(1.0), "widht", r"Invalid parameter 'widht' for the gaussian kernel. Did you mean 'width'\? There are: relative, width"),
        (kw.gaussian(1.0) + kw.linear(), "gausian__width", r"'gausian' .* Did you mean 'gaussian'\? There are: .*gaussian__width"),
        (kw.gaussian(1.0) + kw.linear(), "gaussian__widths", r"'widths' for the gaussian kernel. Did you mean 'width'"),
        (kw.gaussian(1.0) + kw.linear(), "width", r"'width' for these kernels.* There are: .*gaussian__width"),
        (kw.per_view({"a": [0]}, kw.linear(), kw.cosine()), "view", r"'view' for per_view. Did you mean 'views'"),
        (kw.nystroem(kw.gaussian(1.0)), "ranks", r"Did you mean 'rank'"),
    ],
)  # fmt: skip
def test_a_wrong_name_lists_the_right_ones(bank, name, said):
    with pytest.raises(ValueError, match=said):
        MKLClassifier(bank).set_params(**{f"kernels__{name}": 1.0})


def test_wrong_words_of_a_factory():
    with pytest.raises(
        TypeError, match=r"gaussian has no parameter 'widht'. Did you mean 'width'\? .*width, relative, gamma"
    ):
        kw.gaussian(widht=1.0)
    with pytest.raises(TypeError, match="'widths' is another word for 'width'"):
        kw.gaussian(width=1.0, widths=2.0)
    with pytest.raises(ValueError, match="a width or a gamma"):
        kw.gaussian(2.0, gamma=1.0)
    with pytest.raises(ValueError, match="a width or a gamma"):
        kw.laplacian(relative=True, gamma=1.0)
    with pytest.raises(ValueError, match="is a number, got 'scale'; see relative=True"):
        kw.gaussian(gamma="scale")
    with pytest.raises(ValueError, match="gamma of a gaussian kernel must be a finite number > 0"):
        kw.gaussian(gamma=[1.0, 0.0])


@pytest.mark.parametrize("gamma", [0.3, [0.3, 2.0]])
def test_gamma_is_that_of_scikit_learn(gamma):
    for factory, theirs in ((kw.gaussian, pairwise.rbf_kernel), (kw.laplacian, pairwise.laplacian_kernel)):
        for kernel, one in zip(
            kw.as_spec(factory(gamma=gamma)).expand(SCHEMA), np.atleast_1d(gamma), strict=True
        ):
            np.testing.assert_allclose(kernel(X), theirs(X, gamma=one), rtol=1e-12)


# ---- kernels and norms by name -------------------------------------------------------------------------------------


def test_kernels_by_name():
    assert named(["rbf", "linear", "poly"]) == named(
        kw.gaussian(relative=True) + kw.linear() + kw.polynomial()
    )
    assert named(kw.per_view({"a": [0]}, "cosine")) == ["cosine on a"]
    assert named("tanimoto" + kw.linear()) == ["tanimoto", "linear"]
    assert named(kw.nystroem("rbf", rank=3)) == ["nystroem(gaussian(width=1 x median), rank=3)"]
    for name in ("function", "from_distance", "nystroem", "product"):  # which need more than a name
        with pytest.raises(ValueError, match="unknown preset"):
            named(name)
    with pytest.raises(
        ValueError, match=r"'gausian'.*Did you mean 'gaussian'.*Kernels by name: .*tanimoto.*Presets"
    ):
        MKLClassifier("gausian").fit(X, Y)


@pytest.mark.parametrize("kernels", [kw.gaussian, [kw.linear, kw.gaussian], kw.per_feature])
def test_a_factory_without_parentheses(kernels):
    with pytest.raises(
        ValueError, match=r"kernels\.\w+ is a function that makes kernels: call it, kernels\.\w+\(\.\.\.\)"
    ):
        MKLClassifier(kernels).fit(X, Y)


def test_norms_are_named_as_they_are_printed():
    for norm in (1, 2, 1.5, np.inf):
        made = norms.make_norm(norm)
        assert norms.make_norm(made.label).label == made.label
        assert eval(repr(made), {**vars(norms), "inf": np.inf}).label == made.label
    assert repr(norms.make_norm(2)) == repr(norms.make_norm("l2")) == "Lp(p=2)"
    assert repr(MKLClassifier(norm=norms.Lp())) == "MKLClassifier(norm=Lp(p=2))"
    with pytest.raises(ValueError, match="unknown norm 'l2x'"):
        norms.make_norm("l2x")
    with pytest.raises(ValueError, match="p > 1"):
        norms.make_norm("l0.5")


# ---- other people's kernels ----------------------------------------------------------------------------------------

OTHERS = {
    "rbf_kernel": pairwise.rbf_kernel,
    "laplacian_kernel": pairwise.laplacian_kernel,
    "linear_kernel": pairwise.linear_kernel,
    "polynomial_kernel(degree=2)": partial(pairwise.polynomial_kernel, degree=2),
    "cosine_similarity": pairwise.cosine_similarity,
    "RBF(length_scale=2)": RBF(2.0),
    "2**2 * RBF(length_scale=1)": ConstantKernel(4.0) * RBF(1.0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_functions_on_sets_of_samples_are_found_out(name, tmp_path):
    kernel = kw.function(OTHERS[name])
    assert kernel.name == name
    np.testing.assert_allclose(kernel(X), OTHERS[name](X, X), atol=1e-12)
    np.testing.assert_allclose(kernel(X[:3], X), OTHERS[name](X[:3], X), atol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(OTHERS[name](X, X)), atol=1e-12)
    model = MKLClassifier([OTHERS[name], kw.linear()], norm=2, tol=1e-8).fit(X, Y)
    other = MKLClassifier("precomputed", norm=2, tol=1e-8).fit([OTHERS[name](X), X @ X.T], Y)
    np.testing.assert_allclose(model.weights_, other.weights_, atol=1e-3)
    if not isinstance(OTHERS[name], partial):  # which a file has no word for
        save(model, tmp_path / "model.skops")
        np.testing.assert_array_equal(load(tmp_path / "model.skops").predict(X), model.predict(X))


def test_functions_of_two_samples_stay_what_they_are():
    pairs = {
        "min": lambda a, b: float(np.minimum(np.abs(a), np.abs(b)).sum()),
        "product": lambda a, b: a @ b,
        "texts": lambda a, b: float(len(set(a) & set(b))),
        "fails on sets": lambda a, b: {True: 1.0}[bool(a[0] == b[0])] if a[0] == b[0] else 0.0,
    }
    for name, f in pairs.items():
        samples = ["weave", "wave", "loom", "bloom"] if name == "texts" else X[:6]
        wanted = [[f(a, b) for b in samples] for a in samples]
        np.testing.assert_allclose(kw.function(f)(samples), wanted, atol=1e-12)


def test_the_parameters_of_their_kernels():
    model = clone(MKLClassifier(kw.function(RBF(1.0)))).set_params(kernels__function__length_scale=3.0)
    assert named(model.kernels) == ["RBF(length_scale=3)"]
    np.testing.assert_allclose(model.kernels(X), kw.gaussian(3.0)(X))


def test_a_kernel_of_time_series():
    metrics = pytest.importorskip("tslearn.metrics")
    series = np.sin(np.linspace(0, 6, 20) * (1 + 0.5 * Y[:, None])) + 0.2 * RNG.normal(size=(40, 20))
    model = MKLClassifier([partial(metrics.cdist_gak, sigma=s) for s in (1.0, 4.0)]).fit(series, Y)
    assert model.score(series, Y) > 0.9


# ---- columns -------------------------------------------------------------------------------------------------------

SELECTED = {
    "mean *": [0, 1],
    "?e a": [2],
    "se a": [2],
    "*a*": [0, 1, 2, 3],
    ("mean *", "mean a", "age"): [0, 1, 3],
    make_column_selector(pattern="^mean"): [0, 1],
    make_column_selector(dtype_include="number"): [0, 1, 2, 3],
}


@pytest.mark.parametrize("columns", SELECTED, ids=lambda columns: str(columns)[:20])
def test_patterns_and_selectors(columns, tmp_path):
    wanted = kw.linear().on(SELECTED[columns])(X)
    chosen = kw.linear().on(columns)
    np.testing.assert_allclose(chosen(FRAME), wanted)
    (inside,) = kw.per_view({"v": columns}, kw.linear()).expand(kw.Schema.of(FRAME))
    np.testing.assert_allclose(inside(FRAME), wanted)
    model = MKLClassifier(chosen).fit(FRAME, Y)
    same = MKLClassifier(kw.linear().on(SELECTED[columns])).fit(X, Y)
    np.testing.assert_array_equal(model.predict(FRAME), same.predict(X))
    save(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load(tmp_path / "model.skops").predict(FRAME), model.predict(FRAME))


def test_selectors_know_the_types_of_columns():
    table = FRAME.assign(sex=np.where(Y, "m", "f"))
    chosen = kw.linear().on(make_column_selector(dtype_include="number"))
    same = kw.function(lambda a, b: float(a[0] == b[0]), name="same").on(
        make_column_selector(dtype_exclude="number")
    )
    assert named(chosen + same, kw.Schema.of(table)) == [
        "linear on mean a ... age (4 features)",
        "same on sex",
    ]
    assert MKLClassifier(chosen + same).fit(table, Y).predict(table).shape == (40,)


def test_patterns_among_views():
    views = Views({"rna": FRAME[["mean a", "mean b"]], "rnb": FRAME[["se a"]], "age": FRAME[["age"]]})
    assert named(kw.linear().on("rn*") + kw.linear().on("mean*"), kw.Schema.of(views)) == [
        "linear on rn*", "linear on mean*",
    ]  # fmt: skip
    model = MKLClassifier(kw.linear().on("rn*")).fit(views, Y)
    np.testing.assert_allclose(
        model.decision_function(views),
        MKLClassifier(kw.linear()).fit(X[:, :3], Y).decision_function(X[:, :3]),
    )


def test_what_no_column_matches():
    with pytest.raises(ValueError, match=r"there is no column 'meen \*' \(did you mean 'mean .'\?\)"):
        MKLClassifier(kw.linear().on("meen *")).fit(FRAME, Y)
    with pytest.raises(ValueError, match="choose no column of the 4"):
        MKLClassifier(kw.linear().on(make_column_selector(pattern="x"))).fit(FRAME, Y)
    with pytest.raises(ValueError, match="by name or type: pass X as a data frame"):
        MKLClassifier(kw.linear().on(make_column_selector(pattern="x"))).fit(X, Y)
    with pytest.raises(ValueError, match="name a column twice"):  # by name, that is a slip
        MKLClassifier(kw.linear().on(["age", "age"])).fit(FRAME, Y)


# ---- what errors say -----------------------------------------------------------------------------------------------

TEXTS = FRAME.assign(sex=np.where(Y, "m", "f"))


@pytest.mark.parametrize(
    ("fit", "said"),
    [
        (lambda: MKLClassifier().fit(TEXTS, Y), r"column 'sex' holds texts, such as '[mf]', .*kernels.function\(f\).on\('sex'\)"),
        (lambda: MKLClassifier().fit(TEXTS.to_numpy(), Y), r"column 4 holds texts"),
        (lambda: MKLClassifier().fit(FRAME, Y).predict(TEXTS.rename(columns={"sex": "age"}).iloc[:, [0, 1, 2, 4]]), "column 'age' holds texts"),
        (lambda: MKLClassifier("linear").fit({"a": FRAME, "b": TEXTS[["sex"]]}, Y), r"no kernel takes view 'b', which holds texts .*\.on\('b'\)"),
        (lambda: MKLRegressor().fit(FRAME.assign(day=pd.Timestamp("2024-01-31")), X[:, 0]), "column 'day' holds dates"),
    ],
    ids=["table", "array", "new rows", "views", "dates"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_a_column_of_texts_names_itself(fit, said):
    with pytest.raises(ValueError, match=said):
        fit()


def test_texts_that_are_numbers_are_numbers():
    table = FRAME.astype(str).astype(object)
    np.testing.assert_allclose(
        MKLClassifier().fit(table, Y).decision_function(table),
        MKLClassifier().fit(FRAME, Y).decision_function(FRAME),
    )


@pytest.mark.parametrize("cls", [MKLClassifier, MKLClassifierCV, NoisyLabelMKLClassifier])
def test_why_there_is_no_method(cls):
    for name, why in (("partial_fit", "solver='obscure'"), ("predict_proba", "loss='logistic'")):
        if cls is MKLClassifierCV and name == "predict_proba" and hasattr(cls(), name):
            continue
        assert not hasattr(cls(), name)
        with pytest.raises(AttributeError, match=f"This '{cls.__name__}' has no attribute '{name}': .*{why}"):
            getattr(cls(), name)
    assert MKLClassifier(loss="logistic").predict_proba.__doc__ == MKLClassifier.predict_proba.__doc__


def test_what_a_wrong_column_of_the_command_line_is_told(tmp_path):
    FRAME.assign(sick=Y).to_csv(tmp_path / "data.csv", index=False)
    for target, said in {
        "label": "There are mean a, mean b, se a, age, sick.",
        "Sik": "Did you mean 'sick'?",
    }.items():
        done = CliRunner().invoke(main, ["fit", str(tmp_path / "data.csv"), "--target", target, "--json"])
        assert said in " ".join(done.stderr.split())
        assert done.exit_code


# ---- similarities --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", ["Denoise", "Flip", "Shift", "Square"])
def test_transformers_of_similarities_have_their_old_names_too(old, tmp_path):
    new = f"{old}Spectrum"
    cls = getattr(similarity, new)
    for module in (kernelweave, kernelweave.estimators, similarity):
        assert getattr(module, old) is getattr(module, new) is cls
        assert old not in dir(module)
    step = cls().fit(np.tanh(X @ X.T))
    save(step, tmp_path / "new.skops")
    with (
        zipfile.ZipFile(tmp_path / "new.skops") as new_file,
        zipfile.ZipFile(tmp_path / "old.skops", "w") as file,
    ):
        for name in new_file.namelist():
            content = new_file.read(name)
            if name == "schema.json":
                described = json.loads(content)
                assert described["__class__"] == new
                content = json.dumps(described | {"__class__": old}).encode()
            file.writestr(name, content)
    restored = load(tmp_path / "old.skops")
    assert type(restored) is cls
    np.testing.assert_array_equal(restored.transform(np.tanh(X @ X.T)), step.transform(np.tanh(X @ X.T)))
