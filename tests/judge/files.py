"""Damaged and hostile model files: nothing but a refusal, or a model that predicts or says why not.

    python -m tests.judge.files --cases 2500 --seed 1

Makes small models of every kind, damages their files at random (flips, cuts, edits that keep every checksum right) or
forges them on purpose (nested numbers, sparse matrices and streaming state that point outside, second members, bytes
around the archive, wrong layouts, parameters that name files, keys of dictionaries that name such parameters, code), and
loads each in another process, which predicts samples with and without gaps, prints the model, goes on learning where it
learns from a stream, and fits it again.  A case survives unless

- the process dies (a segmentation fault) or takes more than ``SLOW`` seconds,
- something is run, written, printed, deleted or unpickled that has no business there (an audit hook watches),
- loading raises anything but ``ModelFileError``, or a model of the library alone anything but ``ValueError`` later,
- a file is loaded that has to be refused whatever else is in it.

Prints how many were tried, refused, loaded and survived by category; exits with 1 where one did not survive.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

#: seconds of a processor for a load and a prediction; the files are small
SLOW = 5.0
#: seconds on the clock after which nothing is expected any more
HUNG = 60.0
#: seconds after which a refit is ended: a grid may have many candidates
LONG = 10
#: memory of the process that loads, so that a bomb is an error and not the end of the machine
ROOM = 8 * 2**30
LABEL, DESCRIPTION = "kernelweave.json", "schema.json"


# ---- the models ---------------------------------------------------------------------------------------------------


def samples() -> tuple[Any, Any, Any]:
    """Forty rows of iris, two classes, as an array, a table and labels."""
    from sklearn.datasets import load_iris

    frame, target = load_iris(return_X_y=True, as_frame=True)
    rows = np.r_[30:50, 80:100]
    frame = frame.iloc[rows].reset_index(drop=True).assign(kind=["a", "b"] * 20)
    return frame.drop(columns="kind").to_numpy(), frame, (target.to_numpy()[rows] > 0).astype(int)


def fitted() -> dict[str, tuple[Any, Any]]:
    """Models of every kind that a file can hold, with samples to predict; streams go on with the same samples."""
    import scipy.sparse as sp
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.compose import make_column_transformer
    from sklearn.decomposition import PCA
    from sklearn.metrics import f1_score, make_scorer
    from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    from kernelweave import (
        KernelFeatures,
        MKLClassifier,
        MKLClassifierCV,
        MKLRegressor,
        NoisyLabelMKLClassifier,
        SimilarityClassifier,
    )
    from kernelweave import kernels as kw
    from kernelweave.norms import Grouped

    X, frame, y = samples()
    numbers = frame.drop(columns="kind")
    S = sp.csr_matrix(np.where(X > 2, X, 0.0))
    stack = np.stack([kernel(X) for kernel in kw.gaussian([1.0, 2.0])])
    online = {"norm": 2, "fit_intercept": False, "solver": "obscure"}
    stream = {"loss": "logistic", "norm": "uniform", "storage": "stream"}
    columns = make_column_transformer(
        (StandardScaler(), list(numbers)[:2]), (OneHotEncoder(sparse_output=False), ["kind"])
    )
    three = np.arange(len(y)) % 3
    gaps, views = X.copy(), {"s": X[:, :2].copy(), "p": X[:, 2:].copy()}
    gaps[::4, :2], gaps[1::8, 2:], views["s"][::4], views["p"][2::8] = np.nan, np.nan, np.nan, np.nan
    holes = stack.copy()
    holes[0, ::5], holes[0, :, ::5] = np.nan, np.nan
    two_views = kw.per_view({"s": [0, 1], "p": [2, 3]}, kw.gaussian([1.0, 2.0]) + kw.linear())
    sets = kw.from_groups({"a": ["f0", "f1"], "b": ["f2", "f3"]}, kw.linear())
    named = numbers.set_axis(["f0", "f1", "f2", "f3"], axis=1)
    steps = Pipeline([("s", StandardScaler()), ("m", MKLClassifier(kw.linear()))])
    grid = {"m__C": [0.5, 1.0], "s__with_mean": [True, False]}
    inner = GridSearchCV(
        Pipeline([("s", StandardScaler()), ("p", PCA(2))]), {"p__n_components": [1, 2]}, cv=2
    )
    swapped = GridSearchCV(
        steps, [{"m": [MKLClassifier(kw.gaussian(1.0)), MKLClassifier(kw.linear())]}, {"m__C": [1.0]}],
        cv=2, scoring=make_scorer(f1_score, pos_label=1),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "dense": (MKLClassifier().fit(X, y), X),
            "table": (MKLClassifier(kw.per_view({"s": slice(0, 2), "p": [2]}, kw.linear())).fit(numbers, y), numbers),
            "sparse": (MKLClassifier(kw.gaussian([1.0]) + kw.linear()).fit(S, y), S),
            "classes": (MKLClassifier(kw.gaussian([1.0, 2.0]), multi_class="ovr", max_iter=3).fit(X, three), X),
            "cosine": (MKLClassifier(kw.gaussian([1.0]), normalize="cosine", center=True).fit(X, y), X),
            "regression": (MKLRegressor(kw.laplacian([1.0]) + kw.linear()).fit(X, X[:, 0]), X),
            "chosen": (MKLClassifierCV(kw.gaussian([1.0]), Cs=[1.0], cv=2).fit(X, y), X),
            "noisy": (NoisyLabelMKLClassifier(kw.gaussian([1.0]), noise_rate=0.1).fit(X, y), X),
            "matrices": (MKLClassifier("precomputed").fit(stack, y), stack),
            "held": (MKLClassifier(kw.held(stack)).fit(np.arange(len(y)), y), np.arange(len(y))),
            "streamed": (MKLClassifier(kw.nystroem(kw.gaussian(1.0), 6), **stream).fit(X, y), X),
            "streamed sparse": (MKLClassifier(kw.linear(), **stream).fit(S, y), S),
            "online": (MKLClassifier(kw.linear() + kw.gaussian(1.0), **online).partial_fit(X, y, [0, 1]), X),
            "online sparse": (MKLClassifier(kw.linear(), **online).partial_fit(S, y, [0, 1]), S),
            "online classes": (MKLClassifier(kw.gaussian(1.0), **online).partial_fit(X, three, [0, 1, 2]), X),
            "similarity": (SimilarityClassifier(tol=0.9).fit(stack[0], y), stack[0]),
            "features": (KernelFeatures(kw.linear()).fit(S), S),
            "pipeline": (make_pipeline(columns, MKLClassifier(kw.linear())).fit(frame, y), frame),
            "sparse pipeline": (
                make_pipeline(OneHotEncoder(handle_unknown="ignore"), MKLClassifier(kw.linear())).fit(frame[["kind"]], y),
                frame[["kind"]],
            ),
            "calibrated": (CalibratedClassifierCV(MKLClassifier(kw.linear()), cv=2).fit(X, y), X),
            "predict": (MKLClassifier(two_views, missing="predict").fit(gaps, y), gaps),
            "mean": (MKLClassifier(two_views, missing="mean").fit(gaps, y), gaps),
            "views": (MKLClassifier(kw.linear(), missing="predict").fit(views, y), views),
            "matrices with gaps": (MKLClassifier("precomputed", missing="predict").fit(holes, y), holes),
            "deviations": (MKLRegressor(kw.gaussian([1.0]) + kw.linear(), norm=2, loss="squared").fit(X, X[:, 0]), X),
            "fourier": (MKLClassifier(kw.random_fourier(1.0, n_features=8), loss="logistic").fit(X, y), X),
            "groups": (MKLClassifier(sets, norm=Grouped(1, 2)).fit(named, y), named),
            "search": (GridSearchCV(steps, grid, cv=2).fit(X, y), X),
            "random search": (RandomizedSearchCV(steps, grid, n_iter=2, cv=2, random_state=0).fit(X, y), X),
            "search among models": (swapped.fit(X, y), X),
            "inner search": (make_pipeline(inner, MKLClassifier(kw.linear())).fit(X, y), X),
            "arguments": (make_pipeline(FunctionTransformer(), MKLClassifier(kw.linear())).fit(X, y), X),
        }  # fmt: skip


#: these have parts of scikit-learn, whose errors are scikit-learn's
MIXED = (
    "pipeline", "sparse pipeline", "calibrated", "search", "random search", "search among models", "inner search",
    "arguments",
)  # fmt: skip


# ---- taking files apart -------------------------------------------------------------------------------------------


def members_of(content: bytes) -> dict[str, bytes]:
    """Return the members of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members: Any, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return an archive of a dictionary, or of pairs where a name comes twice; every checksum is right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, content in members.items() if isinstance(members, dict) else members:
            archive.writestr(name, content)
    return buffer.getvalue()


