"""Tests the limits of JSON texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.data.json_rows import json_lines, json_list, json_object
from visenv.decoding.json_text import DEEPEST, read_json
from visenv.errors import DataError

ATTACK = pytest.mark.attack("decoders: rows cannot end or stop the process")

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(values)
def test_json_is_read_as_by_python(value: Any) -> None:
    assert read_json(json.dumps(value)) == value


@ATTACK
@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_nesting_is_limited(opening: str) -> None:
    levels = opening.count("[") + opening.count("{")
    closing = opening.replace('"a":', "")[::-1].translate(str.maketrans("[{", "]}"))
    count = DEEPEST // levels
    assert read_json(opening * count + "1" + closing * count) is not None
    for deeper in (count + 1, 100_000):
        for end in (closing * deeper, ""):
            with pytest.raises(DataError, match=r"256 levels|not JSON"):
                read_json(opening * deeper + "1" + end)


@ATTACK
@given(st.text(max_size=30) | st.binary(max_size=30))
def test_json_is_a_value_or_an_error_whatever_it_contains(text: str | bytes) -> None:
    try:
        read_json(text)
    except DataError as error:
        assert "JSON" in str(error)  # noqa: PT017 - both outcomes are right


@ATTACK
@pytest.mark.parametrize("text", ["1" * 5000, "-" + "9" * 100_000, "[1e999, " + "1" * 9999 + "]"])
def test_long_integer_is_an_error(text: str) -> None:
    with pytest.raises(DataError, match="not JSON: Exceeds the limit"):
        read_json(text)


def test_long_text_is_refused_and_names_the_limit() -> None:
    with pytest.raises(DataError, match="more than 10 bytes, which is the limit"):
        read_json(b'"123456789"', 10)
    assert read_json(b'"12345678"\n', 10) == "12345678"


@ATTACK
def test_rows_beside_a_row_that_is_too_deep_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"a": 1}\n' + b"[" * 100_000 + b"\n" + b'{"a": 2}\n')
    rows = []
    for place, line in json_lines(file):
        try:
            rows.append(json_object(line)["a"])
        except DataError as error:
            rows.append(f"{place.row}: {error}")
    assert rows == [1, "2: not JSON: nested in more than 256 levels, which is the limit", 2]


@ATTACK
def test_list_of_a_file_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"[" * 100_000)
    with pytest.raises(DataError, match=r"a\.json cannot be read: .*256 levels"):
        json_list(file)
