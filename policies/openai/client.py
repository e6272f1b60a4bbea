"""ChatClient: one POST to ``/chat/completions``, tried again while trying again can help."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx
from pydantic import BaseModel, ValidationError

from visenv.errors import ConfigurationError, PolicyError

_LONGEST_WAIT = 60.0
_FIRST_WAIT = 0.5
_SHOWN = 300
_PASSING = frozenset({408, 409, 425, 429})


class ChatMessage(BaseModel):
    """What the model said."""

    content: str | None = None


class Choice(BaseModel):
    """One completion, as far as it is read. `stop_reason` is vLLM's: the stop string it cut off."""

    message: ChatMessage
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    logprobs: Any = None


class Completion(BaseModel):
    """The body of a successful answer."""

    choices: list[Choice]


class _TransientError(Exception):
    """A failure that may pass; `after` is how long the server asks to wait, in seconds."""

    def __init__(self, problem: str, after: float = 0.0) -> None:
        super().__init__(problem)
        self.after = after


class ChatClient:
    """Talks to one server. It pickles, works from any event loop, and holds no connection.

    Rate limits (429), server errors (5xx), time-outs, broken connections and unreadable bodies are
    tried again after a wait that doubles each time, with jitter, or after what ``Retry-After``
    says, 60 s at most. A request keeps its place among the concurrent ones while it waits.

    Args:
        base_url: Where the API begins, for example ``http://localhost:8000/v1``.
        key_variable: The environment variable that holds the key, or None for a server without
            one. The key itself is read at each request and kept nowhere.
        timeout: Seconds one attempt may take in all.
        retries: Further attempts after the first.
        concurrency: Most requests in flight.

    Raises:
        ConfigurationError: If an option has a value it cannot have, or the variable is not set.
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
        _check_url(base_url)
        self.url = base_url.rstrip("/") + "/chat/completions"
        self.key_variable = key_variable
        self.timeout = timeout
        self.retries = retries
        self.concurrency = concurrency
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
        self._gates = WeakKeyDictionary()
        self._key()

    async def complete(self, body: Mapping[str, Any]) -> Choice:
        """The first choice of the server's answer.

        Raises:
            PolicyError: If the server refuses the request, or failed `retries` + 1 times.
        """
        # An escape of half a surrogate pair is refused by strict servers; "?" stands in for it.
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        # A client for each request: connections outlive neither the event loop nor the policy, and
        # opening one costs nothing beside a model's reply.
        async with self._gate(), httpx.AsyncClient(verify=_tls(), timeout=None) as client:
            for attempt in range(self.retries + 1):
                try:
                    return await self._attempt(client, content)
                except _TransientError as failure:
                    if attempt == self.retries:
                        raise PolicyError(
                            f"{self.url} gave no reply in {self.retries + 1} attempts; the last: "
                            f"{failure}"
                        ) from failure.__cause__
                    await asyncio.sleep(_wait(attempt, failure.after))
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _attempt(self, client: httpx.AsyncClient, content: bytes) -> Choice:
        try:
            async with asyncio.timeout(self.timeout):
                response = await client.post(self.url, content=content, headers=self._headers())
        except TimeoutError as error:
            raise _TransientError(f"no answer within {self.timeout:g} s") from error
        except httpx.TransportError as error:
            raise _TransientError(f"{type(error).__name__}: {error}") from error
        if response.is_success:
            return _first_choice(response.text)
        problem = f"HTTP {response.status_code}: {self._without_key(response.text)}"
        if response.status_code in _PASSING or response.is_server_error:
            raise _TransientError(problem, _retry_after(response.headers.get("Retry-After", "")))
        raise PolicyError(f"{self.url} refused the request. {problem}")

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
        """What the server says, cut short; servers echo a key they do not accept."""
        key = self._key()
        return (text.replace(key, "***") if key else text)[:_SHOWN]

    def _gate(self) -> asyncio.Semaphore:
        """The gate of the running event loop; a semaphore cannot serve two."""
        loop = asyncio.get_running_loop()
        return self._gates.setdefault(loop, asyncio.Semaphore(self.concurrency))

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_gates"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = {**state, "_gates": WeakKeyDictionary()}


@cache
def _tls() -> ssl.SSLContext:
    """Certificates, loaded once: it takes longer than a request."""
    return httpx.create_ssl_context()


def _check_url(base_url: str) -> None:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"base_url must look like http://localhost:8000/v1, got {base_url!r}."
        )
    if parts.username or parts.password or parts.query:
        raise ConfigurationError(
            f"base_url for {parts.hostname} holds credentials or a query; URLs end up in logs. "
            "Put the key into an environment variable and pass its name as key_variable."
        )


def _first_choice(body: str) -> Choice:
    try:
        choices = Completion.model_validate_json(body).choices
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise _TransientError(f"not a chat completion: {where}: {first['msg']}") from error
    if not choices:
        raise _TransientError("a chat completion without choices")
    return choices[0]


def _wait(attempt: int, told: float) -> float:
    """Seconds before the next attempt, `attempt` counting from 0: never less than `told`."""
    backoff = _FIRST_WAIT * 2.0 ** min(attempt, 10) * random.uniform(0.5, 1.0)
    return min(max(backoff, told), _LONGEST_WAIT)


def _retry_after(header: str) -> float:
    """Seconds, from a number of them or from a date (RFC 9110, 10.2.3); 0 for anything else."""
    if re.fullmatch(r"\d{1,9}", header.strip()):
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds: float = (moment - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds)