def with_member(content: bytes, **changes: bytes) -> bytes:
    """Return the archive with some members exchanged."""
    return archive_of(members_of(content) | changes)


def described(content: bytes, change: Callable[[Any], Any]) -> bytes:
    """Return the archive with another description: what ``change`` returns, or makes of it."""
    members = members_of(content)
    tree = json.loads(members[DESCRIPTION])
    members[DESCRIPTION] = json.dumps(change(tree) or tree).encode()
    return archive_of(tidied(members))


def tidied(members: dict[str, bytes]) -> dict[str, bytes]:
    """Leave out arrays that the description no longer names, which would be a reason of its own to refuse a file."""
    used = members[DESCRIPTION]
    return {
        name: part for name, part in members.items() if name in (LABEL, DESCRIPTION) or name.encode() in used
    }


def nodes(tree: Any) -> Iterator[Any]:
    """Every dictionary and list of a description."""
    waiting = [tree]
    while waiting:
        here = waiting.pop()
        yield here
        inside = here.values() if isinstance(here, dict) else here
        waiting += [part for part in inside if isinstance(part, dict | list)]


def objects(tree: Any) -> list[Any]:
    """The nodes of objects with attributes."""
    found = [
        node for node in nodes(tree) if isinstance(node, dict) and node.get("__loader__") == "ObjectNode"
    ]
    return [node for node in found if isinstance(node.get("content"), dict) and "content" in node["content"]]


