"""Model files: the same predictions in another process, and nothing but data."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from kernelweave import (
    FlipSpectrum,
    KernelFeatures,
    LPBetaClassifier,
    MeanKernelClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    NoisyLabelMKLClassifier,
    SimilarityClassifier,
    held_similarities,
)
from kernelweave import kernels as kw
from kernelweave.norms import Lp
from kernelweave.persistence import ModelFileError, about, load, save
from kernelweave.persistence import _audit as _allowed
from kernelweave.persistence import _audit as _moved
from kernelweave.similarity import make_similarity_loss, similarity_solvers
from kernelweave.solvers import Solver

FRAME, TARGET = load_iris(return_X_y=True, as_frame=True)
X, Y = FRAME.to_numpy(), TARGET.to_numpy()
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
STACK = np.stack([kernel(X) for kernel in kw.gaussian([1.0, 2.0])])
#: the part of a model file that says what wrote it
LABEL = "kernelweave.json"
VIEWS = kw.per_view({"sepal": slice(0, 2), "petal": ["petal width (cm)"]}, kw.linear(), kw.gaussian(1.0))

MODELS = {
    "names, a problem a class": (MKLClassifier(VIEWS, multi_class="ovr"), FRAME, NAMES),
    "components": (MKLClassifier(kw.gaussian([1.0, 2.0]), norm=Lp(2.0), solver="newton"), X, Y),
    "cross-validated": (MKLClassifierCV(kw.gaussian([1.0, 2.0]), Cs=[1.0, 10.0], cv=3), FRAME, TARGET),
    "noisy labels": (NoisyLabelMKLClassifier(), FRAME, NAMES),
    "noisy labels, confident": (NoisyLabelMKLClassifier(method="confident"), FRAME, NAMES),
    "regression": (MKLRegressor(), X, X[:, 0]),
    "weights per target": (MKLRegressorCV(VIEWS, criterion="reml"), FRAME, X[:, :2]),
    "baseline": (MeanKernelClassifier(), X, Y),
    "calibrated": (CalibratedClassifierCV(MKLClassifier(), cv=2), X, Y),
    "matrices": (MKLClassifier("precomputed"), STACK, Y),
    "held": (MKLClassifier(kw.held(STACK)), np.arange(150), Y),
    "held, in a column": (
        MKLClassifier(kw.held(STACK).on("row") + kw.linear().on("petal width (cm)")),
        FRAME.assign(row=np.arange(150)),
        Y,
    ),
    "groups": (
        MKLClassifier(
            kw.from_groups({"sepal": [0, 1], "petal": [2, 3]}, kw.linear()),
            loss="logistic",
            solver="block_descent",
        ),
        X,
        Y,
    ),
    "nothing to learn from": (MKLClassifier(kw.gaussian(1.0)), np.ones((150, 2)), Y == 1),
    "boosted matrices": (LPBetaClassifier("precomputed"), STACK, Y),
    "sparse": (MKLClassifier(), sp.csr_matrix(X), Y),
    "similarity": (SimilarityClassifier(tol=0.9), STACK[0], Y == 0),
    "streamed": (
        MKLClassifier(kw.nystroem(kw.gaussian(1.0), 10), loss="logistic", norm="uniform", storage="stream"),
        X,
        Y == 1,
    ),
    "pipeline": (
        make_pipeline(
            make_column_transformer(
                (StandardScaler(), ["sepal length (cm)"]),
                (
                    make_pipeline(SimpleImputer(), OneHotEncoder(handle_unknown="ignore")),
                    ["petal width (cm)"],
                ),
                remainder="passthrough",
            ),
            MKLClassifier(),
        ),
        FRAME,
        TARGET,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_comes_back(name, tmp_path):
    model, samples, target = MODELS[name]
    model.fit(samples, target)
    path = tmp_path / "model.skops"
    save(model, path)
    other = load(path)
    np.testing.assert_array_equal(other.predict(samples), model.predict(samples))
    if hasattr(model, "decision_function"):
        np.testing.assert_array_equal(other.decision_function(samples), model.decision_function(samples))
    if hasattr(model, "trace_"):
        pd.testing.assert_frame_equal(other.trace_, model.trace_)
        assert repr(other.certificate_) == repr(model.certificate_)
    assert repr(other) == repr(model)
    assert [p.name for p in tmp_path.iterdir()] == ["model.skops"]


@pytest.mark.parametrize("transformer", [FlipSpectrum(), KernelFeatures(kw.linear())])
def test_transformers(transformer, tmp_path):
    samples = STACK[0] if isinstance(transformer, FlipSpectrum) else X
    transformer.fit(samples, Y)
    save(transformer, tmp_path / "t.skops")
    np.testing.assert_array_equal(
        load(tmp_path / "t.skops").transform(samples), transformer.transform(samples)
    )


def test_a_stream_can_be_saved_and_goes_on(tmp_path):
    bank = kw.linear() + kw.gaussian(1.0)
    model = MKLClassifier(bank, norm=2, fit_intercept=False, solver="obscure")
    model.partial_fit(X[::2], Y[::2], classes=[0, 1, 2])
    save(model, tmp_path / "model.skops")
    other = load(tmp_path / "model.skops")
    for one in (model, other):
        one.partial_fit(X[1::2], Y[1::2])
    np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))


def test_served_in_another_process(tmp_path):
    model = MKLClassifier(VIEWS).fit(FRAME, NAMES)
    save(model, tmp_path / "model.skops")
    FRAME.to_csv(tmp_path / "new.csv", index=False)
    code = (
        "import sys, numpy, pandas, kernelweave.persistence as p\n"
        "m = p.load(sys.argv[1]); numpy.save(sys.argv[3], m.decision_function(pandas.read_csv(sys.argv[2])))"
    )
    files = [str(tmp_path / name) for name in ("model.skops", "new.csv", "out.npy")]
    subprocess.run([sys.executable, "-c", code, *files], check=True)
    np.testing.assert_array_equal(np.load(files[2]), model.decision_function(FRAME))


def test_what_the_file_says_of_itself(tmp_path):
    path = tmp_path / "model.skops"
    save(MKLClassifier().fit(X, Y), path, note={"target": "species"})
    said = about(path)
    assert (said["format"], said["schema"], said["model"]) == ("kernelweave model", 1, "MKLClassifier")
    assert said["note"] == {"target": "species"}
    assert {"kernelweave", "scikit-learn", "skops", "numpy"} <= set(said)


def my_similarity(a, b):
    return float(a @ b)


class MySolver(Solver):
    """Not the library's, though it has a name."""


