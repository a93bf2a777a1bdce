"""Files made to harm: each is refused with a sentence, before anything in it has an effect."""

from __future__ import annotations

import inspect
import io
import json
import os
import sys
import time
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import Memory
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.feature_selection import mutual_info_classif
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import forked
from kernelweave import KernelFeatures, MKLClassifier, SimilarityClassifier
from kernelweave import kernels as kw
from kernelweave.losses import Hinge
from kernelweave.persistence import ModelFileError, _audit, about, cleared, load, save
from kernelweave.report import make_report
from kernelweave.solvers import registry

X, Y = load_iris(return_X_y=True)
X, Y = X[40:90], (Y[40:90] > 0).astype(int)
SPARSE = sp.csr_matrix(np.where(X > 2, X, 0.0))
ONLINE = {"norm": 2, "fit_intercept": False, "solver": "obscure"}
#: the part of a model file that says what wrote it
LABEL = "kernelweave.json"


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, parts, how="w"):
    with zipfile.ZipFile(path, how, zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def edit(path, change):
    """Change the description."""
    parts = members(path)
    tree = json.loads(parts["schema.json"])
    change(tree)
    write(path, parts | {"schema.json": json.dumps(tree)})


def exchange(path, tree, node, value):
    """Put another array in the place of one, and leave out what is then unused."""
    node["file"], node["__id__"] = "1.npy", 1
    text = json.dumps(tree)
    parts = {
        name: content for name, content in members(path).items() if name in text or name.endswith(".json")
    }
    write(path, parts | {"schema.json": text, "1.npy": npy(value)})


def as_text(value):
    content = json.dumps(value)
    return {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": content}


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.skops"
    save(MKLClassifier(kw.linear()).fit(X, Y), path)
    return path


def refused(path, match):
    with pytest.raises(ModelFileError, match=match):
        load(path)


# ---- parameters that reach beyond the model -----------------------------------------------------------------


@pytest.mark.parametrize("memory", ["cache", Memory("cache", verbose=0)])
def test_paths_are_not_saved(tmp_path, memory, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inner = make_pipeline(StandardScaler(), MKLClassifier(kw.linear()), memory=memory)
    model = CalibratedClassifierCV(inner, cv=2).fit(X, Y)
    for one in (inner, *(fold.estimator for fold in model.calibrated_classifiers_)):
        one[-1].checkpoint = "fit.npz"
    save(model, "model.skops")
    other = load("model.skops")
    assert other.estimator.memory is None
    assert other.estimator[-1].checkpoint is None
    assert all(one.estimator[-1].checkpoint is None for one in other.calibrated_classifiers_)
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert inner.memory is memory, "the model itself is not touched"
    assert inner[-1].checkpoint == "fit.npz"
    assert b"fit.npz" not in b"".join(members("model.skops").values())


@pytest.mark.parametrize("name", ["memory", "checkpoint", "callback"])
@pytest.mark.parametrize("value", ["/tmp/somewhere", "", False, 0, ["a"]])
def test_paths_are_not_loaded(path, name, value):
    save(make_pipeline(StandardScaler(), MKLClassifier(kw.linear())).fit(X, Y), path)

    def change(tree):
        state = tree["content"]["content"]
        if name == "memory":
            state["memory"] = as_text(value)
        else:
            last = state["steps"]["content"][1]["content"][1]
            last["content"]["content"][name] = as_text(value)

    edit(path, change)
    refused(path, rf"{name} is set: a file may not say what is read, written or called")


@pytest.mark.parametrize("jobs", [10**6, 1.5, "all"])
def test_a_file_does_not_start_thousands_of_processes(path, jobs):
    edit(path, lambda tree: tree["content"]["content"].update(n_jobs=as_text(jobs)))
    refused(path, r"model\.n_jobs is not a number of jobs")


def test_a_report_does_not_write_to_the_checkpoint_of_the_fit(tmp_path):
    checkpoint = tmp_path / "fit.npz"
    model = make_pipeline(StandardScaler(), MKLClassifier(kw.linear(), checkpoint=checkpoint)).fit(X, Y)
    before = checkpoint.read_bytes() if checkpoint.exists() else None
    make_report(model, X, Y, n_folds=2, n_repeats=1)
    assert (checkpoint.read_bytes() if checkpoint.exists() else None) == before


def test_what_is_cleared():
    model = make_pipeline(
        StandardScaler(), MKLClassifier(checkpoint="a", callback=print, n_jobs=3, verbose=2, memory_budget="1GB"),
        memory="b",
    )  # fmt: skip
    paths, everything = cleared(model), cleared(model, machine=True)
    assert (paths.memory, paths[-1].checkpoint, paths[-1].callback) == (None, None, None)
    assert (paths[-1].n_jobs, paths[-1].verbose, paths[-1].memory_budget) == (3, 2, "1GB")
    last = everything[-1]
    assert (last.checkpoint, last.n_jobs, last.verbose, last.memory_budget) == (None, None, False, None)


ORDERS = [
    "memory",
    "m__checkpoint",
    "m__callback",
    "n_jobs",
    "m__n_jobs",
    "verbose",
    "m__memory_budget",
    "pre_dispatch",
]


def steps():
    return Pipeline([("s", StandardScaler()), ("m", MKLClassifier(kw.linear()))])


def rename_keys(path, old, new):
    """Give another name to every key of every dictionary that is called ``old``, as in a grid and its results."""

    def change(tree):
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            waiting += (
                list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
            )
            if isinstance(node, dict) and isinstance(node.get("content"), dict) and old in node["content"]:
                node["content"] = {
                    new if key == old else key: value for key, value in node["content"].items()
                }

    edit(path, change)


@pytest.mark.parametrize("order", ORDERS)
def test_a_grid_does_not_name_files_or_processes(path, order):
    search = GridSearchCV(steps(), {"m__C": [1.0, 2.0]}, cv=2).fit(X, Y)
    save(search, path)
    rename_keys(path, "m__C", order)
    refused(path, f"a value for {order.rpartition('__')[2]}: a file may not say")
    search.param_grid = {order: [None]}
    with pytest.raises(
        ModelFileError, match=f"param_grid\\['{order}'\\] is a value for .*save best_estimator_"
    ):
        save(search, path)


NESTED = {
    "a list of grids": lambda: GridSearchCV(steps(), [{"m__C": [1.0]}, {"key": [1.0]}], cv=2),
    "distributions": lambda: RandomizedSearchCV(steps(), {"key": [1.0]}, n_iter=1, cv=2),
    "arguments": lambda: FunctionTransformer(kw_args={"key": 1}),
    "arguments of the inverse": lambda: FunctionTransformer(mutual_info_classif, inv_kw_args={"key": 1}),
    "arguments of a metric": lambda: make_scorer(f1_score, key=1),
    "a value of a grid": lambda: GridSearchCV(FunctionTransformer(), {"kw_args": [{"key": 1}]}, cv=2),
    "a search in a value of a grid": lambda: GridSearchCV(
        steps(), {"m": [GridSearchCV(MKLClassifier(), {"key": [1.0]})]}, cv=2
    ),
    "an array of a grid": lambda: GridSearchCV(steps(), {"m": np.array([{"key": 1}, 2], dtype=object)}),
}


@pytest.mark.parametrize("order", ["memory", "a__checkpoint", "n_jobs"])
@pytest.mark.parametrize("kind", NESTED)
def test_no_dictionary_sets_them(path, kind, order):
    """Whatever scikit-learn applies by name, at every depth."""
    model = MKLClassifier(kw.linear()).fit(X, Y)
    model.also = NESTED[kind]()
    save(model, path)
    load(path)
    rename_keys(path, "key", order)
    refused(path, f"a value for {order.rpartition('__')[2]}")


def test_a_dictionary_is_not_hidden_in_a_text(path):
    save(GridSearchCV(steps(), {"m__C": [1.0, 2.0]}, cv=2).fit(X, Y), path)
    grid = as_text({"memory": ["cache"]})
    edit(path, lambda tree: tree["content"]["content"].update(param_grid=grid))
    refused(path, "a dictionary or a list that is written as a text")


def test_estimators_in_a_grid_name_no_files(path, tmp_path):
    """They are not reached by the parameters of the search."""
    model = MKLClassifier(kw.linear(), checkpoint=tmp_path / "fit.npz", n_jobs=7)
    search = GridSearchCV(steps(), {"m__C": [1.0]}, cv=2).fit(X, Y)
    search.param_grid = {"m": [model], "s": [make_pipeline(StandardScaler(), memory="cache")]}
    save(search, path)
    grid = load(path).param_grid
    assert grid["m"][0].checkpoint is None
    assert grid["m"][0].n_jobs is None
    assert grid["s"][0].memory is None

    def change(tree):
        grid = tree["content"]["content"]["param_grid"]["content"]
        grid["m"]["content"][0]["content"]["content"]["checkpoint"] = as_text("/tmp/somewhere")

    edit(path, change)
    refused(path, r"checkpoint is set: a file may not say")


def test_honest_searches_are_saved_and_fitted_again(path):
    parts = FeatureUnion(
        [("memory", StandardScaler()), ("callback", PCA(2))], transformer_weights={"memory": 2.0}
    )
    columns = ColumnTransformer([("checkpoint", StandardScaler(), [0, 1]), ("b", parts, [2, 3])])
    model = make_pipeline(columns, MKLClassifier(kw.linear(), class_weight={0: 1.0, 1: 2.0}))
    grid = {"mklclassifier__C": [0.1, 1.0], "columntransformer__b__callback__n_components": [1, 2]}
    search = GridSearchCV(model, grid, cv=2, n_jobs=1, scoring=make_scorer(f1_score, pos_label=1)).fit(X, Y)
    save(search, path)
    other = load(path)
    np.testing.assert_array_equal(other.predict(X), search.predict(X))
    assert other.param_grid == grid
    assert other.fit(X, Y).best_params_ == search.best_params_


def test_views_and_classes_have_the_names_they_have(path):
    """A view that is called memory is data: nothing sets it as a parameter."""
    kernels = kw.per_view({"memory": [0, 1], "n_jobs": [2, 3]}, kw.linear())
    names = np.array(["checkpoint", "verbose"])[Y]
    model = MKLClassifier(kernels, class_weight={"checkpoint": 2.0, "verbose": 1.0}).fit(X, names)
    save(make_pipeline(StandardScaler(), model).fit(X, names), path)
    np.testing.assert_array_equal(load(path)[-1].class_weight, model.class_weight)


def test_a_loaded_model_runs_as_one_job_unless_the_caller_says_more(path):
    columns = ColumnTransformer(
        [("a", StandardScaler(), [0, 1]), ("b", StandardScaler(), [2, 3])], verbose=True
    )
    inner = make_pipeline(columns, MKLClassifier(kw.linear(), memory_budget="1GB", n_jobs=1))
    model = GridSearchCV(inner, {"mklclassifier__C": [1.0]}, cv=2).fit(X, Y)
    save(model, path)
    assert [load(path).best_estimator_[0].verbose, load(path).best_estimator_[1].memory_budget] == [
        False,
        None,
    ]

    forged = {"n_jobs": 1000, "verbose": 5, "memory_budget": "1TB", "pre_dispatch": "9**9"}

    def change(tree):
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            waiting += (
                list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
            )
            if isinstance(node, dict) and "n_jobs" in node:
                node.update({name: as_text(value) for name, value in forged.items() if name in node})

    edit(path, change)
    for jobs in (None, 2):
        other = load(path, n_jobs=jobs)
        parts = [other, *other.estimator, *other.best_estimator_]
        assert [part.n_jobs for part in parts] == [jobs] * 5
        assert [part.verbose for part in parts] == [False] * 5
        assert [other.pre_dispatch, parts[2].memory_budget, parts[4].memory_budget] == [
            "2*n_jobs",
            None,
            None,
        ]
        if jobs is None:
            np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_jobs_in_an_array_of_a_grid_are_not_taken(path):
    """Searches keep candidates, whole estimators, in arrays of objects."""
    columns = ColumnTransformer([("a", StandardScaler(), [0, 1])])
    search = GridSearchCV(
        make_pipeline(columns, MKLClassifier(kw.linear())), {"columntransformer": [columns]}, cv=2
    )
    search.fit(X, Y).param_grid = {"columntransformer": np.array([columns, None], dtype=object)}
    columns.n_jobs = 500
    save(search, path)
    assert "500" in members(path)["schema.json"].decode()
    assert load(path).param_grid["columntransformer"][0].n_jobs is None


def test_the_memory_of_a_solver_is_a_number_of_steps(path):
    solver = registry["lbfgs"](memory=7)
    save(MKLClassifier(kw.linear(), loss="logistic", norm="uniform", solver=solver).fit(X, Y), path)
    other = load(path)
    assert other.solver.memory == 7
    assert cleared(other, machine=True).fit(X, Y).solver.memory == 7


def test_what_is_cleared_in_a_grid():
    inner = MKLClassifier(checkpoint="a", n_jobs=3)
    grid = {"memory": ["b"], "m__checkpoint": ["c"], "m__C": [1.0], "m__n_jobs": [2], "m": [inner]}
    copy = cleared(GridSearchCV(steps(), [grid, {"memory": ["d"]}]))
    assert [sorted(one) for one in copy.param_grid] == [["m", "m__C", "m__n_jobs"], []]
    assert copy.param_grid[0]["m"][0].checkpoint is None
    assert copy.param_grid[0]["m"][0].n_jobs == 3
    assert inner.checkpoint == "a"
    copy = cleared(GridSearchCV(steps(), grid, n_jobs=4, pre_dispatch="all"), machine=True)
    assert sorted(copy.param_grid) == ["m", "m__C"]
    assert (copy.n_jobs, copy.pre_dispatch, copy.param_grid["m"][0].n_jobs) == (None, "2*n_jobs", None)


# ---- arrays that point outside ------------------------------------------------------------------------------


def forge_sparse(path, part, change):
    parts = members(path)
    name = next(name for name in parts if name.endswith(".npz"))
    with zipfile.ZipFile(io.BytesIO(parts[name])) as archive:
        inner = {key: archive.read(key) for key in archive.namelist()}
    inner[f"{part}.npy"] = npy(change(np.load(io.BytesIO(inner[f"{part}.npy"]))))
    buffer = io.BytesIO()
    write(buffer, inner)
    write(path, parts | {name: buffer.getvalue()})


def at(position, value):
    def change(values):
        values[position] = value
        return values

    return change


@pytest.mark.parametrize(
    ("part", "change", "why"),
    [
        ("indices", at(0, 2**28), "index of 268435456, but 4 columns"),
        ("indices", at(-1, -7), "index of -7"),
        ("indptr", at(1, 2**28), "pointers do not rise"),
        ("indptr", at(-1, 2**28), "pointers end at"),
        ("indptr", lambda values: values[:-1], "pointers for"),
        ("shape", at(1, 2), "but 2 columns"),
        ("shape", at(0, -1), "its shape is"),
        ("data", lambda values: values[:-1], "values"),
        ("data", lambda values: values.astype(complex), "neither numbers nor texts"),
        ("format", lambda values: np.array(b"bsr"), "'bsr' matrix where the description says csr"),
    ],
)
@pytest.mark.parametrize("kind", ["support", "stream"])
def test_sparse_matrices_that_point_outside(tmp_path, part, change, why, kind):
    model = MKLClassifier(kw.linear() + kw.gaussian(1.0), **(ONLINE if kind == "stream" else {}))
    model = model.partial_fit(SPARSE, Y, [0, 1]) if kind == "stream" else model.fit(SPARSE, Y)
    save(model, tmp_path / "model.skops")
    load(tmp_path / "model.skops")
    forge_sparse(tmp_path / "model.skops", part, change)
    refused(tmp_path / "model.skops", why)


@pytest.mark.parametrize(
    ("part", "change", "why"),
    [
        ("row", at(0, 2**28), "row 268435456|index of 268435456"),
        ("col", at(-1, -7), "-7"),
        ("col", lambda values: values[:-1], "values|indices|entries"),
    ],
)
def test_triples_that_point_outside(tmp_path, part, change, why):
    """No estimator keeps a matrix like that, and a file may."""
    model = MKLClassifier(kw.linear()).fit(X, Y)
    model.kept = SPARSE.tocoo()
    save(model, tmp_path / "model.skops")
    assert load(tmp_path / "model.skops").kept.format == "coo"
    forge_sparse(tmp_path / "model.skops", part, change)
    refused(tmp_path / "model.skops", why)


@pytest.mark.parametrize(
    ("name", "value"),
    [("quad", np.zeros(1)), ("quad", np.zeros((2, 5))), ("quad", np.array([1, 2])), ("coef", np.zeros((3, 1))),
     ("coef", np.zeros(7)), ("coef", np.full((50, 1), np.nan))],
)  # fmt: skip
def test_streaming_state_of_other_sizes(tmp_path, name, value):
    path = tmp_path / "model.skops"
    save(MKLClassifier(kw.linear() + kw.gaussian(1.0), **ONLINE).partial_fit(X, Y, [0, 1]), path)
    tree = json.loads(members(path)["schema.json"])
    node = tree["content"]["content"]["_stream"]["content"]["content"][name]
    exchange(path, tree, node, value)
    refused(path, f"state of partial_fit is damaged: {name}")


def test_an_encoder_that_writes_outside_its_columns(tmp_path):
    path = tmp_path / "model.skops"
    texts = np.array([["a"], ["b"]] * 25, dtype=object)
    save(make_pipeline(OneHotEncoder(sparse_output=False), MKLClassifier(kw.linear())).fit(texts, Y), path)
    model = load(path)
    coder = model[0]
    coder._infrequent_enabled = True
    coder._default_to_infrequent_mappings = [np.array([2**30, 2**30])]
    save(model, path)
    refused(path, "an encoder names categories that it does not have")


@pytest.mark.parametrize(
    "header", ["(4611686018427387904, 4)", "(-1, 3)", "(99999999999,)", "(2, 3)", "(3, 3, 3)"]
)
def test_headers_of_arrays_account_for_every_byte(path, header):
    parts = members(path)
    name = next(name for name in parts if name.endswith(".npy"))
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {header}, }}".ljust(117) + "\n"
    parts[name] = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(72)
    write(path, parts)
    refused(path, "does not have 72 bytes")
    parts[name] = parts[name].replace(b"NUMPY\x01\x00", b"NUMPY\x09\x00")
    write(path, parts)
    refused(path, r"its format is of version \(9, 0\)")


def test_weights_of_another_number_of_kernels(path):
    tree = json.loads(members(path)["schema.json"])
    node = tree["content"]["content"]["weights_"]
    exchange(path, tree, node, np.ones((2, 3, 4)))
    refused(path, "does not fit together")


def test_features_of_other_starts(tmp_path):
    path = tmp_path / "model.skops"
    save(KernelFeatures(kw.linear()).fit(X), path)
    tree = json.loads(members(path)["schema.json"])
    node = tree["content"]["content"]["starts_"]
    exchange(path, tree, node, np.array([0.5, 1.5]))
    refused(path, "does not fit together")


# ---- the archive --------------------------------------------------------------------------------------------


def test_a_second_member_of_a_name(path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        write(path, {LABEL: members(path)[LABEL]}, "a")
    refused(path, "two parts called 'kernelweave.json'")


@pytest.mark.parametrize("extra", [b"#!/bin/sh\necho\n", b"\x80\x04", bytes(64)])
def test_bytes_around_the_archive(path, extra):
    content = path.read_bytes()
    path.write_bytes(extra + content)
    why = "looks like a pickle" if extra[:1] == b"\x80" else "bytes before its first part"
    with pytest.raises(ModelFileError, match=f"is refused: it .*{why}"):
        load(path)
    path.write_bytes(content + extra)
    with pytest.raises(ModelFileError, match="is refused"):
        load(path)


def test_a_member_that_nothing_uses(path):
    write(path, members(path) | {"payload.npy": npy(np.zeros(3))})
    refused(path, "nothing in it uses its part 'payload.npy'")


def test_bytes_between_the_members(path):
    with zipfile.ZipFile(path) as archive:
        second = sorted(info.header_offset for info in archive.infolist())[1]
        start = archive.start_dir
    content = bytearray(path.read_bytes())
    # make room before the second member, and move what the directory says about where members are
    for info in list(zipfile.ZipFile(path).infolist()):
        at = content.index(info.filename.encode(), start)
        if info.header_offset >= second:
            content[at - 4 : at] = (info.header_offset + 8).to_bytes(4, "little")
    content[-6:-2] = (start + 8).to_bytes(4, "little")
    path.write_bytes(bytes(content[:second]) + b"sneaked!" + bytes(content[second:]))
    refused(path, "bytes between its parts")


@pytest.mark.parametrize("schema", [True, False, 1.0, "1", 0, -1, None, [1]])
def test_layouts_that_are_no_number(path, schema):
    parts = members(path)
    label = json.loads(parts[LABEL]) | {"schema": schema}
    write(path, parts | {LABEL: json.dumps(label)})
    refused(path, "its layout is number")
    with pytest.raises(ModelFileError, match="its layout is number"):
        about(path)


@pytest.mark.parametrize(("key", "value"), [("note", []), ("kernelweave", None), ("scikit-learn", 1)])
def test_labels_of_other_kinds(path, key, value):
    parts = members(path)
    write(path, parts | {LABEL: json.dumps(json.loads(parts[LABEL]) | {key: value})})
    refused(path, f"does not say '{key}'")


def node(kind, name, content=None, module="builtins", **more):
    """Return a node of a description."""
    return {"__loader__": kind, "__class__": name, "__module__": module, "content": content} | more


def dictionary(**content):
    keys = node("ListNode", "list", [node("TypeNode", "str") for _ in content])
    return node("DictNode", "dict", content, key_types=keys)


ARRAY = node("NdArrayNode", "ndarray", module="numpy", type="numpy", file="1.npy")
SEVERAL = {"module": "numpy", "type": "json", "shape": node("TupleNode", "tuple", [as_text(1)])}


@pytest.mark.parametrize(
    ("given", "where", "what"),
    [
        (as_text(3), None, None),
        (as_text(3) | {"content": "{"}, "", "text that is no JSON"),
        (as_text([3]), "", "a dictionary or a list that is written as a text"),
        (as_text({}), "", "a dictionary or a list that is written as a text"),
        ("three", "", "something that is not an object at all, which is not on the list"),
        ({"__class__": "str"}, "", "something that is not an object at all, which is not on the list"),
        (node("JsonNode", "eval"), "", "builtins.eval, which is not on the list"),
        (node("FunctionNode", "f1_score", module="sklearn.metrics._classification"), None, None),
        (
            node("FunctionNode", "f1_score", 1, "sklearn.metrics._classification"),
            "",
            "a function with something in it",
        ),
        (node("MaskedArrayNode", "MaskedArray", {"data": ARRAY, "mask": ARRAY}, "numpy.ma"), None, None),
        (
            node("MaskedArrayNode", "MaskedArray", {"data": ARRAY}, "numpy.ma"),
            "",
            "a masked array without values and a mask",
        ),
        (
            node("MaskedArrayNode", "MaskedArray", [ARRAY, ARRAY], "numpy.ma"),
            "",
            "a masked array without values and a mask",
        ),
        (
            node("MaskedArrayNode", "MaskedArray", {"data": ARRAY, "mask": as_text(1)}, "numpy.ma"),
            ".mask",
            "no array",
        ),
        (node("MaskedArrayNode", "MaskedArray", {"data": 3, "mask": ARRAY}, "numpy.ma"), ".data", "no array"),
        (
            node("MaskedArrayNode", "MaskedArray", {"data": ARRAY | {"file": 3}, "mask": ARRAY}, "numpy.ma"),
            ".data",
            "an array without values",
        ),
        (node("SliceNode", "slice", {"start": None, "stop": 3, "step": None}), None, None),
        (
            node("SliceNode", "slice", {"start": None, "stop": [3], "step": None}),
            "",
            "a slice that has no ends",
        ),
        (node("SliceNode", "slice", {"start": True, "stop": 3, "step": 1}), "", "a slice that has no ends"),
        (node("SliceNode", "slice", [0, 3, 1]), "", "a slice that has no ends"),
        (node("ListNode", "list", [as_text(1), as_text([1])]), "[1]", "a dictionary or a list"),
        (node("ListNode", "list", {}), "", "a sequence without entries"),
        (node("NdArrayNode", "ndarray", [as_text(1)], **SEVERAL), None, None),
        (node("NdArrayNode", "ndarray", [as_text([1])], **SEVERAL), "[0]", "a dictionary or a list"),
        (
            node("NdArrayNode", "ndarray", [], **SEVERAL | {"shape": 3}),
            None,
            "shape of model.extra is something that",
        ),
        (ARRAY, None, None),
        (ARRAY | {"file": None}, "", "an array without values"),
        (node("SparseMatrixNode", "csr_matrix", module="scipy.sparse._csr"), "", "an array without values"),
        (dictionary(a=as_text(1)), None, None),
        (dictionary(a=as_text([1])), "['a']", "a dictionary or a list"),
        (dictionary(a=as_text(1)) | {"content": [as_text(1)]}, "", "a dictionary without entries"),
        (dictionary() | {"content": {"a": as_text(1)}}, "", "a dictionary whose keys are not all of a kind"),
        (dictionary() | {"key_types": 3}, None, "keys of model.extra is something that is not an object"),
        (node("ObjectNode", "Hinge", None, "kernelweave.losses.margin"), None, None),
        (
            node("ObjectNode", "Hinge", as_text(1), "kernelweave.losses.margin"),
            "",
            "an object whose state is no dictionary",
        ),
        (
            node(
                "ObjectNode",
                "Hinge",
                dictionary() | {"__class__": "OrderedDict"},
                "kernelweave.losses.margin",
            ),
            "",
            "builtins.OrderedDict, which is not on the list",
        ),
        (node("DTypeNode", "dtype", ARRAY, "numpy"), None, None),
        (node("DTypeNode", "dtype", 3, "numpy"), "", "something that is not an object at all"),
    ],
)
def test_every_kind_of_node_holds_what_its_kind_says(given, where, what):
    """What is well formed is passed; anything else is one finding that names the place."""
    model = node("ObjectNode", "MKLClassifier", dictionary(extra=given), "kernelweave.estimators.classifier")
    found = [str(finding) for finding in _audit.audit(model).findings]
    if what is None:
        assert found == []
    else:
        start = what if where is None else f"model.extra{where} is {what}"
        assert any(line.startswith(start) for line in found), found


def test_a_file_of_something_that_is_no_estimator(path):
    with pytest.raises(ModelFileError, match="a Hinge cannot be saved on its own"):
        save(Hinge(), path)
    edit(path, lambda tree: tree.update({"__class__": "Hinge", "__module__": "kernelweave.losses.margin"}))
    refused(path, "which is no estimator")
    edit(
        path,
        lambda tree: tree.update({"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode"}),
    )
    refused(path, "which is no estimator")


def test_nested_numbers_take_no_time(path):
    """Seven kilobytes that would be a billion objects."""
    node = as_text(1)
    empty = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    for level in range(40):
        node = {
            **empty,
            "__id__": 10 + level,
            "content": [node, {**empty, "__id__": 9 + level, "content": []}],
        }
    edit(path, lambda tree: tree["content"]["content"].update(kernels=node))
    began = time.process_time()
    refused(path, "two different things under the number")
    assert time.process_time() - began < 2.0


def test_objects_that_are_used_twice_stay_one(tmp_path):
    shared = kw.gaussian(1.0)
    model = MKLClassifier(shared).fit(X, Y)
    model.also = [shared, shared]
    save(model, tmp_path / "model.skops")
    other = load(tmp_path / "model.skops")
    assert other.also[0] is other.also[1]


def deep(levels):
    """Lists in lists."""
    node = as_text(1)
    for _ in range(levels):
        node = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": [node]}
    return node


def test_depth_is_bounded(path):
    whole = path.read_bytes()
    edit(path, lambda tree: tree["content"]["content"].update(kernels=deep(160)))
    refused(path, "more than 300 levels")
    path.write_bytes(whole)
    edit(path, lambda tree: tree["content"]["content"].update(kernels=deep(5)))
    assert load(path).predict(X).shape == Y.shape


def test_depth_where_there_is_little_room_left(path):
    """A caller that is deep in calls already gets the same refusal, never a RecursionError."""
    edit(path, lambda tree: tree["content"]["content"].update(kernels=deep(140)))

    def further(levels):
        return load(path) if levels == 0 else further(levels - 1)

    assert further(0).predict(X).shape == Y.shape
    refusals = 0
    # how much room a call takes differs between versions of Python
    for room in range(400, 60, -20):
        try:
            assert further(sys.getrecursionlimit() - room - len(inspect.stack(0))).predict(X).shape == Y.shape
        except ModelFileError as error:
            refusals += "levels" in str(error)
    assert refusals


@pytest.mark.parametrize("member", ["schema.json", LABEL])
def test_deep_json(path, member):
    write(path, members(path) | {member: "[" * 200_000 + "]" * 200_000})
    refused(path, "nested too deeply")


def test_deep_json_in_a_text(path):
    bad = as_text(1) | {"content": "[" * 200_000 + "]" * 200_000}
    edit(path, lambda tree: tree["content"]["content"].update(kernels=bad))
    refused(path, "text that is no JSON")


def test_size_is_bounded(path):
    write(path, members(path) | {"zeros.npy": bytes(501_000_000)})
    assert path.stat().st_size < 10**6
    began = time.process_time()
    refused(path, "raise max_bytes if you trust it")
    assert time.process_time() - began < 2.0
    with pytest.raises(ModelFileError, match="raise max_bytes"):
        load(path, max_bytes=1000)


def test_a_description_out_of_proportion(path):
    parts = members(path)
    write(path, parts | {"schema.json": parts["schema.json"] + b" " * 60_000_000})
    refused(path, "more than a model file needs")


def test_other_kinds_of_files_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        refused(path, "not a regular file")


@pytest.mark.parametrize("error", [RuntimeError, ValueError])
@pytest.mark.parametrize("name", ["__repr__", "predict", "decision_function"])
def test_a_model_that_cannot_be_used_is_refused_when_it_is_loaded(path, name, error, monkeypatch):
    """Printed and asked for a prediction, once and on a copy."""

    def fails(*given):
        raise error("not today")

    monkeypatch.setattr(MKLClassifier, name, fails)
    refused(path, "not today")


@pytest.mark.parametrize("kind", ["dict", "table", "matrices"])
def test_a_model_of_incomplete_views_is_tried_on_rows_that_lack_what_samples_lacked(
    tmp_path, kind, monkeypatch
):
    """A ValueError is allowed there: such rows are made up, and the model was not fitted on them."""
    rng = np.random.default_rng(0)
    first, second, third = rng.normal(size=(3, 40, 2))
    y = first[:, 0] + second[:, 0] > 0
    second[5:15], third[20:28] = np.nan, np.nan
    bank = kw.linear()
    X = {"first": first, "second": second, "third": third}
    if kind == "table":
        X = np.hstack(list(X.values()))
        bank = kw.per_view({"first": slice(0, 2), "second": slice(2, 4), "third": slice(4, 6)}, bank)
    elif kind == "matrices":
        bank, X = "precomputed", np.array([view @ view.T for view in X.values()])
    save(MKLClassifier(bank, norm=2, missing="mean").fit(X, y), tmp_path / "model.skops")
    tried = []

    def predict(model, rows):
        tried.append(rows)
        raise ValueError("not of these")

    monkeypatch.setattr(MKLClassifier, "predict", predict)
    load(tmp_path / "model.skops")
    lacking = set()
    for rows in tried:
        if kind == "matrices":
            lacks = np.isnan(rows).all(axis=2).T
        else:  # a dictionary has a row without views before these
            table = np.hstack(list(rows.values())) if isinstance(rows, dict) else rows.astype(float)
            lacks = np.isnan(table).reshape(len(table), 3, 2).all(axis=2)
        lacking |= set(map(tuple, lacks.tolist()))
    assert lacking == {(False, False, False), (False, True, False), (False, False, True)}


def test_a_file_that_grows_while_it_is_read(path, monkeypatch):
    about = os.fstat
    monkeypatch.setattr(
        os, "fstat", lambda handle: os.stat_result([*about(handle)[:6], about(handle).st_size - 1, 0, 0, 0])
    )
    refused(path, "it grew while it was read")


def test_the_file_is_read_once(path, monkeypatch):
    """What was checked is what is built, whatever becomes of the file meanwhile."""
    expected, check = load(path).predict(X), zipfile.ZipFile.testzip

    def exchange(archive):
        path.write_bytes(b"something else")
        return check(archive)

    monkeypatch.setattr(zipfile.ZipFile, "testzip", exchange)  # of what was read, before anything is built
    np.testing.assert_array_equal(load(path).predict(X), expected)
    assert path.read_bytes() == b"something else"


def test_forged_files_do_not_end_the_process(tmp_path):
    """The same in a process of its own, which a wrong index could take down."""
    path = tmp_path / "model.skops"
    save(MKLClassifier(kw.linear() + kw.gaussian(1.0), **ONLINE).partial_fit(SPARSE, Y, [0, 1]), path)
    forge_sparse(path, "indices", at(0, 2**30))
    code = (
        "import sys, numpy as np, scipy.sparse as sp\n"
        "from kernelweave.persistence import load, ModelFileError\n"
        "try:\n    m = load(sys.argv[1]); m.predict(sp.csr_matrix(np.ones((2, 4))))\n"
        "except ModelFileError as error:\n    print('refused')"
    )
    assert forked.run(code, path).stdout.strip() == "refused"


def test_a_similarity_model_with_classes_that_it_does_not_have(tmp_path):
    path = tmp_path / "model.skops"
    model = SimilarityClassifier(method="denoise").fit(kw.gaussian(1.0)(X, X), Y)
    model.classes_ = np.array([0, 1, 2])
    save(model, path)
    with pytest.raises(ModelFileError, match=r"classes of shape \(3,\) for decisions of shape \(1,\)"):
        load(path)
