"""Weights on disk: one .npz of plain arrays, written whole or not at all."""

import os
import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np

from agentic_rl.backend.linear.features import VERSION
from agentic_rl.backend.linear.optimizer import Weights
from agentic_rl.errors import RunFolderError

FILE = "theta.npz"
_VECTORS = ("theta", "mean", "square")
_DAMAGED = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    RuntimeError,  # a flag of the archive says that it is encrypted, or packed in another way
    MemoryError,
    tokenize.TokenError,  # of an array's header
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading a file with wrong bytes raises."""


def write(folder: Path, weights: Weights) -> None:
    part = folder / f".{FILE}.part"
    with part.open("wb") as file:
        np.savez_compressed(
            file,
            theta=weights.theta,
            mean=weights.mean,
            square=weights.square,
            step=np.int64(weights.step),
            features=np.int64(VERSION),
        )
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / FILE)


def read(folder: Path, size: int, *, optimizer: bool) -> Weights:
    """RunFolderError where the file is missing, broken, or made for other features."""
    path = folder / FILE
    if not path.is_file():
        raise RunFolderError(f"{folder} holds no {FILE}: it is no checkpoint of backend 'linear'")
    try:
        arrays = _arrays(path)
    except _DAMAGED as error:
        raise RunFolderError(f"{path} cannot be read as weights: {error}") from error
    _check(path, arrays, size)
    weights = Weights(arrays["theta"], arrays["mean"], arrays["square"], int(arrays["step"]))
    if not optimizer:
        weights.forget_moments()
    return weights


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as raw:
        if raw.read(2) != b"PK":
            raise ValueError("it is no .npz file")
    with np.load(path, allow_pickle=False) as file:
        return {name: np.array(file[name]) for name in (*_VECTORS, "step", "features")}


def _check(path: Path, arrays: dict[str, np.ndarray], size: int) -> None:
    for name in ("step", "features"):
        if arrays[name].shape != () or arrays[name].dtype != np.int64:
            raise RunFolderError(f"{path}: '{name}' is no whole number")
    if int(arrays["features"]) != VERSION:
        raise RunFolderError(
            f"{path} was trained on features of version {int(arrays['features'])}, this release"
            f" has version {VERSION}: evaluate it with the release that trained it"
        )
    for name in _VECTORS:
        vector = arrays[name]
        if vector.dtype != np.float64 or vector.ndim != 1 or not np.isfinite(vector).all():
            raise RunFolderError(f"{path}: '{name}' is no vector of finite numbers")
        if len(vector) != size:
            bits = max(len(vector) - 1, 1).bit_length()
            raise RunFolderError(
                f"{path} holds {len(vector)} weights where {size} are wanted:"
                f" set backend.feature_bits={bits}"
            )
