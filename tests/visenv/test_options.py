"""Tests that options in names are read as pairs, or refused with the text."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.errors import ConfigurationError
from visenv.options import read_options, split_place


def test_folder_may_have_a_question_mark_in_its_name(tmp_path: Path) -> None:
    assert split_place("no/such?split=val") == ("no/such", "split=val")
    assert split_place("no/such") == ("no/such", "")
    folder = tmp_path / "which one?"
    (folder / "a?b").mkdir(parents=True)
    assert split_place(f"{folder}") == (f"{folder}", "")
    assert split_place(f"{folder}?split=val") == (f"{folder}", "split=val")
    assert split_place(f"{folder}/a?b?split=val&x=?") == (f"{folder}/a?b", "split=val&x=?")
    assert split_place(f"{folder}/c?split=val") == (f"{tmp_path}/which one", "/c?split=val")
    assert split_place("a\0?b" * 9_000)[0] == "a\0"


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
