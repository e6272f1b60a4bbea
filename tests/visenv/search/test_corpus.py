"""Tests reading a corpus: every line gives a passage or a named problem."""

from __future__ import annotations

import json
from pathlib import Path, PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.errors import ConfigurationError, DataError
from visenv.search.corpus import LONGEST_QUERY, Corpus, Passage, cleaned, cut


def test_texts_and_lines_become_passages(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "Lune.txt").write_text("a river in the north")
    rows = [
        {"title": "Kastor", "text": "a works", "url": "a://1"},
        {"contents": '"Mira"\nan engineer'},  # the layout of FlashRAG
        {"contents": "no title"},
    ]
    lines = "\n".join(map(json.dumps, rows)) + "\n\n"
    (tmp_path / "a.jsonl").write_text(lines)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    assert list(Corpus(tmp_path)) == [
        Passage("Kastor", "a works", "a://1"),
        Passage("Mira", "an engineer"),
        Passage("", "no title"),
        Passage("Lune", "a river in the north"),
    ]


def test_long_articles_are_cut(tmp_path: Path) -> None:
    (tmp_path / "long.md").write_text("one two\nthree four five")
    assert [each.text for each in Corpus(tmp_path / "long.md", words=2)] == [
        "one two", "three four", "five",
    ]  # fmt: skip


def test_unreadable_row_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    lines = [b'{"text": "good"}', b"[1]", b'{"title": "x"}', b'{"text": 3}', b"\xff{", b"{" * 5000]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    corpus = Corpus(tmp_path)
    assert [each.text for each in corpus] == ["good"]
    assert [problem.split(": ")[0].rpartition("/")[2] for problem in corpus.problems] == [
        "a.jsonl:2", "a.jsonl:3", "a.jsonl:4", "a.jsonl:5", "a.jsonl:6", "latin.txt",
    ]  # fmt: skip
    assert list(corpus)  # a second reading reports the same problems
    assert len(corpus.problems) == 6


def test_corpus_without_passages_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no \.txt, \.md, \.jsonl file"):
        Corpus(tmp_path)
    with pytest.raises(ConfigurationError, match="at least 1 word"):
        Corpus(tmp_path, words=0)


@given(st.lists(st.text("ab", min_size=1, max_size=3), max_size=30), st.integers(1, 7))
def test_cutting_keeps_every_word_in_order(words: list[str], size: int) -> None:
    parts = [each.text.split() for each in cut(Passage("t", " ".join(words)), size)]
    assert [word for part in parts for word in part] == words
    assert all(1 <= len(part) <= size for part in parts)


@given(st.text())
def test_cleaning_is_idempotent_and_short(query: str) -> None:
    text = cleaned(query)
    assert cleaned(text) == text
    assert len(text) <= LONGEST_QUERY
    assert text.isprintable()
    text.encode()


def test_links_out_of_the_folder_are_left_out_and_named(tmp_path: Path) -> None:
    outside, folder = tmp_path / "secret.txt", tmp_path / "corpus"
    outside.write_text("not for indexes")
    folder.mkdir()
    (folder / "a.txt").write_text("for indexes")
    (folder / "inside.txt").symlink_to(folder / "a.txt")
    (folder / "link.txt").symlink_to(outside)
    corpus = Corpus(folder)
    assert [passage.text for passage in corpus] == ["for indexes"] * 2
    assert corpus.problems == [f"{folder / 'link.txt'}: leads out of the folder"]


def test_folder_of_links_out_of_it_is_an_error(tmp_path: Path) -> None:
    outside, folder = tmp_path / "secret.txt", tmp_path / "corpus"
    outside.write_text("not for indexes")
    folder.mkdir()
    (folder / "link.txt").symlink_to(outside)
    with pytest.raises(DataError, match="leads out of the folder"):
        Corpus(folder)


def test_work_for_each_file_does_not_grow_with_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a set of all paths is not built for each of 200 files (40,000 hashes)."""
    for number in range(200):
        (tmp_path / f"{number}.txt").write_text("text")
    hashed, hash_of = [0], PurePath.__hash__

    def counted(path: PurePath) -> int:
        hashed[0] += 1
        return hash_of(path)

    monkeypatch.setattr(PurePath, "__hash__", counted)
    Corpus(tmp_path)
    assert hashed[0] <= 10 * 200
