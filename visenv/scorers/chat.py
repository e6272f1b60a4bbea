"""Sends requests to an OpenAI-compatible server: one POST to ``/chat/completions`` per reply."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx
from pydantic import BaseModel, ValidationError, model_validator
from typing_extensions import override

from visenv.errors import ConfigurationError, PolicyError
from visenv.scorers.retry import RefusedError, TransientError, retried, retry_after
from visenv.terminal import printable

MAX_REPLY_BYTES = 8 << 20
"""Maximum size of a response body. Log-probabilities of 30,000 tokens are about 4 MB."""

_SHOWN = 300
_TRANSIENT = frozenset({408, 409, 425, 429})


class ChatMessage(BaseModel):
    """Represents the message of the model.

    Servers that split off the reasoning of a model return it under one of several names
    (`thought`), or as a part of a content that is a list, as Mistral's API does. A refusal, which
    OpenAI's API returns beside an empty content, is the text of the reply.
    """

    content: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    thinking: Any = None

    @model_validator(mode="before")
    @classmethod
    def _with_text(cls, message: Any) -> Any:
        """Replace a content of parts by its text, and an empty content by the refusal.

        The reasoning in the parts is kept as ``thinking``.
        """
        if not isinstance(message, dict):
            return message
        content = message.get("content")
        if content in (None, ""):
            refusal = message.get("refusal")
            return {**message, "content": refusal} if isinstance(refusal, str) else message
        if not isinstance(content, list):
            return message
        thoughts = [part["thinking"] for part in content if _is_part(part, "thinking")]
        texts = [part for part in content if not _is_part(part, "thinking")]
        split = {"thinking": _text_of(thoughts)} if thoughts else {}
        return {**message, **split, "content": _text_of(texts)}

    @property
    def thought(self) -> str:
        """Return the reasoning that the server split off, ``""`` if there is none."""
        for given in (self.reasoning_content, self.reasoning, self.thinking):
            if isinstance(given, str) and given:
                return given
        return ""


class ChatChoice(BaseModel):
    """Represents one completion.

    `stop_reason` is a field of vLLM: the stop string that ended the text.
    """

    message: ChatMessage
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    logprobs: Any = None


class ChatCompletion(BaseModel):
    """Represents the body of a successful response. `prompt_logprobs` is a field of vLLM."""

    choices: list[ChatChoice]
    prompt_logprobs: Any = None


class ChatEndpoint:
    """Holds the address of an OpenAI-compatible server and the name of the variable with its key.

    Args:
        base_url: The base URL of the API, for example ``http://localhost:8000/v1``.
        key_variable: The environment variable that holds the API key, or None for a server without
            a key. The key is read at each request and is not stored in this object.

    Raises:
        ConfigurationError: If the URL is invalid, or the variable is not set.
    """

    def __init__(self, base_url: str, key_variable: str | None) -> None:
        _check_url(base_url)
        self.base_url = base_url.rstrip("/")
        self.key_variable = key_variable
        self._key()

    @property
    def url(self) -> str:
        """Return the address of chat requests."""
        return f"{self.base_url}/chat/completions"

    async def complete(self, body: Mapping[str, Any]) -> ChatCompletion:
        """Send one request for a chat completion, once and without a time limit.

        Raises:
            TransientError: If the server cannot be reached, is busy or sends an unreadable body.
            RefusedError: If the server refuses the request.
        """
        return _completion(await self.post(self.url, body), self._without_key)

    async def post(self, url: str, body: Mapping[str, Any]) -> bytes:
        """Return the body of the response to one POST of JSON; see `complete`."""
        # Strict servers refuse the escape sequence of half a surrogate pair, so it is replaced by
        # "?".
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        # A new client is created for each request: connections cannot be shared by event loops or
        # pickled, and the time to open one is small compared to a model's reply.
        try:
            async with (
                httpx.AsyncClient(verify=_tls(), timeout=None) as client,
                client.stream("POST", url, content=content, headers=self._headers()) as response,
            ):
                received = await _read(response)
        except httpx.RequestError as error:
            raise TransientError(f"{type(error).__name__}: {error}") from error
        if response.is_success:
            return received
        shown = self._without_key(received.decode("utf-8", "replace"))
        problem = f"HTTP {response.status_code}: {shown}"
        if response.status_code in _TRANSIENT or response.is_server_error:
            raise TransientError(problem, retry_after(response.headers.get("Retry-After", "")))
        raise RefusedError(f"{url} refused the request. {problem}")

    def _headers(self) -> dict[str, str]:
        key = self._key()
        return {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {key}"} if key else {}
        )

    def _key(self) -> str:
        if self.key_variable is None:
            return ""
        key = os.environ.get(self.key_variable, "").strip()
        if not key:
            raise ConfigurationError(
                f"The environment variable {self.key_variable} should hold the API key, but it is "
                "not set."
            )
        return key

    def _without_key(self, text: str) -> str:
        """Return the start of a server's message, without the key that some servers repeat."""
        key = self._key()
        return printable((text.replace(key, "***") if key else text)[:_SHOWN])


