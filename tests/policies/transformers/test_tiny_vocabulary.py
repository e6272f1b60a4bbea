"""Tests that the tiny models' tokenizers are unchanged, as published runs depend on every token."""

from __future__ import annotations

import hashlib
import json

import pytest

from visenv.registration import load

pytestmark = pytest.mark.component("transformers")

# These are digests of the merges and of the vocabulary in the order of its ids, at the commit of
# the numbers in docs/main_job.md and benchmarks/results/ (29f5df9).
DIGESTS = {
    "zoom": "3a1b9d906cf0f8b8081648b61d2601ae8ccfa3427b89ca87f060b0f5a4cd0144",
    "arm": "076f2fc1ab3d96357f29a445d46c352bd788b70ff72979caa33141931b7e6b88",
    # This digest is of the version that fixed images and rewards of ArftCoding; its numbers are
    # older.
    "arft": "70b13de38fcc21dd3dcd39782c58cb6a35a96e1b8b62182be05ba67d1a21397a",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_vocabulary_is_the_one_of_the_published_runs(name: str) -> None:
    from visenv.policies.transformers import tiny

    words = load("vocabulary", name)
    tokenizer = tiny.build_tokenizer(tiny.TinyConfig().vocab_size, words)
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    digest = hashlib.sha256(json.dumps([merges, vocabulary]).encode()).hexdigest()
    assert digest == DIGESTS[name]
