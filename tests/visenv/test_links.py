"""Tests that no command writes through a link that a received folder contains."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from tests.links import Write, outputs, written_through_links
from tests.text_documents import TextDocument
from visenv.cli import main
from visenv.curation.journal import RowOutcome, kept
from visenv.curation.lines import JsonLines, Row
from visenv.curation.step import CurationStep
from visenv.documents.library import write_pages
from visenv.retrieval.vector_store import VectorItem, VectorStore
from visenv.scorers.cache import DiskCache
from visenv.search import Passage
from visenv.search.recorded import RecordedSearch
from visenv.search.words import build

pytestmark = pytest.mark.attack("files: nothing is written through a link")


def nothing(folder: Path) -> None:
    """Leave the folder empty."""


def command(*words: str) -> Callable[[Path], int]:
    """Return a function that runs a command; ``{}`` is the folder."""
    return lambda folder: main([word.replace("{}", str(folder)) for word in words])


ROLLOUT = ("rollout", "ZoomVQA-v0", "--option", "preset=tiny", "--groups", "1", "--out", "{}")


class Same(CurationStep):
    """Keeps all rows."""

    name = "same"

    @override
    async def decide(self, row: Row) -> RowOutcome:
        return kept(row)


def curate(folder: Path) -> None:
    rows = folder.parent / "rows"
    rows.mkdir(exist_ok=True)
    (rows / "a.png").write_bytes(b"picture")
    (rows / "rows.jsonl").write_text(json.dumps({"id": 1, "images": ["a.png"]}))
    Same().run(JsonLines(rows / "rows.jsonl"), folder / "out.jsonl")


class Numbers:
    """Makes vectors of two numbers."""

    name, dimension = "numbers", 2


def store_vectors(folder: Path) -> None:
    with VectorStore(folder, Numbers()) as store:
        store.put([VectorItem("a", np.array([[1, 0]], np.float32))])
        store.seal({"all": ["a"]})


class Engine:
    """Finds one passage."""

    name = "engine"

    def search(self, query: str, count: int) -> list[Passage]:
        return [Passage("title", "text", "")]

    def close(self) -> None: ...


def cache(folder: Path) -> None:
    disk = DiskCache(folder)
    disk.put("key", 1.0)
    disk.close()


WRITERS: dict[str, Write] = {
    "rollout": command(*ROLLOUT),
    "eval": command("eval", *ROLLOUT[1:4], "--policy", "oracle", "--episodes", "1", *ROLLOUT[-2:]),
    "questions": command(
        "data", "questions", *ROLLOUT[1:4], "--samples", "1", "--out", "{}/q.jsonl"
    ),
    "curation": curate,
    "search": lambda folder: build(folder, [Passage("title", "text", "")]),
    "recorded search": lambda folder: RecordedSearch(folder / "f.jsonl", Engine()).search("q", 1),
    "cache": cache,
    "pages": lambda folder: write_pages(TextDocument("name", ["text"]), folder),
}


FILES = ("questions", "curation", "recorded search")
"""Writers for which the person names a file; its folder may be a link."""


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_writer_follows_no_link(name: str, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    names = outputs(WRITERS[name], tmp_path / "first")
    assert len(names) > 1
    names = names[1:] if name in FILES else names
    assert [*written_through_links(WRITERS[name], nothing, names, tmp_path / "runs")] == []


@pytest.mark.slow
@pytest.mark.component("chromadb")
def test_store_of_vectors_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    names = outputs(store_vectors, tmp_path / "first")
    assert {"sealed.json", "writer.lock", "writer.pid", "chroma/", "chroma/chroma.sqlite3"} <= {
        *names
    }
    assert [*written_through_links(store_vectors, nothing, names, tmp_path / "runs")] == []


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sent") / "run"
    assert command(*ROLLOUT)(folder) == 0
    return folder


READERS: dict[str, Write] = {
    "view": command("view", "{}", "--no-open"),
    "rollout again": command(*ROLLOUT),
    "inspect": command("export", "{}", "--to", "inspect"),
    "rescore": command("rescore", "{}/episodes.jsonl", "--out", "{}/new.jsonl"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_command_on_a_received_run_follows_no_link(name: str, run: Path, tmp_path: Path) -> None:
    def received(folder: Path) -> None:
        shutil.copytree(run, folder, dirs_exist_ok=True)

    received(tmp_path / "first")
    written = outputs(READERS[name], tmp_path / "first")
    known = [path.relative_to(run).as_posix() + "/" * path.is_dir() for path in run.rglob("*")]
    names = [*written, *known]
    assert [*written_through_links(READERS[name], received, names, tmp_path / "runs")] == []


def test_old_parts_of_a_report_in_another_folder_are_kept(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/episodes-aaaa-0.js").write_text("keep")
    (tmp_path / "run/report").symlink_to(tmp_path / "other")
    assert main(["view", str(tmp_path / "run"), "--no-open"]) == 1
    assert [path.read_text() for path in (tmp_path / "other").iterdir()] == ["keep"]


def test_error_names_the_link_and_the_remedy(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[Any]
) -> None:
    (tmp_path / "link").symlink_to(run)
    assert main([word.replace("{}", str(tmp_path / "link")) for word in ROLLOUT]) == 1
    said = capsys.readouterr().err
    assert f"{tmp_path / 'link'} is a link" in said
    assert "Name the real path, or remove the link." in said
