"""Files are written whole, keep who may read them, and nothing but files is written to: model files stand for all."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.persistence import load, save

X = np.arange(12.0)[:, None]
MODEL = MKLClassifier(kw.linear()).fit(X, X[:, 0] > 5)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def is_the_model(path):
    return np.array_equal(load(path).dual_coef_, MODEL.dual_coef_)


@pytest.fixture
def meanwhile(monkeypatch):
    """Do something when all is written beside the file, and nothing in its place."""
    synchronise = os.fsync

    def arrange(happens):
        def first(handle):
            monkeypatch.setattr(os, "fsync", synchronise)
            happens()
            synchronise(handle)

        monkeypatch.setattr(os, "fsync", first)

    return arrange


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o644, 0o444])
def test_modes_are_kept(tmp_path, kept):
    path = tmp_path / "a.skops"
    path.write_text("old")
    path.chmod(kept)
    save(MODEL, path)
    assert mode(path) == kept
    assert is_the_model(path)


@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_new_files_follow_the_umask(tmp_path, umask, expected):
    before = os.umask(umask)
    try:
        save(MODEL, tmp_path / "a.skops")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a.skops") == expected


def test_a_private_file_is_never_public_for_a_moment(tmp_path, meanwhile):
    path = tmp_path / "a.skops"
    path.write_text("secret")
    path.chmod(0o600)
    seen = []
    meanwhile(lambda: seen.extend((mode(part), part.stat().st_size) for part in tmp_path.iterdir()))
    save(MODEL, path)
    assert sorted(size for _, size in seen) == sorted(
        [6, path.stat().st_size]
    )  # the old one, and all of the new
    assert {private for private, _ in seen} == {0o600}
    assert mode(path) == 0o600


def test_a_failure_leaves_the_old_file_alone(tmp_path, meanwhile):
    path = tmp_path / "a.skops"
    path.write_text("old")

    def fail():
        raise RuntimeError

    meanwhile(fail)
    with pytest.raises(RuntimeError):
        save(MODEL, path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.skops"]


def test_only_regular_files_are_written_to(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "target").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name, what in (
        ("folder", "a folder"), ("pipe", "a pipe"), ("link", "a link"), ("dangling", "a link"), ("/dev/null", "a device"),
    ):  # fmt: skip
        with pytest.raises(OSError, match=f"is {what}"):
            save(MODEL, tmp_path / name)
    assert (tmp_path / "target").read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()
    assert len(list(tmp_path.iterdir())) == 5


def test_what_appears_meanwhile_is_not_replaced(tmp_path, meanwhile):
    path = tmp_path / "a.skops"
    meanwhile(path.mkdir)
    with pytest.raises(OSError, match="is a folder"):
        save(MODEL, path)
    assert path.is_dir()