class ChatClient:
    """Sends requests to one server, and repeats requests that may succeed later.

    Rate limits (429), server errors (5xx), time-outs, broken connections and unreadable bodies are
    retried (`retried`). A request that waits for a retry still counts as a request in flight. The
    client can be pickled, works from any event loop, and keeps no connection open.

    Args:
        base_url: See `ChatEndpoint`.
        key_variable: See `ChatEndpoint`.
        timeout: Time limit of one attempt in seconds.
        retries: Maximum number of further attempts after the first.
        concurrency: Maximum number of requests in flight.

    Raises:
        ConfigurationError: If an option has an invalid value, or the variable is not set.
    """

    def __init__(
        self,
        base_url: str,
        *,
        key_variable: str | None,
        timeout: float,
        retries: int,
        concurrency: int,
    ) -> None:
        if timeout <= 0 or retries < 0 or concurrency < 1:
            raise ConfigurationError(
                "Expected timeout > 0, retries >= 0 and concurrency >= 1, got "
                f"timeout={timeout}, retries={retries}, concurrency={concurrency}."
            )
        self.endpoint = ChatEndpoint(base_url, key_variable)
        self.timeout = timeout
        self.retries = retries
        self.concurrency = concurrency
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
        self._gates = WeakKeyDictionary()

    async def complete(self, body: Mapping[str, Any]) -> ChatChoice:
        """Return the first choice of the server's response.

        Raises:
            PolicyError: If the server refuses the request, or failed `retries` + 1 times.
        """

        async def attempt() -> ChatCompletion:
            try:
                async with asyncio.timeout(self.timeout):
                    return await self.endpoint.complete(body)
            except TimeoutError as error:
                raise TransientError(f"no answer within {self.timeout:g} s") from error

        async with self._gate():
            try:
                completion = await retried(attempt, self.retries)
            except TransientError as failure:
                raise PolicyError(
                    f"{self.endpoint.url} gave no reply in {self.retries + 1} attempts; the last: "
                    f"{failure}"
                ) from failure.__cause__
            except RefusedError as failure:
                raise PolicyError(str(failure)) from None
        return completion.choices[0]

    def _gate(self) -> asyncio.Semaphore:
        """Return the semaphore of the running event loop; a semaphore cannot serve two loops."""
        loop = asyncio.get_running_loop()
        return self._gates.setdefault(loop, asyncio.Semaphore(self.concurrency))

    @override
    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_gates"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = {**state, "_gates": WeakKeyDictionary()}


@cache
def _tls() -> ssl.SSLContext:
    """Load the certificates; the result is cached because loading takes longer than a request."""
    return httpx.create_ssl_context()


def _check_url(base_url: str) -> None:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"base_url must look like http://localhost:8000/v1, got {base_url!r}."
        )
    if parts.username or parts.password or parts.query:
        raise ConfigurationError(
            f"base_url for {parts.hostname} contains credentials or a query; URLs are logged. "
            "Put the key into an environment variable and pass its name as key_variable."
        )


def _is_part(part: Any, kind: str) -> bool:
    return isinstance(part, dict) and part.get("type") == kind and kind in part


def _reported_error(body: bytes) -> str:
    """Return the error that a router of several servers sends with the status 200, as JSON."""
    with suppress(ValueError, RecursionError):
        message = json.loads(body)
        if isinstance(message, dict) and message.get("error"):
            return json.dumps(message["error"])
    return ""


def _text_of(content: Any) -> Any:
    """Return the text of nested lists of text parts; the value itself if it is something else."""
    if not isinstance(content, list):
        return content["text"] if _is_part(content, "text") else content
    texts = [_text_of(part) for part in content]
    return "".join(texts) if all(isinstance(text, str) for text in texts) else content


async def _read(response: httpx.Response) -> bytes:
    received = bytearray()
    async for chunk in response.aiter_bytes():
        received += chunk
        if len(received) > MAX_REPLY_BYTES:
            raise TransientError(f"a response of more than {MAX_REPLY_BYTES:,} bytes")
    return bytes(received)


def _completion(body: bytes, shown: Callable[[str], str]) -> ChatCompletion:
    """Return the completion in a body; `shown` makes text of the server fit for a message."""
    try:
        completion = ChatCompletion.model_validate_json(body)
    except ValidationError as error:
        reported = _reported_error(body)
        if reported:
            raise TransientError(f"the server reported {shown(reported)}") from None
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise TransientError(f"not a chat completion: {where}: {first['msg']}") from error
    if not completion.choices:
        raise TransientError("a chat completion without choices")
    return completion