def give(node: Any, name: str, value: Any) -> None:
    """Set an attribute of an object in a description."""
    state = node["content"]
    if name not in state["content"]:
        state["key_types"]["content"].append(
            {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode"}
        )
    state["content"][name] = value


def text(value: Any) -> dict[str, Any]:
    """A node of something that JSON can hold."""
    content = json.dumps(value)
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": content,
        "is_json": True,
    }


def npy(array: Any, allow_pickle: bool = False) -> bytes:
    """An array in NumPy's format."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def pick(rng: Any, things: Any) -> Any:
    """One of several things."""
    things = list(things)
    return things[int(rng.integers(len(things)))]


# ---- damage at random ---------------------------------------------------------------------------------------------


def flips(rng: Any, content: bytes) -> bytes:
    """Some bytes are others."""
    damaged = bytearray(content)
    for _ in range(int(rng.integers(1, 9))):
        damaged[int(rng.integers(len(damaged)))] ^= int(rng.integers(1, 256))
    return bytes(damaged)


def cuts(rng: Any, content: bytes) -> bytes:
    """The end is missing, or a piece in the middle, or a piece is zeros or comes twice."""
    first, last = sorted(int(at) for at in rng.integers(0, len(content), 2))
    return pick(
        rng,
        [
            content[:first],
            content[:first] + content[last:],
            content[:first] + bytes(last - first) + content[last:],
            content[:last] + content[first:],
        ],
    )


def torn_members(rng: Any, content: bytes) -> bytes:
    """A member is damaged, and the checksums are those of the damage."""
    members = members_of(content)
    name = pick(rng, members)
    damage = pick(rng, [flips, cuts]) if members[name] else flips
    members[name] = damage(rng, members[name])
    return archive_of(members)


def edits(rng: Any, content: bytes) -> bytes:
    """Parts of the description are exchanged, left out, repeated or other numbers and texts."""

    def change(tree: Any) -> None:
        for _ in range(int(rng.integers(1, 4))):
            inside = [node for node in nodes(tree) if node]
            node, other = pick(rng, inside), pick(rng, inside)
            key = pick(rng, node) if isinstance(node, dict) else int(rng.integers(len(node)))
            how = int(rng.integers(5))
            if how == 0 and isinstance(node, dict):
                del node[key]
            elif how == 1:
                node[key] = copy.deepcopy(pick(rng, other.values() if isinstance(other, dict) else other))
            elif how == 2:
                node[key] = pick(rng, [None, True, 0, -1, 10**30, 0.5, "", "x" * 300, [], {}, [[]], "file"])
            elif how == 3 and isinstance(node[key], str):
                node[key] = json.dumps(
                    pick(rng, [None, True, 0, -1, 10**9, 0.5, "", [], {}, "a\x1b[2J", [1, 2]])
                )
            elif isinstance(node, dict) and "__id__" in node:
                node["__id__"] = pick(rng, [n for n in inside if isinstance(n, dict) and "__id__" in n])[
                    "__id__"
                ]

    return described(content, change)


def other_classes(rng: Any, content: bytes) -> bytes:
    """An object is of another class on the list."""
    from kernelweave.persistence._audit import allowed_objects

    def change(tree: Any) -> None:
        node = pick(rng, objects(tree))
        node["__module__"], _, node["__class__"] = pick(rng, sorted(allowed_objects())).rpartition(".")

    return described(content, change)


def other_arrays(rng: Any, content: bytes) -> bytes:
    """Arrays have other shapes, other kinds of numbers or other values."""
    members = members_of(content)
    arrays = [name for name in members if name.endswith(".npy")]
    for _ in range(int(rng.integers(1, 4))):
        members[pick(rng, arrays)] = npy(random_array(rng))
    return archive_of(members)


def random_array(rng: Any) -> Any:
    """An array that is not what was meant."""
    shape = tuple(int(size) for size in rng.integers(0, 50, int(rng.integers(0, 4))))
    made = pick(
        rng,
        [
            rng.normal(size=shape), rng.integers(-(2**40), 2**40, shape), np.full(shape, np.nan), np.zeros(shape, bool),
            rng.normal(size=shape).astype(np.float32), np.full(shape, "x"), np.full(shape, 1e308),
        ],
    )  # fmt: skip
    return np.asfortranarray(made) if rng.integers(2) else made


# ---- forgeries ----------------------------------------------------------------------------------------------------


def forged_sparse(rng: Any, content: bytes) -> bytes | None:
    """Sparse matrices whose indices, pointers or shape point outside."""
    members = members_of(content)
    matrices = [name for name in members if name.endswith(".npz")]
    if not matrices:
        return None
    name = pick(rng, matrices)
    parts = members_of(members[name])
    data = {key: np.load(io.BytesIO(value)) for key, value in parts.items()}
    part = pick(rng, [key for key in data if key not in ("format.npy", "_is_array.npy", "data.npy")])
    values = data[part].copy()
    if values.size == 0:
        return None
    far = pick(rng, [-1, -(2**31), 2**20, 2**31 - 1, 10**6])
    if part == "shape.npy":
        values[int(rng.integers(2))] = pick(rng, [0, 1, -1])
    elif rng.integers(4) == 0:
        values = pick(
            rng, [values[:-1], values[:0], values.astype(float) + 0.5, values[None], values + 2**20]
        )
    else:
        values[rng.integers(0, values.size, int(rng.integers(1, 4)))] = far
    parts[part] = npy(values)
    members[name] = archive_of(parts)
    return archive_of(members)


def other_format(rng: Any, content: bytes) -> bytes | None:
    """A sparse matrix of another format than the description says."""
    import scipy.sparse as sp

    members = members_of(content)
    matrices = [name for name in members if name.endswith(".npz")]
    if not matrices:
        return None
    buffer = io.BytesIO()
    sp.save_npz(
        buffer, sp.coo_matrix(rng.normal(size=(4, 4))).asformat(pick(rng, ["bsr", "dia", "csc", "coo"]))
    )
    members[pick(rng, matrices)] = buffer.getvalue()
    return archive_of(members)


def forged_stream(rng: Any, content: bytes) -> bytes | None:
    """State of ``partial_fit`` whose arrays are shorter, longer or of another kind than its kernels."""
    members = members_of(content)
    tree = json.loads(members[DESCRIPTION])
    streams = [node for node in objects(tree) if node["__class__"] == "Stream"]
    if not streams:
        return None
    state = streams[0]["content"]["content"]
    name = pick(rng, ["coef", "quad", "q", "eta"])
    if name in ("q", "eta"):
        state[name] = text(pick(rng, [None, "2", -1.0, 0.0, [2.0], "x"]))
    else:
        old = np.load(io.BytesIO(members[state[name]["file"]]))
        new = pick(
            rng,
            [
                old[:0], old[..., None], np.concatenate([old] * 3), old.astype(np.float32), old.astype(int),
                np.full(old.shape, np.nan), old.ravel()[:1].reshape((1,) * old.ndim),
                np.repeat(old, 4, axis=-1),
            ],
        )  # fmt: skip
        if new.shape == old.shape and new.dtype == old.dtype and np.isfinite(new).all():
            return None
        # under a name of its own: the old array may be used elsewhere
        members["1.npy"] = npy(new)
        state[name] = {**state[name], "file": "1.npy", "__id__": 1}
    members[DESCRIPTION] = json.dumps(tree).encode()
    return archive_of(tidied(members))


def forged_encoder(rng: Any, content: bytes) -> bytes | None:
    """An encoder that writes ones outside its columns."""
    if b"OneHotEncoder" not in members_of(content)[DESCRIPTION]:
        return None

    def change(tree: Any) -> None:
        coders = [node for node in objects(tree) if node["__class__"] == "OneHotEncoder"]
        give(coders[0], "_infrequent_enabled", text(True))
        values = [text(int(rng.integers(2**20, 2**30))), text(2**20)]
        array = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode", "type": "json"}
        array |= {"content": values, "shape": text([2])}
        listed = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": [array]}
        give(coders[0], "_default_to_infrequent_mappings", listed)

    return described(content, change)


def nested_numbers(rng: Any, content: bytes) -> bytes:
    """A few kilobytes that say twice as much at every level."""
    node: Any = text(1)
    empty = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    for level in range(int(rng.integers(25, 60))):
        node = {
            **empty,
            "__id__": 10 + level,
            "content": [node, {**empty, "__id__": 9 + level, "content": []}],
        }

    def change(tree: Any) -> None:
        give(tree, "kernels", node)

    return described(content, change)


def in_itself(rng: Any, content: bytes) -> bytes:
    """An object that is a part of itself."""

    def change(tree: Any) -> None:
        give(tree, "kernels", {**{k: v for k, v in tree.items() if k != "content"}, "content": None})

    return described(content, change)


def second_members(rng: Any, content: bytes) -> bytes:
    """A name that comes twice: which is meant?"""
    members = members_of(content)
    name = pick(rng, members)
    twice = [*members.items(), (name, pick(rng, [members[name], b"{}", b""]))]
    return archive_of(twice if rng.integers(2) else twice[::-1])


def bytes_around(rng: Any, content: bytes) -> bytes:
    """Bytes before, behind or between the members, which another program may read as something else."""
    extra = pick(rng, [b"#!/bin/sh\n", b"MZ", b"\x80\x04", bytes(100), archive_of({"a": b"b"})])
    end = content.rindex(b"PK\x05\x06")
    commented = content[: end + 20] + struct.pack("<H", len(extra)) + extra
    return pick(rng, [extra + content, content + extra, commented])


def wrong_label(rng: Any, content: bytes) -> bytes:
    """A label of another layout, or one that is none."""
    label = json.loads(members_of(content)[LABEL])
    change = pick(
        rng,
        [
            {"schema": pick(rng, [True, False, 0, -1, 1.0, "1", 2, 99, None, [1], 10**40])},
            {"format": pick(rng, ["model", None, 1])},
            {"note": pick(rng, [None, [], "x"])},
            {"kernelweave": pick(rng, [None, 1, {}])},
            {"scikit-learn": None},
        ],
    )
    raw = json.dumps({**label, **change}).encode()
    return with_member(content, **{LABEL: pick(rng, [raw, raw, b"[]", b"", b"\xff\xfe", b"[" * 100_000])})


def not_an_estimator(rng: Any, content: bytes) -> bytes:
    """A file of something else."""
    loss = {
        "__class__": "Hinge",
        "__module__": "kernelweave.losses.margin",
        "__loader__": "ObjectNode",
        "content": None,
    }
    empty = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": []}
    root = pick(rng, [text(1), text("model"), loss, empty, [], None, 7])
    return described(
        content, lambda tree: {**root, "protocol": tree["protocol"]} if isinstance(root, dict) else [root]
    )


def named_files(rng: Any, content: bytes) -> bytes:
    """Parameters that name files and functions: a refit would read, write or call them."""

    def change(tree: Any) -> None:
        candidates = [
            node for node in objects(tree) if "n_jobs" in node["content"]["content"] or node is tree
        ]
        name = pick(rng, ["memory", "checkpoint", "callback"])
        value = pick(rng, ["/tmp/canary", "canary", "../x.npz", [1], {"a": 1}, 0, False, ""])
        give(pick(rng, candidates), name, text(value))

    return described(content, change)


def too_many_jobs(rng: Any, content: bytes) -> bytes:
    """Prediction would start thousands of processes."""
    jobs = pick(rng, [10**6, -(10**6), 1e9, "all", [2], 10**30])
    return described(content, lambda tree: give(tree, "n_jobs", text(jobs)))


#: keys that a search would set as parameters, and what it would set
ORDERS = (
    "memory", "s__memory", "m__checkpoint", "estimator__m__checkpoint", "checkpoint", "m__callback", "n_jobs",
    "m__n_jobs", "verbose", "m__verbose", "pre_dispatch", "m__memory_budget",
)  # fmt: skip
VALUES: tuple[Any, ...] = ("canary", "/tmp/canary", "../canary.npz", 1000, -1, True, None, "9**9**9", 10**30)
#: where dictionaries are whose keys are set by name, or might be
APPLIED = (
    "param_grid",
    "param_distributions",
    "kw_args",
    "inv_kw_args",
    "fit_params",
    "best_params_",
    "_kwargs",
)


def listed(*contents: Any) -> dict[str, Any]:
    """A node of a list."""
    return {
        "__class__": "list",
        "__module__": "builtins",
        "__loader__": "ListNode",
        "content": list(contents),
    }


def keyed(content: dict[str, Any]) -> dict[str, Any]:
    """A node of a dictionary whose keys are texts."""
    keys = [{"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode"} for _ in content]
    node = {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode"}
    return {**node, "key_types": listed(*keys), "content": content}


def array_of(*contents: Any) -> dict[str, Any]:
    """A node of an array of objects."""
    node = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode", "type": "json"}
    shape = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode"}
    return {**node, "content": list(contents), "shape": {**shape, "content": [text(len(contents))]}}


def of_sklearn(tree: Any) -> list[Any]:
    """The nodes of objects of scikit-learn."""
    return [node for node in objects(tree) if str(node.get("__module__")).startswith("sklearn.")]


def ordering_keys(rng: Any, content: bytes) -> bytes | None:
    """Dictionaries with keys that scikit-learn would set as parameters: a refit would read, write or call."""
    if b'"__module__": "sklearn.' not in members_of(content)[DESCRIPTION]:
        return None

    def change(tree: Any) -> None:
        key, value = pick(rng, ORDERS), pick(rng, VALUES)
        entry: Any = pick(
            rng, [text(value), listed(text(value)), array_of(text(value), text(None)), keyed({})]
        )
        how = int(rng.integers(4))
        grid = keyed({key: entry})
        if how == 1:
            grid = listed(keyed({"m__C": listed(text(1.0))}), grid)
        elif how == 2:
            grid = keyed({"kw_args": listed(grid)})
        elif how == 3:
            grid = text({key: [value]})
        node = pick(rng, of_sklearn(tree))
        present = [name for name in APPLIED if name in node["content"]["content"]]
        give(node, pick(rng, present or APPLIED), grid)

    return described(content, change)


def ordering_candidates(rng: Any, content: bytes) -> bytes | None:
    """Candidates of a search that name files: its own parameters do not reach them."""
    if b"SearchCV" not in members_of(content)[DESCRIPTION]:
        return None

    def change(tree: Any) -> None:
        searches = [node for node in objects(tree) if str(node["__class__"]).endswith("SearchCV")]
        models = [node for node in objects(tree) if str(node["__class__"]).startswith(("MKL", "Pipeline"))]
        candidate = without_numbers(copy.deepcopy(pick(rng, models)))
        name = "memory" if candidate["__class__"] == "Pipeline" else pick(rng, ["checkpoint", "callback"])
        give(candidate, name, text(pick(rng, ["canary", "/tmp/canary.npz", 1.5, True])))
        values = pick(rng, [listed(candidate), array_of(candidate, text(None)), listed(listed(candidate))])
        give(pick(rng, searches), pick(rng, ["param_grid", "param_distributions"]), keyed({"m": values}))

    return described(content, change)


def without_numbers(node: Any) -> Any:
    """Leave the numbers of objects out: a copy that differs would be a reason of its own to refuse a file."""
    for part in nodes(node):
        if isinstance(part, dict):
            part.pop("__id__", None)
    return node


def machine_choices(rng: Any, content: bytes) -> bytes:
    """Numbers of jobs, verbosity and memory that a refit or a prediction would follow; nothing need be refused."""

    def change(tree: Any) -> None:
        having = [node for node in objects(tree) if "n_jobs" in node["content"]["content"]]
        for node in [pick(rng, having) for _ in range(3)] if having else ():
            give(node, "n_jobs", text(pick(rng, [2, 3, -1, 1000])))
            give(node, "verbose", text(pick(rng, [1, 10, 1000, True])))
            give(node, "memory_budget", text(pick(rng, ["1TB", 10**15, 1])))
            if str(node["__class__"]).endswith("SearchCV"):
                give(node, "pre_dispatch", text(pick(rng, ["all", "9**9**9", 10**9, "n_jobs*9999"])))

    return described(content, change)


class Harmful:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch canary",)


def code(rng: Any, content: bytes) -> bytes:
    """Functions, methods, classes and pickles."""
    strangers = [
        {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"},
        {"__class__": "Popen", "__module__": "subprocess", "__loader__": "ObjectNode", "content": None},
        {"__class__": "eval", "__module__": "builtins", "__loader__": "TypeNode"},
        {"__class__": "dict", "__module__": "builtins", "__loader__": "OperatorFuncNode", "content": None},
        {"__class__": "Memory", "__module__": "joblib.memory", "__loader__": "ObjectNode", "content": None},
        {"__class__": "partial", "__module__": "functools", "__loader__": "PartialNode", "content": {}},
        {"__class__": "MKLClassifier", "__module__": "kernelweave.estimators.classifier", "__loader__": "MethodNode",
         "content": {"func": "fit", "obj": text(1)}},
        {"__class__": "system", "__module__": "os", "__loader__": "ConstructorFromReduceNode", "content": text(["ls"])},
    ]  # fmt: skip
    if rng.integers(3) == 0:
        members = members_of(content)
        arrays = [name for name in members if name.endswith(".npy")]
        members[pick(rng, arrays)] = npy(np.array([Harmful()], dtype=object), allow_pickle=True)
        return archive_of(members)
    if rng.integers(5) == 0:
        return pickle.dumps(Harmful(), protocol=int(rng.integers(0, 6)))
    stranger = pick(rng, strangers)
    return described(
        content, lambda tree: give(pick(rng, objects(tree)), pick(rng, ["loss", "new"]), stranger)
    )


def bombs(rng: Any, content: bytes) -> bytes:
    """Small files that are large inside: zeros, shapes, depth."""
    members = members_of(content)
    arrays = [name for name in members if name.endswith(".npy")]
    header = npy(np.zeros((3, 3)))
    how = int(rng.integers(6))
    if how == 0:
        members["zeros.npy"] = bytes(600_000_000)
    elif how == 1:
        members[pick(rng, arrays)] = header.replace(
            b"(3, 3)", pick(rng, [b"(10**9,9**9)"[:6], b"(9,9,)", b"(1<<9)"])
        )
    elif how == 2:
        shape = pick(
            rng, ["(4611686018427387904, 4)", "(-1, 3)", "(9999999999,)", "(0, 9223372036854775807)"]
        )
        raw = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        members[pick(rng, arrays)] = (
            b"\x93NUMPY\x01\x00" + struct.pack("<H", len(raw)) + raw.encode() + bytes(72)
        )
    elif how == 3:
        members[DESCRIPTION] = b'{"a":' * 100_000
    elif how == 4:
        deep: Any = text(1)
        for _ in range(int(rng.integers(150, 220))):
            deep = {
                "__class__": "list",
                "__module__": "builtins",
                "__loader__": "ListNode",
                "content": [deep],
            }
        return described(content, lambda tree: give(tree, "kernels", deep))
    else:
        inside = {**text(1), "content": "[" * 100_000 + "]" * 100_000}
        return described(content, lambda tree: give(tree, "kernels", inside))
    return archive_of(members)


def odd_archives(rng: Any, content: bytes) -> bytes:
    """Archives that are encrypted, packed otherwise, or lack a part."""
    how = int(rng.integers(3))
    if how == 0:
        return archive_of(members_of(content), pick(rng, [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]))
    if how == 1:
        damaged = bytearray(content)
        at = content.index(b"PK\x01\x02")
        damaged[at + 8] |= 1  # "encrypted" in the directory
        return bytes(damaged)
    members = members_of(content)
    needed = [name for name in members if name in (LABEL, DESCRIPTION)]
    del members[pick(rng, needed)]
    return archive_of(members)


class Category(NamedTuple):
    """A way to make a bad file, how often it is taken, and whether its files have to be refused."""

    make: Callable[[Any, bytes], bytes | None]
    share: int
    refused: bool


CATEGORIES = {
    "flipped bytes": Category(flips, 12, False),
    "cuts": Category(cuts, 8, True),
    "torn members": Category(torn_members, 14, False),
    "edited description": Category(edits, 16, False),
    "other classes": Category(other_classes, 6, False),
    "other arrays": Category(other_arrays, 10, False),
    "forged sparse matrix": Category(forged_sparse, 8, True),
    "other sparse format": Category(other_format, 2, True),
    "forged streaming state": Category(forged_stream, 6, True),
    "forged encoder": Category(forged_encoder, 2, True),
    "nested numbers": Category(nested_numbers, 3, True),
    "part of itself": Category(in_itself, 1, True),
    "members twice": Category(second_members, 3, True),
    "bytes around": Category(bytes_around, 4, True),
    "wrong label": Category(wrong_label, 4, True),
    "no estimator": Category(not_an_estimator, 2, True),
    "files named": Category(named_files, 4, True),
    "too many jobs": Category(too_many_jobs, 1, True),
    "keys that order": Category(ordering_keys, 6, True),
    "candidates that order": Category(ordering_candidates, 3, True),
    "choices of a machine": Category(machine_choices, 4, False),
    "code": Category(code, 5, True),
    "bombs": Category(bombs, 3, True),
    "odd archives": Category(odd_archives, 3, True),
}


# ---- the process that loads ---------------------------------------------------------------------------------------


#: events that no loading and no predicting causes, but for numba, which keeps compiled code in files
FORBIDDEN = (
    "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile", "os.remove", "os.rename", "os.rmdir",
    "os.mkdir", "os.chmod", "os.link", "os.symlink", "os.truncate", "subprocess.Popen", "socket.connect",
    "socket.getaddrinfo", "shutil.rmtree", "shutil.move", "pickle.find_class", "ctypes.dlopen", "webbrowser.open",
)  # fmt: skip


class Watch:
    """Notes what the process does besides computing."""

    def __init__(self) -> None:
        self.armed = False
        self.seen: list[str] = []
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Called by the interpreter."""
        if not self.armed:
            return
        writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
        if (writes or event in FORBIDDEN) and not self._by_the_compiler():
            self.seen.append(f"{event}{arguments!r}"[:200])

    @staticmethod
    def _by_the_compiler() -> bool:
        frame = sys._getframe()
        while frame is not None:
            name = frame.f_code.co_filename
            if f"{os.sep}numba{os.sep}" in name or f"{os.sep}llvmlite{os.sep}" in name or "importlib" in name:
                return True
            frame = frame.f_back  # type: ignore[assignment]
        return False


