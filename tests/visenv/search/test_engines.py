"""Tests the choice of search engines by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from visenv.errors import ConfigurationError, DataError, UnknownNameError
from visenv.search import open_searcher
from visenv.search.serper import KEY, SerperSearch
from visenv.search.words import WordSearch


def test_engines_by_name(index: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert isinstance(open_searcher(f"words:{index}"), WordSearch)
    monkeypatch.setenv(KEY, "k")
    assert isinstance(open_searcher("serper"), SerperSearch)
    assert open_searcher(f"serper:{tmp_path / 'web.jsonl'}").name == "recorded:serper"
    with pytest.raises(UnknownNameError, match="Did you mean 'words'"):
        open_searcher("word:x")
    with pytest.raises(ConfigurationError, match="words:<place>"):
        open_searcher("words")
    with pytest.raises(DataError, match="no recorded search"):
        open_searcher(f"recorded:{tmp_path / 'none.jsonl'}")
