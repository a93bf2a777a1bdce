"""Files are written whole, keep who may read them, and nothing but files is written to."""

from __future__ import annotations

import os
import stat

import pytest

from kernelweave._output import whole_file, write_whole


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o644, 0o444])
def test_modes_are_kept(tmp_path, kept):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(kept)
    write_whole(path, "new")
    assert (mode(path), path.read_text()) == (kept, "new")


@pytest.mark.parametrize(("umask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_new_files_follow_the_umask(tmp_path, umask, expected):
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "a.txt", "new")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a.txt") == expected


def test_a_private_file_is_never_public_for_a_moment(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("secret")
    path.chmod(0o600)
    with whole_file(path) as part:
        assert mode(part) == 0o600
        part.write_text("more secrets")
    assert mode(path) == 0o600


def test_a_failure_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), whole_file(path) as part:  # noqa: PT012
        part.write_text("half of")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


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
            write_whole(tmp_path / name, "new")
    assert (tmp_path / "target").read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()
    assert len(list(tmp_path.iterdir())) == 5


def test_what_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(OSError, match="is a folder"), whole_file(path) as part:  # noqa: PT012
        part.write_text("new")
        path.mkdir()
    assert path.is_dir()
