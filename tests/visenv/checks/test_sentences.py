"""Which parameters split sentences: the trained ones, where they are installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from visenv.checks import sentence_splitter, split_sentences
from visenv.checks.sentences import _loaded, _nltk_data, read_punkt_tab
from visenv.errors import DataError

FILES = {
    "abbrev_types.txt": "zzz\ndr",
    "collocations.tab": "##number##\tinternational",
    "sent_starters.txt": "the\nit",
    "ortho_context.tab": "the\t46\nsmith\t12",
}


@pytest.fixture(autouse=True)
def _looked_for_again() -> Iterator[None]:
    _loaded.cache_clear()
    yield
    _loaded.cache_clear()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine where nothing of NLTK's is installed."""
    monkeypatch.delenv("NLTK_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("visenv.checks.sentences._SYSTEM", ())
    return tmp_path


def install(data: Path, files: dict[str, str] = FILES) -> Path:
    folder = data / "tokenizers" / "punkt_tab" / "english"
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def test_ours_where_nothing_is_installed(home: Path) -> None:
    splitter = sentence_splitter()
    assert (splitter.name, splitter.folder) == ("built-in", None)
    assert splitter.abbreviations > 100
    assert len(split_sentences("The zzz. Mouse ran. Dr. No fled.")) == 3


def test_the_trained_ones_where_they_are_installed(home: Path) -> None:
    folder = install(home / "nltk_data")
    splitter = sentence_splitter()
    assert (splitter.name, splitter.folder, splitter.abbreviations) == ("punkt_tab", folder, 2)
    assert len(split_sentences("The zzz. Mouse ran. Dr. No fled.")) == 2


def test_nltk_data_comes_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(home / "nltk_data")
    folder = install(home / "elsewhere")
    monkeypatch.setenv("NLTK_DATA", f"{home / 'nowhere'}:{home / 'elsewhere'}")
    assert sentence_splitter().folder == folder


def test_without_a_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    assert sentence_splitter().name == "built-in"


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = install(tmp_path, {other: text for other, text in FILES.items() if other != name})
    with pytest.raises(DataError, match=name):
        read_punkt_tab(folder)


@pytest.mark.parametrize("line", ["the", "the\t46\t1", "the\tmany"])
def test_a_broken_line_is_no_crash(tmp_path: Path, line: str) -> None:
    folder = install(tmp_path, {**FILES, "ortho_context.tab": line})
    with pytest.raises(DataError, match="not a whole punkt_tab"):
        read_punkt_tab(folder)


@pytest.mark.component("nltk")
def test_nltk_looks_in_the_same_folders() -> None:
    import nltk

    assert [str(folder) for folder in _nltk_data()] == nltk.data.path


@pytest.mark.component("nltk")
def test_nltk_reads_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nltk
    from nltk.tokenize.punkt import PunktTokenizer

    ours = read_punkt_tab(install(tmp_path))
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    theirs = PunktTokenizer("english")._params
    assert theirs.abbrev_types == ours.abbreviations
    assert theirs.collocations == ours.collocations
    assert theirs.sent_starters == ours.starters
    assert theirs.ortho_context == ours.orthography
