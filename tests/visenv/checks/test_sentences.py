"""Tests the splitting of sentences: NLTK's splitter, its parameters, and refused inputs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.checks import sentence_splitter, split_sentences
from visenv.checks.sentences import MOST_MARKS, _loaded
from visenv.errors import DataError

pytestmark = pytest.mark.component("nltk")

FILES = {
    "abbrev_types.txt": "zzz\ndr",
    "collocations.tab": "##number##\tinternational",
    "sent_starters.txt": "the\nit",
    "ortho_context.tab": "the\t46\nsmith\t12",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield an empty folder that is the whole search path of NLTK."""
    import nltk

    monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "nowhere"), str(tmp_path)])
    _loaded.cache_clear()
    yield tmp_path
    _loaded.cache_clear()


def install(data: Path, files: dict[str, str] = FILES) -> Path:
    folder = data / "tokenizers" / "punkt_tab" / "english"
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def test_sentence_splitter_without_nltk_data_is_the_built_in_one(home: Path) -> None:
    splitter = sentence_splitter()
    assert (splitter.name, splitter.folder) == ("built-in", None)
    assert splitter.abbreviations > 100
    assert len(split_sentences("The zzz. Mouse ran. Dr. No fled.")) == 3


def test_sentence_splitter_is_the_trained_one_if_it_is_installed(home: Path) -> None:
    folder = install(home)
    splitter = sentence_splitter()
    assert (splitter.name, splitter.folder, splitter.abbreviations) == ("punkt_tab", folder, 2)
    assert len(split_sentences("The zzz. Mouse ran. Dr. No fled.")) == 2


@pytest.mark.parametrize(
    "text",
    [
        "We met Dr. Smith. The dog saw J. The cat did not.",
        "A. The end. B. Smith went. In the 5. International he won. (Yes!) He did.",
        "It was zzz. The end... It went on",
    ],
)
def test_trained_as_nltk_splits(home: Path, text: str) -> None:
    import nltk

    install(home)
    assert split_sentences(text) == nltk.sent_tokenize(text)


@pytest.mark.parametrize("name", FILES)
def test_missing_file_is_named(home: Path, name: str) -> None:
    install(home, {other: text for other, text in FILES.items() if other != name})
    with pytest.raises(DataError, match=name):
        sentence_splitter()


@pytest.mark.parametrize("line", ["the", "the\t46\t1", "the\tmany"])
def test_broken_line_is_no_crash(home: Path, line: str) -> None:
    install(home, {**FILES, "ortho_context.tab": line})
    with pytest.raises(DataError, match="not a complete punkt_tab"):
        split_sentences("One. Two.")


@pytest.mark.parametrize("trained", [False, True])
def test_abbreviations_keep_no_word(home: Path, trained: bool) -> None:
    if trained:
        install(home)
    orthography = _loaded()[0]._params.ortho_context
    known = dict(orthography)
    for number in range(100):
        # NLTK looks up the word after an initial or an abbreviation.
        split_sentences(f"J. Word{number} met Dr. Name{number}. In 5. other{number} came.")
    assert orthography == known
    assert len(known) == (2 if trained else 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith came. He sat.", ["Dr. Smith came.", "He sat."]),
        ("He lives in the U.S. It is big.", ["He lives in the U.S.", "It is big."]),
        ("See fig. 3 on p. 5 first.", ["See fig. 3 on p. 5 first."]),
        ("He said no. Then he left.", ["He said no.", "Then he left."]),
        ("It is No. 5 of ten.", ["It is No. 5 of ten."]),
        ("We met J. S. Bach there.", ["We met J. S. Bach there."]),
        ("It cost 3.50 in all. Cheap!", ["It cost 3.50 in all.", "Cheap!"]),
        ('He said "Stop." She did.', ['He said "Stop."', "She did."]),
        ("(It rained.) We left.", ["(It rained.)", "We left."]),
        ("Well... maybe. Or not.", ["Well... maybe.", "Or not."]),
        ("  Blanks before. And after.  ", ["  Blanks before.", "And after."]),
        ("", []),
        (" \n ", []),
    ],
)
def test_english(home: Path, text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected


@given(st.text())
def test_sentences_lose_nothing_but_blanks(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


def test_marks_up_to_the_limit() -> None:
    text = "So. " * MOST_MARKS
    assert len(split_sentences(text)) == MOST_MARKS
    with pytest.raises(DataError, match=f"{MOST_MARKS + 1} full stops"):
        split_sentences(text + "So!")


def test_sentences_where_nltk_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    redos = pytest.importorskip("nltk.redos", reason="this version of nltk has no time limits")
    monkeypatch.setattr(redos, "DEFAULT_TIMEOUT", 0.001)
    with pytest.raises(DataError, match="36000 characters could not be split"):
        split_sentences("1. Z" * 9_000)


def test_nltk_is_imported_for_sentences_only() -> None:
    program = """
import sys
from visenv.checks import check
assert check("check_whether_has_no_arabic_number_in_response", "None. At all.", {})
assert "nltk" not in sys.modules
bounds = {"lower_bound": 2, "upper_bound": 2}
assert check("check_whether_response_sentence_number_in_range", "None. At all.", bounds)
assert "nltk" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
