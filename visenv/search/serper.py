"""The web through Serper (google.serper.dev), as Visual-ARFT and ARM-Thinker search it."""

from __future__ import annotations

import json
import os
import random
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import httpx

from visenv.errors import ConfigurationError, ServiceError
from visenv.search.passage import Passage, cleaned

KEY = "SERPER_API_KEY"
URL = "https://google.serper.dev/search"

_MOST_BYTES = 4 * 2**20
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
_PASSING = frozenset({408, 425, 429})


class _TransientError(Exception):
    """A failure that may pass; `after` is how long the server asks to wait, seconds."""

    def __init__(self, problem: str, after: float = 0.0) -> None:
        super().__init__(problem)
        self.after = after


class SerperSearch:
    """Asks Serper. The key is read from ``SERPER_API_KEY`` for each request and kept nowhere.

    Rate limits (429), server errors, time-outs, broken connections and bodies that are no JSON
    object are tried again, after a wait that doubles, with jitter, or after ``Retry-After``, 30 s
    at most. No more than 4 MiB of an answer are read.

    Args:
        timeout: Seconds one attempt may take in all.
        retries: Further attempts after the first.
        settings: Sent with each query: ``gl`` (country), ``hl`` (language), ``tbs``, ``location``…
        url: Another address of the same protocol.

    Raises:
        ConfigurationError: If an option has a value it cannot have, or the key is not set.
    """

    def __init__(
        self,
        *,
        timeout: float = 10.0,
        retries: int = 3,
        settings: Mapping[str, str] | None = None,
        url: str = URL,
    ) -> None:
        if not timeout > 0 or retries < 0:
            raise ConfigurationError(
                f"Expected timeout > 0 and retries >= 0, got {timeout} and {retries}."
            )
        self.timeout = timeout
        self.retries = retries
        self.settings = dict(settings or {})
        self.url = url
        self.name = "serper" + (f":{json.dumps(self.settings, sort_keys=True)}" * bool(settings))
        _key()

    def search(self, query: str, count: int) -> list[Passage]:
        """Return the organic results that have a snippet, with title and link.

        Raises:
            ServiceError: If Serper refused the request, or failed `retries` + 1 times.
        """
        text = cleaned(query)
        if not text:
            return []
        body = {"q": text, "num": count, **self.settings}
        for attempt in range(self.retries + 1):
            try:
                return _passages(self._ask(body))[:count]
            except _TransientError as error:
                if attempt == self.retries:
                    raise ServiceError(
                        "search", f"Serper failed {attempt + 1} times, at last: {error}"
                    ) from None
                time.sleep(_wait(attempt, error.after))
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _ask(self, body: Mapping[str, Any]) -> Any:
        headers = {"X-API-KEY": _key(), "Content-Type": "application/json"}
        headers["Accept-Encoding"] = "identity"  # a megabyte of gzip may hold a gigabyte
        deadline = _Deadline(self.timeout)
        watched = {"trace": deadline.watch}
        try:
            with (
                deadline,
                httpx.Client(
                    timeout=self.timeout, follow_redirects=False, verify=_certificates()
                ) as client,
                client.stream(
                    "POST", self.url, json=body, headers=headers, extensions=watched
                ) as response,
            ):
                _check_status(response)
                content = _read(response)
        except httpx.HTTPError as error:
            raise _TransientError(type(error).__name__) from None  # its text may hold the request
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise _TransientError(f"the answer is no JSON: {content[:80]!r}") from None


@cache
def _certificates() -> ssl.SSLContext:
    """Read once in a process: it takes longer than a request."""
    return httpx.create_ssl_context()


class _Deadline:
    """Ends a request that takes too long in all.

    The time-outs of httpx start again with every byte, and a server may send one now and then for
    ever, also before an answer has begun.
    """

    def __init__(self, seconds: float) -> None:
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def watch(self, event: str, about: Mapping[str, Any]) -> None:
        """Take note of each connection that httpx opens; its ``trace`` extension."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._sockets.append(about["return_value"].get_extra_info("socket"))

    def _end(self) -> None:
        for each in self._sockets:
            with suppress(OSError):  # it is closed already
                each.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def _key() -> str:
    key = os.environ.get(KEY, "").strip()
    if not key:
        raise ConfigurationError(f"Set {KEY} to a key of serper.dev; it is read from there alone.")
    if not key.isascii() or not key.isprintable():
        raise ConfigurationError(f"{KEY} holds characters that no key has.")
    return key


def _check_status(response: httpx.Response) -> None:
    status = response.status_code
    if status in _PASSING or status >= 500:
        raise _TransientError(f"status {status}", _asked(response.headers.get("Retry-After")))
    if status != 200:
        raise ServiceError("search", f"Serper refused the request with status {status}.")


def _read(response: httpx.Response) -> bytes:
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise _TransientError("the answer is compressed, which was not asked for")
    content = bytearray()
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > _MOST_BYTES:
            raise ServiceError("search", f"Serper's answer exceeds {_MOST_BYTES:,} bytes.")
    return bytes(content)


def _passages(answer: Any) -> list[Passage]:
    """Return the organic results; there may be none, and fields may be missing."""
    if not isinstance(answer, dict):
        raise _TransientError("the answer is no JSON object")
    organic = answer.get("organic")
    found = []
    for result in organic if isinstance(organic, list) else []:
        if isinstance(result, dict) and isinstance(result.get("snippet"), str):
            title, url = (str(result.get(name) or "") for name in ("title", "link"))
            found.append(Passage(title, result["snippet"], url))
    return found


def _asked(header: str | None) -> float:
    """Return the seconds of a Retry-After header; 0 for a date or an invalid value."""
    try:
        return max(float(header or 0), 0.0)
    except ValueError:
        return 0.0


def _wait(attempt: int, after: float) -> float:
    wait: float = _FIRST_WAIT * 2**attempt * random.uniform(0.5, 1.5)
    return min(max(wait, after), _LONGEST_WAIT)