def serve() -> None:
    """Load the files that are named on the standard input, a line each, and say what came of it."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    from joblib.externals.loky import reusable_executor

    from kernelweave.persistence import ModelFileError, load

    def stop(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    probes = warmed_up()
    watch = Watch()
    print("ready", flush=True)
    for line in sys.stdin:
        path, name = json.loads(line)
        watch.seen.clear()
        watch.armed = True
        began = time.process_time()
        printed = io.StringIO()
        sys.stdout = printed
        try:
            outcome, said = "loaded", ""
            model = load(path)
        except ModelFileError as error:
            outcome, said = "refused", str(error)
        except Exception as error:
            outcome, said = "load error", f"{type(error).__name__}: {error}"
        else:
            try:
                use(model, probes[name])
            except ValueError as error:
                outcome, said = "says why", str(error)
            except Exception as error:
                ours = name not in MIXED and type(model).__module__.startswith("kernelweave.")
                outcome = "use error" if ours else "error elsewhere"
                said = f"{type(error).__name__}: {error}"
        seconds = time.process_time() - began
        if outcome in ("loaded", "says why"):
            refit(model, probes[name])
        sys.stdout = sys.__stdout__
        if printed.getvalue():
            watch.seen.append(f"printed {printed.getvalue()!r}"[:200])
        if reusable_executor._executor is not None:
            watch.seen.append("started processes")
            reusable_executor._executor.shutdown(kill_workers=True)
            reusable_executor._executor = None
        watch.armed = False
        answer = {"outcome": outcome, "said": said[:500], "seconds": seconds, "did": list(watch.seen)}
        print(json.dumps(answer), flush=True)


def warmed_up() -> dict[str, Any]:
    """Return the samples to predict after using a good file of every model once: nothing is compiled later."""
    from kernelweave.persistence import load, save

    probes = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (model, probe) in fitted().items():
            save(model, Path(folder) / "model.skops")
            use(load(Path(folder) / "model.skops"), probe)
            probes[name] = probe
    return probes


def use(model: Any, probe: Any) -> None:
    """Print, predict, and go on learning where the model does."""
    repr(model)
    for method in ("predict", "decision_function", "predict_proba", "transform"):
        if hasattr(model, method):
            getattr(model, method)(probe)
    if hasattr(model, "_spread"):
        model.predict(probe, return_std=True)
    if hasattr(model, "_stream"):
        y = np.asarray(model.classes_)[np.arange(40) % len(model.classes_)]
        model.partial_fit(probe, y)
        model.predict(probe)


def refit(model: Any, probe: Any) -> None:
    """Fit again with the parameters in the file, as a report does: it may fail as it likes, but not crash or write."""
    y = np.arange(40) % 2
    signal.alarm(LONG)
    try:
        limits = [name for name in model.get_params() if name.endswith("max_seconds")]
        model.set_params(**dict.fromkeys(limits, 1.0))
        model.fit(probe, y)
    except Exception:
        pass
    finally:
        signal.alarm(0)


class Loader:
    """The other process, started again where it died or hung."""

    def __init__(self) -> None:
        self.process: Any = None

    def start(self, folder: Path) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        here = Path(__file__).resolve()
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(here.parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.judge.files", "--serve"], cwd=folder, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=1,
        )  # fmt: skip
        if self.answer(600.0) != "ready":
            raise RuntimeError("the process that loads did not start")

    def answer(self, seconds: float) -> str | None:
        """The next line, or None where none comes in time."""
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        return self.process.stdout.readline().strip() if ready else None

    def judge(self, path: Path, name: str, must_refuse: bool) -> tuple[str, str]:
        """What came of a file, and what is wrong with that ("" where nothing is)."""
        if self.process is None or self.process.poll() is not None:
            self.start(path.parent)
        self.process.stdin.write(json.dumps([str(path), name]) + "\n")
        said = self.answer(HUNG)
        if said is None:
            self.stop()
            return "hung", f"no answer in {HUNG:g} s"
        if not said:
            code = self.process.wait()
            what = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            self.process = None
            return "crash", what
        answer = json.loads(said)
        outcome = answer["outcome"]
        if answer["did"]:
            return outcome, f"did {answer['did'][0]}"
        if (path.parent / "canary").exists():
            return outcome, "ran code"
        if outcome in ("load error", "use error"):
            return outcome, answer["said"]
        if answer["seconds"] > SLOW:
            return outcome, f"took {answer['seconds']:.1f} s"
        if must_refuse and outcome != "refused":
            return outcome, f"was not refused {answer['said']}"
        return outcome, ""

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


# ---- the run ------------------------------------------------------------------------------------------------------


class Result(NamedTuple):
    """Outcomes by category, and the cases that did not survive: number, category, model, what was wrong."""

    outcomes: dict[str, Counter[str]]
    violations: list[tuple[int, str, str, str]]


def saved(model: Any, note: dict[str, Any] | None = None) -> bytes:
    """Return the file of a model."""
    from kernelweave.persistence import save

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        save(model, path, note=note)
        return path.read_bytes()


def run(cases: int, seed: int, keep: Path | None = None, say: Callable[[str], Any] | None = None) -> Result:
    """Make and judge the files; those that do not survive are kept in a folder, if one is given."""
    files = {name: saved(made[0], {"columns": {}}) for name, made in fitted().items()}
    names = list(CATEGORIES)
    shares = np.array([CATEGORIES[name].share for name in names], dtype=float)
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in names}
    violations = []
    loader = Loader()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        try:
            for case in range(cases):
                rng = np.random.default_rng([seed, case])
                # every category at least once, then by their shares
                category = (
                    names[case] if case < len(names) else str(rng.choice(names, p=shares / shares.sum()))
                )
                content, name = None, ""
                while content is None:  # not every model has what is to be forged
                    name = pick(rng, files)
                    content = CATEGORIES[category].make(rng, files[name])
                path.write_bytes(content)
                outcome, wrong = loader.judge(
                    path, name, CATEGORIES[category].refused and content != files[name]
                )
                outcomes[category][outcome] += 1
                if wrong:
                    violations.append((case, category, name, f"{outcome}: {wrong}"))
                    if keep is not None:
                        keep.mkdir(parents=True, exist_ok=True)
                        (keep / f"{seed}-{case}.skops").write_bytes(content)
                if say is not None and (case + 1) % 250 == 0:
                    say(f"{case + 1} of {cases}, {len(violations)} did not survive")
        finally:
            loader.stop()
    return Result(outcomes, violations)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the files that did not survive")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    began = time.perf_counter()
    found = run(
        options.cases, options.seed, options.keep, lambda line: print(line, file=sys.stderr, flush=True)
    )
    wrong = Counter(category for _, category, _, _ in found.violations)
    print(
        f"{'category':<24} {'tried':>6} {'refused':>8} {'loaded':>7} {'says why':>9} {'other':>6} {'survived':>9}"
    )
    for category, counts in found.outcomes.items():
        tried = counts.total()
        other = tried - counts["refused"] - counts["loaded"] - counts["says why"]
        print(
            f"{category:<24} {tried:>6} {counts['refused']:>8} {counts['loaded']:>7} {counts['says why']:>9} "
            f"{other:>6} {tried - wrong[category]:>9}"
        )
    total = sum(found.outcomes.values(), Counter())
    print(
        f"{'all':<24} {total.total():>6} {total['refused']:>8} {total['loaded']:>7} {total['says why']:>9} "
        f"{total.total() - total['refused'] - total['loaded'] - total['says why']:>6} "
        f"{total.total() - len(found.violations):>9}   seed {options.seed}, {time.perf_counter() - began:.0f} s"
    )
    for case, category, name, why in found.violations:
        print(f"case {case} ({category}, {name}): {why}")
    return 1 if found.violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
