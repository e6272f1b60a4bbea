"""Engines by name, fusion by hand, and tantivy."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.errors import ConfigurationError, DataError, ServiceError, UnknownNameError
from visenv.search import Passage, open_searcher, tantivy_words
from visenv.search.fused import FusedSearch
from visenv.search.serper import KEY, SerperSearch
from visenv.search.tantivy_words import TantivySearch
from visenv.search.words import WordSearch


class Fixed:
    """Finds the same passages for every query."""

    def __init__(self, *titles: str) -> None:
        self.name = "fixed"
        self.titles = titles
        self.wanted = 0

    def search(self, query: str, count: int) -> list[Passage]:
        self.wanted = count
        return [Passage(title, "") for title in self.titles][:count]

    def close(self) -> None:
        pass


def test_fusion_by_hand() -> None:
    """b: 1/62 + 1/61 = .03252, a: 1/61 = .01639, c: 1/62 = .01613, so b, a, c."""
    first, second = Fixed("a", "b"), Fixed("b", "c")
    found = FusedSearch([first, second]).search("q", 3)
    assert [each.title for each in found] == ["b", "a", "c"]
    assert first.wanted == 12
    assert [each.title for each in FusedSearch([first, second]).search("q", 1)] == ["b"]
    with pytest.raises(ConfigurationError, match="two engines"):
        FusedSearch([first])


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


@pytest.mark.component("tantivy")
def test_tantivy_finds_the_same_and_takes_any_query(
    tmp_path: Path, articles: list[Passage]
) -> None:
    with pytest.raises(DataError, match="--tantivy"):
        TantivySearch(tmp_path)
    with pytest.raises(DataError, match="no passage"):
        tantivy_words.build(tmp_path, [])
    assert tantivy_words.build(tmp_path, articles) == 5
    searcher = pickle.loads(pickle.dumps(open_searcher(f"tantivy:{tmp_path}")))
    assert searcher.search("who founded the Kastor works", 1) == [articles[0]]
    assert searcher.search("granite", 5) == [articles[3]]
    for query in ('"', "title:x AND (", "granite\x00", "\ud800", "*:*", "/.*/", "a " * 4000, ""):
        assert len(searcher.search(query, 5)) <= 5
    assert searcher.search("*:*", 5) == []
    (tmp_path / tantivy_words.FOLDER / "meta.json").write_text("{")
    with pytest.raises(DataError, match="no index that can be read"):
        TantivySearch(tmp_path)


@pytest.fixture(scope="module")
def tantivy_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tantivy")
    texts = [f"granite {number} word{number % 7} " * 20 for number in range(300)]
    tantivy_words.build(folder, [Passage(text[:12], text) for text in texts])
    return folder


@pytest.mark.component("tantivy")
@given(st.text(max_size=80) | st.binary(max_size=40).map(lambda raw: raw.decode("latin-1")))
def test_tantivy_takes_a_query_of_any_bytes(tantivy_index: Path, query: str) -> None:
    assert len(TantivySearch(tantivy_index).search(query, 3)) <= 3


@pytest.mark.component("tantivy")
@pytest.mark.parametrize("suffix", [".idx", ".store", ".term", ".pos", ".fast", ".fieldnorm"])
@pytest.mark.parametrize("damage", ["cut", "gone", "inside"])
def test_a_damaged_file_of_tantivy_raises_our_errors_and_no_panic(
    tmp_path: Path, tantivy_index: Path, suffix: str, damage: str
) -> None:
    shutil.copytree(tantivy_index / tantivy_words.FOLDER, tmp_path / tantivy_words.FOLDER)
    (file,) = (tmp_path / tantivy_words.FOLDER).glob(f"*{suffix}")
    content = file.read_bytes()
    if damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "gone":
        file.unlink()
    else:  # what is read first, its end, stays
        file.write_bytes(bytes(byte ^ 0x55 for byte in content[:-160]) + content[-160:])
    if damage == "inside" and suffix in (".pos", ".fast", ".fieldnorm"):
        assert len(TantivySearch(tmp_path).search("granite 3", 5)) <= 5  # it changes ranks at most
        return
    with pytest.raises((DataError, ServiceError), match=tantivy_words.FOLDER):
        TantivySearch(tmp_path).search("granite 3", 5)


def test_one_engine_that_fails_aborts_the_fused_search() -> None:
    class Broken(Fixed):
        def search(self, query: str, count: int) -> list[Passage]:
            raise ServiceError("search", "gone")

    with pytest.raises(ServiceError, match="gone"):
        FusedSearch([Fixed("a"), Broken("b")]).search("q", 3)
