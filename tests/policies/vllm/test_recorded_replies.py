"""Tests models that vLLM's CPU build does not sample, against recorded replies of its server."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.environments import few
from visenv.errors import PolicyError

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("torchvision")

from tests.policies.vllm.recorded_replies import FAMILIES, RecordedServer, recorded, turns
from visenv.policies.transformers import TransformersPolicy
from visenv.policies.vllm import VLLMServerPolicy

pytestmark = [
    pytest.mark.component("torch", "transformers", "trl"),  # TRL contains chat templates
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:__array__ impl:DeprecationWarning"),  # GLM-4.6V's processor
]

BOUND = 1e-5
"""Largest difference of log-probabilities in float32."""


@pytest.fixture(scope="module", params=few(FAMILIES, 1))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def trained(folder: Path) -> TransformersPolicy:
    return TransformersPolicy(folder, threads=1)


def test_conversation_has_the_tokens_and_scores_of_the_replies(
    name: str, folder: Path, trained: Any, talk: Any
) -> None:
    """Check two turns with one image each: requests, prompts, tokens and log-probabilities."""
    exchanges = recorded()[name]
    server = RecordedServer(trained.image_processor, [reply for _, reply in exchanges])
    with closing(VLLMServerPolicy(folder, server.url, context=server.context)) as policy:
        session, _ = talk.alone(policy, 0, turns())
    server.die()
    assert [body["token_ids"] for body in server.requests] == [sent for sent, _ in exchanges]
    assert [len(body["content_parts"]) for body in server.requests] == [1, 2]
    (segment,) = session.segments()
    for turn, (_, reply) in zip(segment.turns, exchanges, strict=True):
        (choice,) = reply["choices"]
        own = slice(turn.start, turn.end)
        assert segment.token_ids[: turn.start].tolist() == reply["prompt_token_ids"]
        assert segment.token_ids[own].tolist() == choice["token_ids"]
        expected = [token["logprob"] for token in choice["logprobs"]["content"]]
        assert segment.logprobs[own].tolist() == np.array(expected, np.float32).tolist()
    scored = trained.score([segment], session.stream.items).logprobs[0].detach().numpy()
    np.testing.assert_allclose(scored, segment.logprobs, rtol=0, atol=BOUND)


def test_reply_to_another_prompt_is_an_error(
    name: str, folder: Path, trained: Any, talk: Any
) -> None:
    (_, reply), *_ = recorded()[name]
    other = reply | {"prompt_token_ids": [*reply["prompt_token_ids"], 1]}
    server = RecordedServer(trained.image_processor, [other])
    with (
        closing(VLLMServerPolicy(folder, server.url, context=server.context)) as policy,
        pytest.raises(PolicyError, match=f"'{name}' differs"),
    ):
        talk.alone(policy, 0, turns()[:1])
    server.die()
