"""Defines `OpenAIPolicy`, which requests turns, and builds whole turns from the replies."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from visenv.credentials import VARIABLES, check_no_credentials
from visenv.errors import ConfigurationError, PolicyError
from visenv.policy import Policy, Session
from visenv.scorers.chat import ChatChoice, ChatClient
from visenv.types import FinishReason, Message, Reply, Sampling, TurnRequest

from .reasoning import JoinedReply, SplitReply, joined

_log = logging.getLogger(__name__)

RegexField = Literal["structured_outputs", "guided_regex", "regex"]
_REGEX_FIELDS = ("structured_outputs", "guided_regex", "regex")
_FINISH: dict[str | None, FinishReason] = {"stop": "stop", "length": "length"}


class ChatSession(Session):
    """Encodes each message once, because images are large."""

    def __init__(self) -> None:
        super().__init__()
        self._encoded: list[tuple[Message, dict[str, Any]]] = []

    def encoded(self) -> list[dict[str, Any]]:
        """Return the conversation as OpenAI messages, images as PNG data URLs."""
        kept = self._encoded
        for place, message in enumerate(self.messages):
            if place == len(kept) or kept[place][0] is not message:
                kept[place:] = [(message, message.openai())]
        del kept[len(self.messages) :]
        return [encoded for _, encoded in kept]


class OpenAIPolicy(Policy[ChatSession]):
    """Plays through the chat API of vLLM, SGLang, llama.cpp, OpenAI or similar servers.

    Args:
        model: Name of the model at the server.
        base_url: Base address of the API, for example ``http://localhost:8000/v1``.
        key_variable: Name of the environment variable with the API key, or None. The key is never
            stored, logged or pickled.
        prefill: Whether the server continues a final assistant message (vLLM, SGLang): the prefill
            of the turn is then sent as its beginning. Otherwise the prefill is not sent, and the
            model writes the whole turn.
        regex_field: Name of the request field with a regular expression for structured decoding:
            vLLM's ``"structured_outputs"``, the ``"guided_regex"`` of vLLM before 0.11, or SGLang's
            ``"regex"``. None sends no expression, so that turns are not constrained.
        extra: Further fields of the request body, which override other fields, for example
            ``{"top_p": 0.9}`` or ``{"logprobs": True}``. None removes a field, as in
            ``{"max_tokens": None, "max_completion_tokens": 512}``.
        timeout: Maximum number of seconds of one attempt.
        retries: Further attempts after a failure that may be temporary (`ChatClient`).
        concurrency: Maximum number of requests at the same time.

    Raises:
        ConfigurationError: If an option has an invalid value or looks like a credential, or the key
            is not set.
    """

    def __init__(
        self,
        model: str,
        base_url: str = "http://localhost:8000/v1",
        *,
        key_variable: str | None = None,
        prefill: bool = False,
        regex_field: RegexField | None = None,
        extra: Mapping[str, Any] | None = None,
        timeout: float = 120.0,
        retries: int = 5,
        concurrency: int = 64,
    ) -> None:
        if regex_field not in (None, *_REGEX_FIELDS):
            raise ConfigurationError(
                f"regex_field must be None or one of {_REGEX_FIELDS}, got {regex_field!r}."
            )
        given = {"model": model, "base_url": base_url, "key_variable": key_variable, "extra": extra}
        check_no_credentials("policy 'openai'", given, VARIABLES["openai"])
        self.model = model
        self.prefill = prefill
        self.regex_field = regex_field
        self.extra = dict(extra or {})
        self._warned = False
        self.client = ChatClient(
            base_url,
            key_variable=key_variable,
            timeout=timeout,
            retries=retries,
            concurrency=concurrency,
        )

    @override
    def open(self, seed: int) -> ChatSession:
        """Return an empty conversation."""
        return ChatSession()

    @override
    async def respond(
        self, session: ChatSession, request: TurnRequest, sampling: Sampling
    ) -> Reply:
        """Ask the server for the next turn.

        `Reply.logprobs` contains the server's values, if it sends any. `Reply.token_ids` is always
        empty, because generic servers send no ids. A finish reason other than ``"stop"`` and
        ``"length"`` (such as a content filter, or an aborted request) becomes ``"abort"``.

        Reasoning that the server splits off is put back in the form that the environment asks for
        (`visenv.policies.openai.reasoning`). A reply whose tokens were all used for reasoning is a
        turn that was cut.

        Raises:
            PolicyError: If the server cannot be reached, refuses, or sends no text.
        """
        messages = await asyncio.to_thread(session.encoded)
        choice = await self.client.complete(self._body(messages, request, sampling))
        is_cut = choice.finish_reason == "length"
        content, thought = choice.message.content, choice.message.thought
        if content is None and not thought and not is_cut:
            raise PolicyError(
                f"{self.model} sent no text (finish reason {choice.finish_reason!r}). If the "
                "server splits off tool calls, switch its parsers off: the environment's grammar "
                "reads the whole text."
            )
        if is_cut and not (content or "").strip():
            self._warn_once()
        reply_as_sent = SplitReply(content or "", thought, is_cut)
        whole = joined(reply_as_sent, session.messages, request, self.prefill)
        text, cut = _whole_turn(whole, choice, request, self.prefill)
        finish: FinishReason = "stop" if cut else _FINISH.get(choice.finish_reason, "abort")
        reply = Reply(text, np.zeros(0, np.int32), _logprobs(choice), finish)
        session.said(reply)
        return reply

    def _body(
        self, messages: list[dict[str, Any]], request: TurnRequest, sampling: Sampling
    ) -> dict[str, Any]:
        limits = (sampling.max_tokens, request.max_tokens)
        body: dict[str, Any] = {
            "model": self.model,
            "messages": messages,
            "temperature": sampling.temperature,
            "max_tokens": min(limit for limit in limits if limit is not None),
            "seed": sampling.seed,
        }
        if request.stop:
            body["stop"] = list(request.stop)
        if self.prefill and request.prefill:
            body["messages"] = [*messages, {"role": "assistant", "content": request.prefill}]
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        if self.regex_field is not None and request.regex is not None:
            body |= self._constraint(request.prefill, request.regex)
        return {name: value for name, value in (body | self.extra).items() if value is not None}

    def _warn_once(self) -> None:
        """Warn once that a reply was used up by reasoning."""
        if not self._warned:
            self._warned = True
            _log.warning(
                "%s used all tokens of a turn (max_tokens) for its reasoning; the turn counts as "
                "one that was cut. Allow more tokens, or make the model reason less.",
                self.model,
            )

    def _constraint(self, prefix: str, regex: str) -> dict[str, Any]:
        """Return the constraint for the server.

        Without pre-filling, its expression includes the prefix.
        """
        if not self.prefill:
            regex = re.sub(r"[\\^$.|?*+()\[\]{}]", r"\\\g<0>", prefix) + f"(?:{regex})"
        if self.regex_field == "structured_outputs":
            return {"structured_outputs": {"regex": regex}}
        return {str(self.regex_field): regex}

    @override
    def __repr__(self) -> str:
        return f"OpenAIPolicy({self.model!r}, {self.client.endpoint.url!r})"


def _whole_turn(
    reply: JoinedReply, choice: ChatChoice, request: TurnRequest, prefill: bool
) -> tuple[str, bool]:
    """Return the turn from prefix to stop string, and whether text after that was removed."""
    content = reply.text
    prefix = request.prefill if prefill and not content.startswith(request.prefill) else ""
    start = max(len(request.prefill) if prefill else 0, len(prefix) + reply.thought_end)
    text = prefix + content
    ends = [text.find(stop, start) + len(stop) for stop in request.stop if stop in text[start:]]
    if ends:
        end = min(ends)
        return text[:end], end < len(text)
    if choice.finish_reason == "stop":
        text += _stripped(text, choice, request.stop)
    return text, False


def _stripped(text: str, choice: ChatChoice, stops: tuple[str, ...]) -> str:
    """Return the stop string that the server removed from the text, or ``""``.

    vLLM returns it in `stop_reason`, which is null if the model ended the turn by itself. Other
    servers do not report it: it is then the closing tag of the last opening tag in the text.
    """
    if "stop_reason" in choice.model_fields_set:
        return str(choice.stop_reason) if choice.stop_reason in stops else ""
    opened = {text.rfind(stop.replace("</", "<", 1)): stop for stop in stops if stop[:2] == "</"}
    last = max(opened, default=-1)
    missing = last >= 0 and opened[last] not in text[last:]
    return opened[last] if missing else ""


def _logprobs(choice: ChatChoice) -> NDArray[np.float32]:
    """Return the log-probabilities of the tokens; an empty array if the server sent none."""
    try:
        return np.array([token["logprob"] for token in choice.logprobs["content"]], np.float32)
    except (TypeError, KeyError, ValueError):
        return np.zeros(0, np.float32)
