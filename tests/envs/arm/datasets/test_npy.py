"""Tests that object arrays are read as data, and that no code in them is run."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typing_extensions import override

from visenv.envs.arm.datasets.npy import read_objects
from visenv.errors import DataError


def save(path: Path, items: list[Any]) -> Path:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    np.save(path, array, allow_pickle=True)
    return path


def test_plain_data_comes_back(tmp_path: Path) -> None:
    items = [
        {"version": 0.1},
        {
            "question": "Wie groß?",
            "pages": ["a_p0", "a_p1"],
            "boxes": np.arange(8, dtype=np.float32).reshape(2, 4),
            "count": np.int64(3),
            "pair": (1, None, True, b"bytes"),
        },
    ]
    header, row = read_objects(save(tmp_path / "imdb.npy", items))
    assert header == {"version": 0.1}
    assert row["pages"] == ["a_p0", "a_p1"]
    assert np.array_equal(row["boxes"], np.arange(8).reshape(2, 4))
    assert row["count"] == 3
    assert row["pair"] == (1, None, True, b"bytes")


class Runs:
    def __init__(self, path: Path) -> None:
        self.path = path

    @override
    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.attack("data: a pickle of a published data set runs no code")
def test_npy_file_runs_nothing(tmp_path: Path) -> None:
    made = tmp_path / "made by a data file"
    with pytest.raises(DataError, match=r"would import posix\.mkdir"):
        read_objects(save(tmp_path / "evil.npy", [{"question": Runs(made)}]))
    assert not made.exists()
    np.load(tmp_path / "evil.npy", allow_pickle=True)
    assert made.exists()  # NumPy itself does run the code


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not a readable NumPy file"),
        (b"not numpy at all", "not a readable NumPy file"),
        (b"\x93NUMPY\x09\x00", "not a readable NumPy file"),
        (pickle.dumps([1, 2]), "not a readable NumPy file"),
    ],
)
def test_npy_file_without_objects_is_named(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(DataError, match=rf"x\.npy is {problem}"):
        read_objects(tmp_path / "x.npy")


def test_npy_arrays_of_other_types_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "numbers.npy", np.arange(3))
    with pytest.raises(DataError, match="expected an array of objects, got int64"):
        read_objects(tmp_path / "numbers.npy")
    square = np.empty((2, 2), dtype=object)
    np.save(tmp_path / "square.npy", square, allow_pickle=True)
    with pytest.raises(DataError, match="must contain an array of one dimension"):
        read_objects(tmp_path / "square.npy")


def test_arrays_of_every_plain_kind_come_back(tmp_path: Path) -> None:
    arrays: list[Any] = [
        np.array([True, False]), np.arange(6, dtype=">i4").reshape(2, 3), np.array([1 + 2j]),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.array(["ab", "c"]), np.array([b"x"]),
        np.array([{"a": 1}, None], object), np.zeros((0, 3)), np.float16(0.5), np.str_("word"),
    ]  # fmt: skip
    found = read_objects(save(tmp_path / "arrays.npy", arrays))
    for one, other in zip(found, arrays, strict=True):
        kinds = [np.asarray(each).dtype.newbyteorder("=") for each in (one, other)]
        assert kinds[0] == kinds[1]
        assert np.array_equal(one, other)


RECONSTRUCT = b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"
FLOATS = b"cnumpy\ndtype\n(X\x02\x00\x00\x00f8I00\nI01\ntR"
STATES = {
    "too little": (b"(K\x04t", FLOATS, b"C\x01x"),
    "less than nothing": (b"(J\xff\xff\xff\xfft", FLOATS, b"C\x00"),
    "a list for numbers": (b"(K\x01t", FLOATS, b"(K\x01l"),
    "bytes for objects": (b"(K\x01t", FLOATS.replace(b"f8", b"O8"), b"C\x08AAAAAAAA"),
    "records": (b"(K\x01t", FLOATS.replace(b"f8", b"V8"), b"C\x08AAAAAAAA"),
    "no dtype": (b"(K\x01t", b"N", b"C\x08AAAAAAAA"),
}


@pytest.mark.attack("data: a pickle of a published data set runs no code")
@pytest.mark.parametrize(
    ("pickled", "problem"),
    [
        (b"\x80\x05\x96\xff\xff\xff\xff\x0f\x00\x00\x00.", "a readable NumPy file"),  # 64 GiB
        (b"\x80\x05\x96\x01\x00\x00\x00\x00\x00\x00\x00x.", "it uses the opcode BYTEARRAY8"),
        (b"\x80\x04Nr\xff\xff\xff\x7f.", "more object numbers than objects"),  # 16 GiB of them
        (b"\x80\x04cos\nsystem\n)\x81.", "it uses the opcode NEWOBJ"),
    ],
)
def test_opcodes_are_looked_at_before_any_is_carried_out(
    tmp_path: Path, pickled: bytes, problem: str
) -> None:
    header = save(tmp_path / "empty.npy", []).read_bytes()[:128]
    (tmp_path / "x.npy").write_bytes(header + pickled)
    with pytest.raises(DataError, match=problem):
        read_objects(tmp_path / "x.npy")


@pytest.mark.attack("data: a pickle of a published data set runs no code")
@pytest.mark.parametrize("name", STATES)
def test_array_whose_state_cannot_be_is_refused(tmp_path: Path, name: str) -> None:
    """Check states for which NumPy partly reads memory outside the array."""
    shape, kind, content = STATES[name]
    header = save(tmp_path / "empty.npy", []).read_bytes()[:128]
    built = RECONSTRUCT + b"(K\x01" + shape + kind + b"\x89" + content + b"tb."
    (tmp_path / "x.npy").write_bytes(header + b"\x80\x04" + built)
    with pytest.raises(DataError, match=r"x\.npy"):
        read_objects(tmp_path / "x.npy")


@pytest.mark.attack("data: a pickle of a published data set runs no code")
def test_file_cannot_change_how_others_are_read(tmp_path: Path) -> None:
    """Check that a pickle cannot set attributes of imported objects, even without calling them."""
    header = save(tmp_path / "empty.npy", []).read_bytes()[:128]
    for name in (b"cnumpy\ndtype\n", b"cnumpy._core.multiarray\nscalar\n", b"cnumpy\nndarray\n"):
        state = b"(N}X\x01\x00\x00\x00aK\x01st"
        (tmp_path / "x.npy").write_bytes(header + b"\x80\x04" + name + state + b"b.")
        with pytest.raises(DataError, match=r"x\.npy"):
            read_objects(tmp_path / "x.npy")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 400), byte=st.integers(0, 255), cut=st.booleans())
def test_damaged_file_raises_nothing_else(tmp_path: Path, place: int, byte: int, cut: bool) -> None:
    path = tmp_path / "imdb.npy"
    if not path.exists():
        save(path, [{"question": "q", "pages": ["a"], "boxes": np.zeros(2)}])
    content = bytearray(path.read_bytes())
    place %= len(content)
    content[place] = byte
    damaged = tmp_path / "damaged.npy"
    damaged.write_bytes(bytes(content[:place] if cut else content))
    try:
        items = read_objects(damaged)
    except DataError:
        return
    assert isinstance(items, list)
