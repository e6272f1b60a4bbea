"""Tests a checkpoint with a tokenizer of real size, whose weights are in several files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.algos.trainer.model_runs import check_grpo_resumes, make_scenes, policy_of, short_run
from visenv.types import Sampling

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
pytest.importorskip("torchvision")

from tests.policies.conftest import Talk
from tests.policies.transformers import families
from tests.policies.transformers.tiny_families import parts, proof, tiles
from tests.policies.vllm.conftest import SMALL, WARNINGS, Exam

pytestmark = [
    pytest.mark.component("torch", "transformers"),
    pytest.mark.soak,
    *map(pytest.mark.filterwarnings, WARNINGS),
]

BOUND = 1e-5
"""Largest difference of log-probabilities in float32."""


class Large(NamedTuple):
    """Holds checkpoints of a model with 150,000 tokens.

    Attributes:
        before: The checkpoint that was built, with several files of weights.
        after: The checkpoint that a run saved after two steps of GRPO.
    """

    before: Path
    after: Path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Large:
    """Build a Mistral 3 with two layers, and check that it trains, saves and resumes."""
    top = tmp_path_factory.mktemp("large")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "byte_level", parts.large_byte_level)
        whole = families.build("mistral3", top / "whole")
    before = top / "before"
    model = transformers.AutoModelForImageTextToText.from_pretrained(whole)
    model.save_pretrained(before, max_shard_size="8MB")
    transformers.AutoProcessor.from_pretrained(whole).save_pretrained(before)
    assert len([*before.glob("*.safetensors")]) > 1
    check_grpo_resumes(before, make_scenes, short_run, top)
    (after,) = (top / "straight").glob("checkpoints/step_000002/policy")
    return Large(before, after)


@pytest.fixture(scope="module")
def engine(large: Large) -> Iterator[Any]:
    """Yield an engine that has read the files of the checkpoint that was built."""
    pytest.importorskip("vllm")
    from visenv.policies.vllm import VLLMPolicy

    with closing(VLLMPolicy(large.before, **SMALL)) as policy:
        yield policy


def test_large_tokenizer_trains_and_is_saved_whole(large: Large) -> None:
    saved = large.after
    config = json.loads((saved / "config.json").read_text())
    assert config["text_config"]["vocab_size"] >= 150_000
    stock = transformers.AutoModelForImageTextToText.from_pretrained(saved)
    assert torch.isfinite(stock.get_output_embeddings().weight).all()
    tokenizer = transformers.AutoProcessor.from_pretrained(saved).tokenizer
    assert len(tokenizer("thesethesethese", add_special_tokens=False)["input_ids"]) < 10


@pytest.mark.component("vllm")
@pytest.mark.parametrize("which", ["before", "after"])
def test_vllm_samples_a_large_vocabulary_as_transformers(
    engine: Any, large: Large, which: str
) -> None:
    """Check the weights that the engine read from files, and the trained ones that it was sent."""
    folder = getattr(large, which)
    trained = policy_of(folder)
    if which == "after":
        engine.load(trained.named_weights(), 2)
    exam = Exam(Talk())
    ours, theirs = (
        exam.play(policy, range(4), sampling=Sampling(0.0, 12)) for policy in (engine, trained)
    )
    for one, other in zip(ours, theirs, strict=True):
        assert one.token_ids.tolist() == other.token_ids.tolist()
        np.testing.assert_allclose(one.logprobs, other.logprobs, rtol=0, atol=BOUND)
    assert max(int(one.token_ids.max()) for one in ours) > 2**16  # merged tokens were sampled
    sessions = proof.converse(engine)
    assert proof.score_differences(trained, folder, sessions).sampled <= BOUND
    found, expected = proof.first_tokens(engine, sessions[0])
    assert found == expected
