"""Records replies of vLLM's server for models that vLLM's CPU build does not sample.

    python -m tests.policies.vllm.recorded_replies

writes `RECORDED`. The prompts are those that vLLM's processor reads, without an engine. The tokens
and their log-probabilities are those of stock transformers, and the form of a reply is that of the
class with which vLLM's server makes it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from typing_extensions import override

from tests.policies.conftest import Talk
from tests.policies.transformers import families
from tests.policies.transformers.tiny_families import proof
from tests.policies.vllm.fake_server import FakeServer
from tests.policies.vllm.prompts import read_by_vllm
from visenv.policies.tokens.session import TokenStream
from visenv.policies.transformers import TransformersPolicy
from visenv.policies.vllm.sampler import _collapsed
from visenv.types import Message

RECORDED = Path(__file__).with_name("recorded_replies.jsonl")
"""One line for each family: its name, and the exchanges of one conversation."""

FAMILIES = (
    "gemma3", "qwen3_5", "glm46v", "lfm2_vl", "llava_onevision", "qwen3_vl_moe", "qwen3_5_moe",
)  # fmt: skip
"""Families whose prompts vLLM's processor reads, but which its CPU build does not sample."""


class Exchange(NamedTuple):
    """Holds a request to vLLM's server and its reply.

    Attributes:
        token_ids: The tokens of the request, with one placeholder for each image.
        reply: The reply as JSON.
    """

    token_ids: list[int]
    reply: dict[str, Any]


class RecordedServer(FakeServer):
    """Answers the requests of one conversation with its recorded replies.

    Args:
        image_processor: Fingerprint of the image processor of its worker.
        replies: The replies, in order.

    Attributes:
        requests: The bodies of all requests.
    """

    context = 512

    def __init__(self, image_processor: str, replies: Iterable[dict[str, Any]]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._replies = iter(replies)
        super().__init__(image_processor)

    @override
    def _sampled(self, body: dict[str, Any]) -> Any:
        self.requests.append(body)
        return next(self._replies)


def turns() -> list[list[Message]]:
    """Return the messages of the conversation: two turns, each with an image of another shape."""
    talk = Talk()
    return [
        [Message("user", ("Look: ", talk.picture(1, 100, 80), " what?"))],
        [Message("user", ("now ", talk.picture(2, 60, 90), " again"))],
    ]


def recorded() -> dict[str, list[Exchange]]:
    """Return the recorded exchanges of each family."""
    lines = map(json.loads, RECORDED.read_text().splitlines())
    return {line["family"]: [Exchange(**each) for each in line["exchanges"]] for line in lines}


def record(name: str, folder: Path) -> list[Exchange]:
    """Return the exchanges of a family.

    Args:
        name: The type of the model.
        folder: An empty folder for its checkpoint.
    """
    policy = TransformersPolicy(families.build(name, folder), threads=1)
    session, _ = Talk().alone(policy, 0, turns())
    (segment,) = session.segments()
    stock = proof.loaded(folder, torch.float32)
    with torch.no_grad():
        scores = proof.plain_scores(stock, policy, segment, proof.shown_in([session])).tolist()
    streams = [_before(session.stream, turn.start) for turn in segment.turns]
    sessions: list[Any] = [SimpleNamespace(stream=stream) for stream in streams]
    prompts = read_by_vllm(folder, sessions)
    exchanges = []
    for turn, stream, prompt in zip(segment.turns, streams, prompts, strict=True):
        token_ids = segment.token_ids[turn.start : turn.end].tolist()
        logprobs, scores = scores[: len(token_ids)], scores[len(token_ids) :]
        reply = _reply(prompt.found, token_ids, logprobs, turn.finish_reason)
        exchanges.append(Exchange(_collapsed(stream), reply))
    return exchanges


def _before(stream: TokenStream, end: int) -> TokenStream:
    """Return the first `end` tokens of a stream."""
    shown = [each for each in stream.shown if each.end <= end]
    return TokenStream(token_ids=stream.token_ids[:end], shown=shown)


def _reply(
    prompt: list[int], token_ids: list[int], logprobs: list[float], finish: str
) -> dict[str, Any]:
    from vllm.entrypoints.openai.chat_completion.protocol import (
        ChatCompletionLogProbs,
        ChatCompletionLogProbsContent,
    )
    from vllm.entrypoints.scale_out.token_in_token_out.protocol import (
        GenerateResponse,
        GenerateResponseChoice,
    )

    content = [
        ChatCompletionLogProbsContent(token=f"token_id:{token}", logprob=round(logprob, 7))
        for token, logprob in zip(token_ids, logprobs, strict=True)
    ]
    choice = GenerateResponseChoice(
        index=0,
        token_ids=token_ids,
        logprobs=ChatCompletionLogProbs(content=content),
        finish_reason=finish,
    )
    reply = GenerateResponse(request_id="0", choices=[choice], prompt_token_ids=prompt)
    return reply.model_dump(mode="json", exclude_none=True)


def main() -> None:
    lines = []
    for name in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            exchanges = [each._asdict() for each in record(name, Path(folder))]
        lines.append(json.dumps({"family": name, "exchanges": exchanges}, separators=(",", ":")))
    RECORDED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