@pytest.mark.parametrize(
    ("model", "culprit"),
    [
        (MKLClassifier(kw.gaussian(1.0) + kw.function(my_similarity)), r"kernels\.parts\[1\]\.function .*my_similarity"),
        (MKLClassifier(callback=lambda row: False), r"model\.callback is the function .*lambda"),
        (MKLClassifier(callback=io.StringIO), r"model\.callback"),
        (MKLClassifier(solver=MySolver()), r"model\.solver is a .*MySolver"),
        (make_pipeline(FunctionTransformer(np.log1p), MKLClassifier()), r"steps\[0\]\[1\]\.func .*log1p"),
        (MKLClassifier(class_weight={True: 1.0, False: 2.0}), r"keys of model\.class_weight"),
    ],
)  # fmt: skip
def test_code_is_refused_at_save_with_its_name(model, culprit, tmp_path):
    with pytest.raises(ModelFileError, match=culprit):
        save(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_an_older_file_survives_a_failed_save(tmp_path):
    path = tmp_path / "model.skops"
    save(MKLClassifier(), path)
    with pytest.raises(ModelFileError):
        save(MKLClassifier(callback=print), path)
    assert about(path)["model"] == "MKLClassifier"
    assert len(list(tmp_path.iterdir())) == 1


# ---- files that are refused ---------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.skops"
    save(MKLClassifier().fit(X, Y), path)
    return path


def rewrite(path, changes):
    """Write the archive again with some members changed (None drops one)."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()} | changes
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)


def description(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("schema.json"))


def test_a_class_is_found_wherever_it_was():
    """No two classes that a file may hold have one name, so that a name is enough."""
    own = [name for name in _allowed.allowed_objects() if name.startswith("kernelweave.")]
    assert len({name.rpartition(".")[2] for name in own}) == len(own)
    for name in own:
        module, _, kind = name.rpartition(".")
        elsewhere = {"__class__": kind, "__module__": "kernelweave.some.other.place"}
        assert _moved.update_names([{"content": elsewhere}])
        assert elsewhere == {"__class__": kind, "__module__": module}
    for unknown in (
        {"__class__": "Hinge", "__module__": "elsewhere.losses"},
        {"__class__": "Unknown", "__module__": "kernelweave.losses"},
        {"__class__": ["Hinge"], "__module__": 3},
    ):
        before = dict(unknown)
        assert not _moved.update_names(unknown)
        assert unknown == before


def in_other_modules(node):
    """Put every class of the library into a module that does not exist."""
    if isinstance(node, dict):
        node = {key: in_other_modules(value) for key, value in node.items()}
        if str(node.get("__module__")).startswith("kernelweave."):
            node["__module__"] = "kernelweave.before"
        return node
    return [in_other_modules(value) for value in node] if isinstance(node, list) else node


@pytest.mark.parametrize(
    "model",
    [
        SimilarityClassifier(
            method="eskl", loss=make_similarity_loss("l1"), solver=similarity_solvers["eskl"](), tol=0.9
        ),
        SimilarityClassifier(held_similarities(STACK[:, ::5, ::5]), method="emkl", tol=0.9),
        FlipSpectrum(rule="classical"),
    ],
)
def test_models_load_whatever_modules_their_classes_were_in(model, path):
    held = not isinstance(getattr(model, "similarity", ""), str)
    samples = np.arange(30) if held else STACK[0, ::5, ::5]
    model.fit(samples, Y[::5] == 0)
    save(model, path)
    rewrite(path, {"schema.json": json.dumps(in_other_modules(description(path))).encode()})
    again = load(path)
    answer = "transform" if isinstance(model, FlipSpectrum) else "decision_function"
    np.testing.assert_array_equal(getattr(again, answer)(samples), getattr(model, answer)(samples))
    assert type(again) is type(model)


class Harmful:
    def __reduce__(self):
        return print, ("this ran",)


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_in_disguise(tmp_path, capsys, protocol):
    path = tmp_path / "model.skops"
    path.write_bytes(pickle.dumps(Harmful(), protocol=protocol))
    with pytest.raises(ModelFileError, match="looks like a pickle, which can run any code"):
        load(path)
    assert "this ran" not in capsys.readouterr().out


def test_a_pickle_inside_an_archive(path, capsys):
    with zipfile.ZipFile(path) as archive:
        array = next(name for name in archive.namelist() if name.endswith(".npy"))
    content = io.BytesIO()
    np.save(content, np.array([Harmful()], dtype=object), allow_pickle=True)
    rewrite(path, {array: content.getvalue()})
    with pytest.raises(ModelFileError, match=r"cannot be loaded.*allow_pickle"):
        load(path)
    assert "this ran" not in capsys.readouterr().out


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_file_cut_short(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelFileError, match="empty" if share == 0 else "cut short"):
        load(path)


def test_bits_that_flipped(path):
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        at = next(info for info in archive.infolist() if info.compress_size > 200).header_offset + 150
    content[at] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


def test_another_archive(path):
    rewrite(path, {LABEL: None})
    with pytest.raises(ModelFileError, match=r"not one that kernelweave\.persistence\.save wrote"):
        load(path)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (b"{", "no JSON"),
        (b"[]", "does not say"),
        (b'{"format": "kernelweave model", "schema": 99, "kernelweave": "9.0"}', "layout is number 99, of kernelweave 9"),
    ],
)  # fmt: skip
def test_labels_that_do_not_fit(path, label, message):
    rewrite(path, {LABEL: label})
    with pytest.raises(ModelFileError, match=message):
        load(path)
    with pytest.raises(ModelFileError, match=message):
        about(path)


def test_no_description(path):
    rewrite(path, {"schema.json": None})
    with pytest.raises(ModelFileError, match=r"damaged: it has no schema\.json"):
        load(path)
    rewrite(path, {"schema.json": b"not json"})
    with pytest.raises(ModelFileError, match=r"schema\.json is no JSON"):
        load(path)


@pytest.mark.parametrize(
    "stranger",
    [
        {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"},
        {"__class__": "Popen", "__module__": "subprocess", "__loader__": "ObjectNode", "content": None},
        {"__class__": "dict", "__module__": "builtins", "__loader__": "OperatorFuncNode", "content": None},
        {"__class__": "SGDClassifier", "__module__": "sklearn.linear_model._stochastic_gradient", "__loader__": "ObjectNode"},
        {"__class__": "ufunc", "__module__": "numpy", "__loader__": "FunctionNode"},
        {"__class__": "dict", "__module__": "builtins", "__loader__": "CachedNode"},
        {"__class__": "Path", "__module__": "pathlib", "__loader__": "DictNode", "content": {}, "key_types": None},
        {"__class__": "system", "__module__": "os", "__loader__": "TypeNode"},
        "text",
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["attribute", "key types", "list"])
def test_every_node_is_looked_at(path, stranger, place):
    tree = description(path)
    attributes = tree["content"]
    if place == "attribute":
        attributes["content"]["loss"] = stranger
    elif place == "key types":
        attributes["key_types"] = stranger
    else:
        attributes["content"]["certificates_"]["content"].append(stranger)
    rewrite(path, {"schema.json": json.dumps(tree)})
    with pytest.raises(ModelFileError, match="not on the list of types"):
        load(path)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load(tmp_path / "model.skops")


def test_the_list_is_of_this_library_and_scikit_learn():
    others = [
        name for name in _allowed.allowed_objects() if not name.startswith(("kernelweave.", "sklearn."))
    ]
    assert others == []
    assert "kernelweave.solvers.newton.Newton" in _allowed.allowed_objects()
    assert f"{__name__}.MySolver" not in _allowed.allowed_objects()


#: parameters that are somebody's choice for their own machine; what becomes of them: test_hostile_files.py
MACHINE = {"memory", "checkpoint", "callback", "n_jobs", "pre_dispatch", "memory_budget", "verbose"}
#: parameters whose names sound like orders to a machine and are none: choices among what it has, limits, switches
HARMLESS = {"device", "storage", "verbose_feature_names_out", "max_seconds"}


def test_the_list_of_orders_is_complete():
    """A parameter of any class on the list that sounds like a file, a process or an output is one of those we know."""
    words = ("file", "path", "folder", "dir", "memory", "cache", "checkpoint", "callback", "job", "thread", "process",
             "worker", "verbos", "print", "log_", "url", "host", "port", "client", "address", "dispatch", "device",
             "storage", "seconds", "stream")  # fmt: skip
    known = {"directions", "direction", "handle_missing", "support"}
    for name in sorted(_allowed.allowed_objects()):
        module, _, kind = name.rpartition(".")
        cls = getattr(importlib.import_module(module), kind, None)
        if not hasattr(cls, "get_params"):
            continue
        for parameter in inspect.signature(cls.__init__).parameters:
            if any(word in parameter for word in words) and parameter not in known:
                assert parameter in {*MACHINE, *HARMLESS}, f"{name} has {parameter}"


def test_tables_come_back(path):
    frame = pd.DataFrame(
        {
            "number": [1.5, np.nan, 3.0],
            "whole": np.array([1, 2, 3], dtype=np.int32),
            "truth": [True, False, True],
            "text": ["a", None, "c"],
            "mixed": pd.Series([1, "a", None], dtype=object),
            "kind": pd.Categorical(["x", None, "y"], categories=["y", "x"], ordered=True),
            7: [0.0, 1.0, 2.0],
        }
    )
    model = MKLClassifier(kw.linear()).fit(X, Y)
    for model.trace_ in (frame, pd.DataFrame(index=range(3))):
        save(model, path)
        pd.testing.assert_frame_equal(load(path).trace_, model.trace_)


def test_columns_that_cannot_be_kept(path):
    model = MKLClassifier(kw.linear()).fit(X, Y)
    model.trace_ = pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])})
    with pytest.raises(ModelFileError, match="'when' of a table is of the kind datetime64"):
        save(model, path)
    model.trace_ = pd.DataFrame({"odd": [{1}]})
    with pytest.raises(ModelFileError, match="'odd' of a table holds a set"):
        save(model, path)


def test_pickle_works_for_scikit_learn():
    model = MKLClassifier().fit(X, Y)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X)
    )
