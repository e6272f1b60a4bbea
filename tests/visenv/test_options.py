"""Tests that options in names are read as pairs, or refused with the text."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.errors import ConfigurationError
from visenv.options import read_options


def test_options_are_pairs() -> None:
    assert read_options("", "a data set") == {}
    assert read_options("split=val&rows=", "a data set") == {"split": "val", "rows": ""}
    assert read_options("url=http%3A%2F%2Fx%3Fa%3D1", "a scorer") == {"url": "http://x?a=1"}


@pytest.mark.parametrize("query", ["split", "a=1&", "&", "a=1&&b=2", "=&x"])
def test_text_that_is_no_list_of_pairs_is_refused(query: str) -> None:
    with pytest.raises(ConfigurationError, match="Options of a magnifier are option=value"):
        read_options(query, "a magnifier")


@given(st.dictionaries(st.text(string.ascii_letters + "_", min_size=1), st.text("abc /:0.9")))
def test_pairs_of_any_kind_are_read_back(options: dict[str, str]) -> None:
    query = "&".join(f"{name}={value.replace(' ', '+')}" for name, value in options.items())
    assert read_options(query, "a scorer") == options
