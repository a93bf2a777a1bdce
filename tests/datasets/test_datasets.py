"""Loaders: the local folder, the checksum, OpenML (a stand-in for it), and the sentence when neither is there."""

from __future__ import annotations

import hashlib
import os
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer
from sklearn.utils import Bunch

from kernelweave import datasets
from kernelweave.datasets import MANIFEST, Entry, OpenML

CSV = "f1,f2,label\n0.5,1,g\n1.5,2,b\n2.5,3,g\n"


def entry_of(content: bytes, file: str = "uci/toy.csv", **changes) -> Entry:
    values = {
        "name": "toy",
        "title": "A toy",
        "file": file,
        "sha256": hashlib.sha256(content).hexdigest(),
        "source": "made here",
        "counts": {"b": 1, "g": 2},
        "views": {"": 2},
        "openml": {"": OpenML(1, "Class")},
        "openml_labels": {"bad": "b", "good": "g"},
    }
    return Entry(**{**values, **changes})


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A data folder with one file that the manifest knows."""
    (tmp_path / "uci").mkdir()
    (tmp_path / "uci" / "toy.csv").write_text(CSV)
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path))
    monkeypatch.setitem(MANIFEST, "toy", entry_of(CSV.encode()))
    return tmp_path


def openml_answer(**kwargs):
    """What ``fetch_openml`` returns for the toy: a constant column, a missing value, labels of its own."""
    assert kwargs["data_id"] == 1
    assert kwargs["target_column"] == "Class"
    data = pd.DataFrame({"a": [0.5, 1.5, 2.5, 3.5], "zero": [0, 0, 0, 0], "c": [1, 2, 3, np.nan]})
    target = pd.Series(["good", "bad", "good", "bad"], dtype="category", name="Class")
    return Bunch(data=data, target=target)


def no_network(**kwargs):
    raise URLError("no route to host")


def test_local_file(toy, monkeypatch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", no_network)
    bunch = datasets.load_uci("toy")
    assert bunch.data.shape == (3, 2)
    assert bunch.target.tolist() == ["g", "b", "g"]
    assert bunch.feature_names == ["f1", "f2"]
    assert bunch.target_names.tolist() == ["b", "g"]
    assert bunch.frame is None
    assert bunch.origin == str(toy / "uci" / "toy.csv")
    assert "made here" in bunch.DESCR
    assert datasets.available()["toy"]


def test_frame_and_pair(toy):
    bunch = datasets.load_uci("toy", as_frame=True)
    assert list(bunch.frame.columns) == ["f1", "f2", "label"]
    assert isinstance(bunch.target, pd.Series)
    X, y = datasets.load_uci("toy", return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data.to_numpy())
    np.testing.assert_array_equal(y, bunch.target.to_numpy())


def test_changed_file_is_refused(toy):
    (toy / "uci" / "toy.csv").write_text(CSV.replace("0.5", "0.6"))
    with pytest.raises(ValueError, match="sha256"):
        datasets.load_uci("toy")


def test_openml_where_the_folder_has_nothing(toy, monkeypatch):
    (toy / "uci" / "toy.csv").unlink()
    monkeypatch.setattr("sklearn.datasets.fetch_openml", openml_answer)
    bunch = datasets.load_uci("toy")
    np.testing.assert_array_equal(bunch.data, [[0.5, 1], [1.5, 2], [2.5, 3]])
    assert bunch.target.tolist() == ["g", "b", "g"]
    assert bunch.feature_names == ["a", "c"]
    assert bunch.origin == "OpenML 1"


def test_openml_that_has_changed_is_refused(toy, monkeypatch):
    (toy / "uci" / "toy.csv").unlink()
    monkeypatch.setattr("sklearn.datasets.fetch_openml", openml_answer)
    monkeypatch.setitem(MANIFEST, "toy", entry_of(CSV.encode(), counts={"b": 1, "g": 20}))
    with pytest.raises(ValueError, match="as the manifest describes"):
        datasets.load_uci("toy")
    monkeypatch.setitem(MANIFEST, "toy", entry_of(CSV.encode(), openml_labels={"bad": "b"}))
    with pytest.raises(ValueError, match="labels other than"):
        datasets.load_uci("toy")


def canonical_digest(values, labels):
    """SHA-256 of the shape and the sorted rows, of values to eight decimals and the number of the label."""
    codes = np.searchsorted(sorted(set(labels.tolist())), labels)
    rounded = np.round(np.asarray(values, dtype=float), 8) + 0.0
    rows = sorted([*row, float(code)] for row, code in zip(rounded.tolist(), codes, strict=True))
    table = np.array(rows, dtype="<f8")
    return hashlib.sha256(f"{table.shape}".encode() + table.tobytes()).hexdigest()


def test_openml_values_that_have_changed_are_refused(toy, monkeypatch):
    (toy / "uci" / "toy.csv").unlink()
    values, labels = np.array([[0.5, 1], [1.5, 2], [2.5, 3]]), np.array(["g", "b", "g"])
    known = OpenML(1, "Class", canonical_digest(values, labels))
    monkeypatch.setitem(MANIFEST, "toy", entry_of(CSV.encode(), openml={"": known}))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", openml_answer)
    np.testing.assert_array_equal(datasets.load_uci("toy").data, values)

    def changed(change):
        def answer(**kwargs):
            bunch = openml_answer(**kwargs)
            change(bunch)
            return bunch

        return answer

    def shuffle(bunch):
        bunch.data, bunch.target = bunch.data.iloc[::-1], bunch.target.iloc[::-1]

    def last_bit(bunch):
        bunch.data.iloc[0, 0] = np.nextafter(0.5, 1)

    def value(bunch):
        bunch.data.iloc[0, 0] = 0.50001

    def labels_swapped(bunch):
        bunch.target.iloc[0], bunch.target.iloc[1] = "bad", "good"

    def columns_swapped(bunch):
        bunch.data = bunch.data[["c", "zero", "a"]]

    for harmless in (shuffle, last_bit):
        monkeypatch.setattr("sklearn.datasets.fetch_openml", changed(harmless))
        assert datasets.load_uci("toy").data.shape == (3, 2)
    for harmful in (value, labels_swapped, columns_swapped):
        monkeypatch.setattr("sklearn.datasets.fetch_openml", changed(harmful))
        with pytest.raises(ValueError, match="OpenML data set 1 is not the table of the manifest"):
            datasets.load_uci("toy")


def test_the_digest_of_a_table_that_is_at_hand(monkeypatch):
    """scikit-learn comes with what OpenML has as data set 1510."""
    X, y = load_breast_cancer(return_X_y=True)
    entry = MANIFEST["wdbc"]
    written = {label: code for code, label in entry.openml_labels.items()}
    labels = np.array([written["M"], written["B"]])[y]
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)

    def loaded(X, labels):
        frame = pd.DataFrame(X, columns=[f"V{j + 1}" for j in range(X.shape[1])])
        bunch = Bunch(data=frame, target=pd.Series(labels, dtype="category", name="Class"))
        monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: bunch)
        return datasets.load_uci("wdbc").data

    np.testing.assert_array_equal(loaded(X, labels), X)
    np.testing.assert_array_equal(loaded(X[::-1], labels[::-1]), X[::-1])
    with pytest.raises(ValueError, match="is not the table of the manifest"):
        loaded(X, labels[::-1])


def test_a_folder_in_the_home_of_a_user_without_one(toy, monkeypatch):
    """HOME is not set, and no table knows the user: the folder is not there, which is all that can be said."""

    def unknown(uid):
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.setenv("KERNELWEAVE_DATA", "~/data")
    assert not any(datasets.available().values())
    with pytest.raises(FileNotFoundError, match=r"~/data/mnist/.* does not exist"):
        datasets.load_mnist()


def test_neither_source(toy, monkeypatch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", no_network)
    monkeypatch.delenv("KERNELWEAVE_DATA")
    with pytest.raises(OSError, match=r"KERNELWEAVE_DATA is not set.*no route to host.*uci/toy.csv"):
        datasets.load_uci("toy")
    monkeypatch.setenv("KERNELWEAVE_DATA", str(toy / "elsewhere"))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        datasets.load_uci("toy", download=False)


def test_unknown_name():
    with pytest.raises(ValueError, match="Did you mean 'sonar'"):
        datasets.load_uci("sonnar")
    with pytest.raises(ValueError, match="unknown data set 'mfeat'"):
        datasets.load_uci("mfeat")


def test_views(tmp_path, monkeypatch):
    path = tmp_path / "toy.npz"
    np.savez(path, u=np.eye(3), v=np.arange(6.0).reshape(3, 2), y=np.array([0, 1, 1]))
    changes = {"name": "mfeat", "group": "mfeat", "counts": {0: 1, 1: 2}, "views": {"u": 3, "v": 2}}
    monkeypatch.setitem(MANIFEST, "mfeat", entry_of(path.read_bytes(), "toy.npz", **changes))
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path))
    bunch = datasets.load_mfeat()
    assert bunch.views == {"u": [0, 1, 2], "v": [3, 4]}
    np.testing.assert_array_equal(bunch.data[:, bunch.views["v"]], np.arange(6.0).reshape(3, 2))


def test_bags_of_words(tmp_path, monkeypatch):
    words = sp.csr_array(np.array([[1, 0, 2], [0, 3, 0]]))
    path = tmp_path / "toy.npz"
    np.savez(
        path, data=words.data, indices=words.indices, indptr=words.indptr, shape=words.shape,
        y=np.array([0, 1]), terms=np.array(["aid", "bat", "cap"]),
    )  # fmt: skip
    changes = {"views": {"": 3}, "counts": {0: 1, 1: 1}, "openml": {}, "openml_labels": {}, "group": "text"}
    monkeypatch.setitem(MANIFEST, "text1", entry_of(path.read_bytes(), "toy.npz", **changes))
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path))
    bunch = datasets.load_text("text1")
    assert sp.issparse(bunch.data)
    np.testing.assert_array_equal(bunch.data.toarray(), words.toarray())
    assert bunch.feature_names == ["aid", "bat", "cap"]
    frame = datasets.load_text("text1", as_frame=True).frame
    assert list(frame.columns) == ["aid", "bat", "cap", "label"]
    assert "OpenML" not in bunch.DESCR
    monkeypatch.delenv("KERNELWEAVE_DATA")
    with pytest.raises(FileNotFoundError, match=r"toy\.npz \(from"):
        datasets.load_text("text1")


def test_crowd_labels(tmp_path, monkeypatch):
    path = tmp_path / "toy.npz"
    np.savez(
        path, X=np.eye(3), y=np.array(["a", "b", "b"]), X_test=np.ones((2, 3)), y_test=np.array(["a", "b"]),
        ann_item=np.array([0, 0, 1, 2]), ann_worker=np.array(list("uvuv")), ann_label=np.array(list("abba")),
    )  # fmt: skip
    changes = {
        "views": {"": 3},
        "counts": {"a": 1, "b": 2},
        "openml": {},
        "openml_labels": {},
        "group": "crowd",
    }
    monkeypatch.setitem(MANIFEST, "music_genre", entry_of(path.read_bytes(), "toy.npz", **changes))
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path))
    bunch = datasets.load_crowd()
    assert bunch.annotations.columns.tolist() == ["task", "worker", "label"]
    assert bunch.annotations["task"].tolist() == [0, 0, 1, 2]
    assert bunch.test_data.shape == (2, 3)
    assert bunch.test_target.tolist() == ["a", "b"]
    assert bunch.target.tolist() == ["a", "b", "b"]


@pytest.mark.parametrize("name", MANIFEST)
def test_manifest_is_complete(name):
    entry = MANIFEST[name]
    assert len(entry.sha256) == 64
    assert entry.source
    if entry.openml:  # bags of words are not on OpenML
        assert set(entry.openml) == set(entry.views)
        assert set(entry.openml_labels.values()) == set(entry.counts)
        assert all(len(where.sha256) in (0, 64) for where in entry.openml.values())


@pytest.mark.skipif("KERNELWEAVE_DATA" not in os.environ, reason="KERNELWEAVE_DATA is not set")
@pytest.mark.parametrize("name", MANIFEST)
def test_real_files(name):
    if not datasets.available()[name]:
        pytest.skip(f"{name} is not in the folder")
    loaders = {
        "uci": lambda: datasets.load_uci(name, download=False), "mfeat": lambda: datasets.load_mfeat(download=False),
        "text": lambda: datasets.load_text(name), "crowd": lambda: datasets.load_crowd(name),
    }  # fmt: skip
    kind = MANIFEST[name].file.partition("/")[0]
    bunch = loaders.get(
        kind, lambda: datasets.load_similarity(name)
    )()  # checks the sum, the shape and the classes
    data = bunch.data if "data" in bunch else bunch.similarities
    assert np.isfinite(getattr(data, "data", data) if sp.issparse(data) else data).all()
    if name != "wdbc":  # whose file is rounded
        columns = bunch.views if kind == "mfeat" else {"": slice(None)}
        for view, where in MANIFEST[name].openml.items():
            assert where.sha256 in ("", canonical_digest(data[:, columns[view]], bunch.target))
