"""Defines the requests of a policy to an engine in any process, the results, and both as JSON.

`encode` and `decode` convert them for vLLM's endpoint ``/inference/v1/generate``, which takes
tokens with one placeholder per item, and images and videos by name (``content_parts``, vLLM 0.28 or
newer). An item that the server has cached is sent by its name alone.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from visenv.types import FinishReason, Image, Video, Visual

from .videos import MEDIA_TYPE, packed
from .weights import WeightUpdate

ARGUMENT = "visenv_turn"
"""Entry of vLLM's `SamplingParams.extra_args` with a turn's rules for `TurnProcessor`."""


class EngineRequest(NamedTuple):
    """Describes one turn to sample.

    Attributes:
        token_ids: The prompt, with the one token that the chat template writes for each image and
            video.
        images: The images, in the order of their placeholders.
        temperature: Sampling temperature; 0 is greedy.
        seed: Seed of this turn.
        limit: Maximum number of tokens to sample, at least 1.
        stop: Strings that end the turn.
        regex: Expression that the whole turn must match, or None.
        said: Number of tokens of this turn that were sampled before an interruption; they end
            the prompt.
        videos: The videos, in the order of their placeholders.
    """

    token_ids: list[int]
    images: tuple[Image, ...]
    temperature: float
    seed: int
    limit: int
    stop: tuple[str, ...] = ()
    regex: str | None = None
    said: int = 0
    videos: tuple[Video, ...] = ()

    def parameters(self, end_id: int) -> dict[str, Any]:
        """Return the fields of vLLM's `SamplingParams`."""
        turn = {"stop": list(self.stop), "regex": self.regex, "said": self.said}
        return {
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.limit,
            "stop_token_ids": [end_id],
            "ignore_eos": True,  # other end tokens of the checkpoint are banned
            "logprobs": 0,  # only of the sampled token
            "detokenize": False,
            "extra_args": {ARGUMENT: turn} if self.stop or self.regex is not None else None,
        }


class EngineOutput(NamedTuple):
    """Holds the sampled tokens of one request.

    Attributes:
        prompt_ids: The prompt as the engine read it, with expanded placeholders; None if it read
            none.
        token_ids: The sampled tokens.
        logprobs: Natural logarithm of each token's probability.
        finish: Finish reason; ``"abort"`` if the weights changed during the turn: request the rest
            then.
        version: Version of the weights that sampled the tokens.
    """

    prompt_ids: Sequence[int] | None
    token_ids: list[int]
    logprobs: list[float]
    finish: FinishReason
    version: int


class EngineClient(Protocol):
    """Represents an engine for a policy. Any thread may call its methods.

    Attributes:
        context: Maximum number of tokens in a conversation.
        stale: Whether the engine lacks the weights of `version`, and thus refuses to sample: it was
            restarted, woke from a sleep that dropped them, or a transfer failed.
    """

    context: int
    stale: bool

    @property
    def version(self) -> int:
        """Return the version of the weights with which the engine samples."""

    def submit(self, request: EngineRequest) -> Future[EngineOutput]:
        """Sample a turn; cancelling the future aborts the turn.

        The future raises `PolicyError` if the engine refuses, dies or hangs.
        """

    def check(self) -> None:
        """Check that the engine still works.

        Raises:
            PolicyError: If the engine died or hangs; turns in progress raise it as well.
        """

    def load(self, delivery: WeightUpdate, version: int) -> None:
        """Load weights; see `EnginePolicy.load`."""

    def sleep(self) -> None:
        """Put the engine to sleep; see `EnginePolicy.sleep`."""

    def wake(self) -> None:
        """Wake the engine; see `EnginePolicy.wake`."""

    def close(self) -> None:
        """Stop the engine."""


_FINISH: dict[str, FinishReason] = {"stop": "stop", "length": "length", "abort": "abort"}


def encode(request: EngineRequest, end_id: int, known: AbstractSet[str]) -> dict[str, Any]:
    """Return the body of a request.

    Args:
        request: The tokens, images and videos, and the sampling parameters.
        end_id: The token that ends a turn.
        known: Names (SHA-256) of the items that the server has cached.
    """
    body = {
        "token_ids": request.token_ids,
        "sampling_params": request.parameters(end_id),
        "return_token_ids": True,
    }
    if items := shown(request):
        body["content_parts"] = [_part(item, known) for item in items]
    return body


def decode(answer: dict[str, Any], version: int) -> EngineOutput:
    """Return the tokens of a reply, sampled with the weights of this version."""
    choice = answer["choices"][0]
    logprobs = [] if choice["logprobs"] is None else choice["logprobs"]["content"]
    return EngineOutput(
        answer["prompt_token_ids"],
        choice["token_ids"],
        [token["logprob"] for token in logprobs],
        _FINISH.get(choice["finish_reason"], "abort"),
        version,
    )


def shown(request: EngineRequest) -> tuple[Visual, ...]:
    """Return the images and videos of a request."""
    return (*request.images, *request.videos)


def _part(item: Visual, known: AbstractSet[str]) -> dict[str, Any]:
    kind, media_type = ("video", MEDIA_TYPE) if isinstance(item, Video) else ("image", "image/png")
    url = None
    if item.sha256 not in known:
        data = packed(item) if isinstance(item, Video) else item.png()
        url = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
    return {"type": f"{kind}_url", "url": url, "uuid": item.sha256}
