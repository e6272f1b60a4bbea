"""Defines `OpenAIBackend`, a model on any OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from typing_extensions import override

from visenv.scorers.backend import ScorerBackend, ServiceLimits
from visenv.scorers.chat import ChatEndpoint
from visenv.scorers.request import Generate, LogProbs, ScoreRequest
from visenv.scorers.retry import RefusedError, TransientError
from visenv.types import Message, all_images

_CHARACTERS_PER_TOKEN = 4
_PIXELS_PER_TOKEN = 28 * 28


class OpenAIBackend(ScorerBackend):
    """Answers `Generate` on every server, and `LogProbs` on vLLM's.

    vLLM returns log-probabilities of a prompt (``prompt_logprobs``), and continues a final message
    of the assistant. The response of its ``/tokenize`` shows which tokens of the prompt are the
    continuation.

    Args:
        model: The model's name at the server.
        base_url: The base URL of the API; by default that of ``vllm serve`` on this machine.
        key_variable: Name of the environment variable that holds the API key, or None.
        extra: Further fields of the request body, which replace those of visenv; None removes a
            field, as in ``{"max_tokens": None, "max_completion_tokens": 512}``.
    """

    requests = (Generate, LogProbs)
    main_option = "model"
    transport_options = frozenset({"key_variable"})
    limits = ServiceLimits(max_concurrency=64, timeout=120.0, retries=5)

    def __init__(
        self,
        model: str,
        base_url: str = "http://localhost:8000/v1",
        key_variable: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self._model = model
        self._endpoint = ChatEndpoint(base_url, key_variable)
        self._extra = dict(extra or {})

    @property
    @override
    def model(self) -> str:
        """Return the model's name at the server."""
        return self._model

    @override
    def tokens(self, request: ScoreRequest) -> int:
        """Estimate the tokens: one per 4 characters or 28 x 28 pixels, plus `max_tokens`."""
        request = cast("Generate | LogProbs", request)
        characters, pixels = 0, 0
        for message in request.messages:
            characters += sum(len(part) for part in message.parts if isinstance(part, str))
            pixels += sum(image.size[0] * image.size[1] for image in message.images)
        if isinstance(request, LogProbs):
            characters += len(request.continuation)
        reply = request.max_tokens if isinstance(request, Generate) else 1
        return characters // _CHARACTERS_PER_TOKEN + pixels // _PIXELS_PER_TOKEN + reply

    @override
    async def score_batch(self, requests: Sequence[ScoreRequest]) -> Sequence[Any]:
        """Send one HTTP request for each request, because servers form batches themselves."""
        return await asyncio.gather(*map(self._score, requests))

    async def _score(self, request: ScoreRequest) -> Any:
        if isinstance(request, Generate):
            return await self._generate(request)
        return await self._log_probs(cast("LogProbs", request))

    async def _generate(self, request: Generate) -> dict[str, str]:
        body = {
            "messages": await _encoded(request.messages),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
        }
        if request.stop:
            body["stop"] = list(request.stop)
        choice = (await self._endpoint.complete(self._body(body))).choices[0]
        text, thought = choice.message.content, choice.message.thought
        if thought and not (text or "").strip():
            # The server took the whole reply for reasoning, unless the reply was cut in it.
            text = None if choice.finish_reason == "length" else thought
        if text is None:
            raise RefusedError(
                f"{self._model} sent no text (finish reason {choice.finish_reason!r}). If the "
                "server splits off reasoning or tool calls, switch its parsers off or allow more "
                "tokens."
            )
        return {"text": text, "finish_reason": choice.finish_reason or ""}

    async def _log_probs(self, request: LogProbs) -> list[float]:
        reply = Message("assistant", (request.continuation,))
        body = {
            "messages": await _encoded((*request.messages, reply)),
            "continue_final_message": True,
            "add_generation_prompt": False,
            "prompt_logprobs": 0,  # only of the prompt's own tokens
            "max_tokens": 1,
            "temperature": 0.0,
        }
        completion, tokens = await asyncio.gather(
            self._endpoint.complete(self._body(body)), self._tokenize(request.continuation)
        )
        return _tail(completion.prompt_logprobs, tokens)

    async def _tokenize(self, text: str) -> list[int]:
        url = self._endpoint.base_url.removesuffix("/v1") + "/tokenize"
        body = {"model": self._model, "prompt": text, "add_special_tokens": False}
        response = await self._endpoint.post(url, body)
        try:
            tokens: list[int] = json.loads(response)["tokens"]
        except (ValueError, LookupError, TypeError) as error:
            raise TransientError(f"{url} sent no tokens: {response[:100]!r}") from error
        return tokens

    def _body(self, fields: dict[str, Any]) -> dict[str, Any]:
        body = {"model": self._model} | fields | self._extra
        return {name: value for name, value in body.items() if value is not None}


async def _encoded(messages: Sequence[Message]) -> list[dict[str, Any]]:
    def encode() -> list[dict[str, Any]]:
        return [message.openai() for message in messages]

    # Encoding PNG files would block the event loop.
    return await asyncio.to_thread(encode) if all_images(messages) else encode()


def _tail(prompt: Any, tokens: Sequence[int]) -> list[float]:
    """Return the log-probabilities of the prompt's last tokens, which must equal `tokens`."""
    try:
        tail = zip(prompt[len(prompt) - len(tokens) :], tokens, strict=True)
        return [float(entry[str(token)]["logprob"]) for entry, token in tail]
    except (TypeError, LookupError, ValueError) as error:
        raise RefusedError(
            "the server's prompt_logprobs do not end with the tokens of the continuation. They "
            "need vLLM, and a continuation that the chat template keeps as it is and whose first "
            "token does not merge with the text before it."
        ) from error
