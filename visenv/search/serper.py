"""Searches the web through Serper (google.serper.dev), as Visual-ARFT and ARM-Thinker do."""

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
from visenv.search.corpus import Passage, cleaned

KEY = "SERPER_API_KEY"
URL = "https://google.serper.dev/search"

_MOST_BYTES = 4 * 2**20
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
_PASSING = frozenset({408, 425, 429})


class _TransientError(Exception):
    """Raised for a failure that may be temporary.

    `after` is the wait that the server requests, seconds.
    """

    def __init__(self, problem: str, after: float = 0.0) -> None:
        super().__init__(problem)
        self.after = after


class SerperSearch:
    """Searches through Serper.

    The key is read from ``SERPER_API_KEY`` for each request and not stored.

    Rate limits (429), server errors, timeouts, broken connections and answers that are not JSON
    objects are retried after a wait that doubles each time, with jitter, or after ``Retry-After``,
    at most 30 s. At most 4 MiB of an answer are read.

    Args:
        timeout: Maximum number of seconds of one attempt.
        retries: Further attempts after the first.
        settings: Parameters of each query: ``gl`` (country), ``hl`` (language), ``tbs``,
            ``location``…
        url: Another address with the same protocol.

    Raises:
        ConfigurationError: If an option has an invalid value, or the key is not set.
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
        """Do nothing, because there are no resources to release."""

    def _ask(self, body: Mapping[str, Any]) -> Any:
        headers = {"X-API-KEY": _key(), "Content-Type": "application/json"}
        headers["Accept-Encoding"] = "identity"  # a megabyte of gzip may contain a gigabyte
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
            raise _TransientError(type(error).__name__) from None  # it may contain the request
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise _TransientError(f"the answer is not JSON: {content[:80]!r}") from None


@cache
def _certificates() -> ssl.SSLContext:
    """Return the certificates, read once per process: reading takes longer than a request."""
    return httpx.create_ssl_context()


class _Deadline:
    """Stops a request whose total time is too long.

    The timeouts of httpx start again with every byte, so that a server can prolong a request
    forever by single bytes, even before an answer begins.
    """

    def __init__(self, seconds: float) -> None:
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def watch(self, event: str, about: Mapping[str, Any]) -> None:
        """Record each connection that httpx opens; this is its ``trace`` extension."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._sockets.append(about["return_value"].get_extra_info("socket"))

    def _end(self) -> None:
        for each in self._sockets:
            with suppress(OSError):  # it may already be closed
                each.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def _key() -> str:
    key = os.environ.get(KEY, "").strip()
    if not key:
        raise ConfigurationError(f"Set the environment variable {KEY} to a key of serper.dev.")
    if not key.isascii() or not key.isprintable():
        raise ConfigurationError(f"{KEY} contains characters that are invalid in a key.")
    return key


def _check_status(response: httpx.Response) -> None:
    status = response.status_code
    if status in _PASSING or status >= 500:
        raise _TransientError(f"status {status}", _asked(response.headers.get("Retry-After")))
    if status != 200:
        raise ServiceError("search", f"Serper refused the request with status {status}.")


def _read(response: httpx.Response) -> bytes:
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise _TransientError("the answer is compressed, but no compression was requested")
    content = bytearray()
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > _MOST_BYTES:
            raise ServiceError("search", f"Serper's answer exceeds {_MOST_BYTES:,} bytes.")
    return bytes(content)


def _passages(answer: Any) -> list[Passage]:
    """Return the organic results; there may be none, and fields may be missing."""
    if not isinstance(answer, dict):
        raise _TransientError("the answer is not a JSON object")
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
