"""MNIST: the idx format, checksums, and what is said where the files are missing."""

from __future__ import annotations

import gzip
import hashlib

import numpy as np
import pytest

from kernelweave_studies.datasets import _loaders, load_mnist


def idx(values: np.ndarray) -> bytes:
    sizes = b"".join(int(size).to_bytes(4, "big") for size in values.shape)
    return b"\x00\x00\x08" + bytes([values.ndim]) + sizes + values.astype(np.uint8).tobytes()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Seven small images in place of the real ones."""
    rng = np.random.default_rng(0)
    (tmp_path / "mnist").mkdir()
    arrays = [rng.integers(0, 256, (5, 4, 3)), np.arange(5), rng.integers(0, 256, (2, 4, 3)), np.arange(2)]
    sums = {}
    for name, values in zip(_loaders.MNIST_FILES, arrays, strict=True):
        raw = gzip.compress(idx(values))
        (tmp_path / "mnist" / name).write_bytes(raw)
        sums[name] = hashlib.sha256(raw).hexdigest()
    monkeypatch.setattr(_loaders, "MNIST_FILES", sums)
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path))
    return tmp_path, arrays


def test_images_are_rows_of_grey_values(folder):
    _, arrays = folder
    data = load_mnist()
    np.testing.assert_allclose(data.data, arrays[0].reshape(5, 12) / 255)
    np.testing.assert_array_equal(data.target, np.arange(5))
    assert data.test_data.shape == (2, 12)
    np.testing.assert_array_equal(data.test_target, [0, 1])


def test_another_file_is_refused(folder):
    path, arrays = folder
    (path / "mnist" / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(arrays[1][::-1])))
    with pytest.raises(ValueError, match="is not the file that was meant"):
        load_mnist()


def test_missing_files(folder, monkeypatch):
    path, _ = folder
    (path / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"t10k-labels.* does not exist"):
        load_mnist()
    monkeypatch.delenv("KERNELWEAVE_DATA")
    with pytest.raises(FileNotFoundError, match="KERNELWEAVE_DATA is not set"):
        load_mnist()


@pytest.mark.parametrize("raw", [b"", b"\x00\x00\x0d\x01\x00\x00\x00\x00", b"GIF89a"])
def test_what_is_no_idx_file(raw):
    with pytest.raises(ValueError, match="not an idx file"):
        _loaders.read_idx(raw)
