"""Tests the values of scorers: exact to the bit in JSON, on disk and between processes."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from visenv.scorers.values import canonical, from_json, nbytes, normalized, pack, to_json, unpack

ARRAYS = hnp.arrays(
    st.sampled_from(["<f4", ">f8", "|u1", "|b1", "<i8", "<u2"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9),
    elements={"allow_nan": False, "allow_infinity": False},
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["\ud800", "$array", "\\"])
    | st.binary(max_size=2000)
    | ARRAYS
)
KEYS = st.text(max_size=5) | st.sampled_from(["$array", "$bytes", "\\$array", "\\", "$"])
VALUES = st.recursive(
    SCALARS, lambda deeper: st.lists(deeper) | st.dictionaries(KEYS, deeper), max_leaves=20
)


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_same(mine, theirs)
    elif isinstance(one, float):
        assert one.hex() == other.hex()  # -0.0 differs from 0.0
    else:
        assert one == other


@given(VALUES)
def test_values_come_back_to_the_bit_in_every_form(value: Any) -> None:
    value = normalized(value)
    assert_same(from_json(json.loads(json.dumps(to_json(value)))), value)
    store: dict[str, bytes] = {}
    written = json.loads(json.dumps(to_json(value, store)))
    assert_same(from_json(written, store), value)
    assert_same(unpack(pack(value)), value)
    assert_same(normalized(value), value)
    assert nbytes(value) > 0


def test_json_of_an_array_is_the_documented_one() -> None:
    array = normalized(np.array([[1, 2]], ">u2"))
    # Little-endian bytes 01 00 02 00 are AQACAA== in base64.
    assert to_json({"m": array, "b": b"\x01"}) == {
        "m": {"$array": {"dtype": "<u2", "shape": [1, 2], "data": "AQACAA=="}},
        "b": {"$bytes": {"data": "AQ=="}},
    }


def test_payloads_above_a_kibibyte_go_to_the_store_under_their_hash() -> None:
    store: dict[str, bytes] = {}
    small, large = bytes(1024), bytes(1025)
    written = to_json([small, large, large], store)
    assert "data" in written[0]["$bytes"]
    assert written[1] == written[2]
    [(name, data)] = store.items()
    assert (written[1]["$bytes"], data) == ({"sha256": name}, large)


def test_normalized_copies_what_the_owner_may_still_change() -> None:
    array, inner = np.zeros(3), [1]
    value = normalized({"a": array, "l": inner, "t": (np.float32(0.5),)})
    array[0] = 7
    inner.append(2)
    assert value["a"].tolist() == [0, 0, 0]
    assert value["l"] == [1]
    assert value["t"] == [0.5]
    with pytest.raises(ValueError, match="read-only"):
        value["a"][0] = 1
    frozen = value["a"]
    assert normalized(frozen) is frozen  # a read-only array is shared, not copied


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (math.nan, "not finite: nan"),
        ([1.0, {"x": -math.inf}], "not finite: -inf"),
        (np.float64("nan"), "not finite"),
        (np.array([0.0, np.nan], np.float32), "not finite"),
        (np.array(["a"]), "not boolean or real"),
        (np.array([object()]), "not boolean or real"),
        (np.array([1j]), "not boolean or real"),
        ({1: "x"}, "keys that are not text"),
        ({"x"}, "a set, which"),
        (1j, "a complex, which"),
    ],
)
def test_normalized_refuses(value: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        normalized(value)


@pytest.mark.slow
def test_normalized_refuses_deep_nesting_before_python_does() -> None:
    value: Any = 0
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError, match="levels deep"):
        normalized(value)


@pytest.mark.parametrize(
    "written",
    [
        {"$array": {"dtype": "|O", "shape": [1], "data": "AAAAAAAAAAA="}},
        {"$array": {"dtype": "<f4", "shape": [3], "data": "AAAAAA=="}},
        {"$array": {"dtype": "<f4", "shape": [1], "data": "AAA="}},
        {"$array": {"dtype": "nonsense", "shape": [1], "data": ""}},
        {"$array": {"dtype": "<f4", "shape": [1]}},
        {"$array": 7},
        {"$bytes": {"data": "no base64!"}},
        {"$bytes": {"sha256": "00"}},
    ],
)
def test_from_json_refuses_texts_that_to_json_does_not_write(written: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(written)


def test_from_json_refuses_a_damaged_payload() -> None:
    store: dict[str, bytes] = {}
    written = to_json(bytes(5000), store)
    [name] = store
    store[name] = bytes(4999) + b"x"
    with pytest.raises(ValueError, match="is damaged"):
        from_json(written, store)


@given(VALUES, st.data())
def test_unpack_never_returns_another_value_from_damaged_bytes(value: Any, data: Any) -> None:
    value = normalized(value)
    packed = bytearray(pack(value))
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = unpack(bytes(packed))
    except ValueError:
        return
    assert_same(found, value)  # a few bits of zlib have no meaning


@given(st.binary())
def test_unpack_refuses_bytes_of_anything_else(noise: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        unpack(noise)


def test_canonical_bytes_do_not_depend_on_the_order_of_keys() -> None:
    assert canonical({"b": 1, "a": [1.0, "é"]}) == b'{"a":[1.0,"\\u00e9"],"b":1}'
    assert canonical({"a": [1.0, "é"], "b": 1}) == canonical({"b": 1, "a": [1.0, "é"]})
