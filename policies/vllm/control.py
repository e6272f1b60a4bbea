"""Defines `ServerControl`: the commands of a trainer to vLLM's server, by development endpoints.

The endpoints exist if ``VLLM_SERVER_DEV_MODE=1`` is set, which `VLLMServer` does. Only the trainer
should be able to reach such a server.
"""

from __future__ import annotations

import time
from typing import Any

import httpx

from visenv.errors import PolicyError

FIRST_WAIT, LONGEST_WAIT = 0.25, 8.0
"""Seconds before the first retry, which are doubled each time, and their maximum."""

_SHOWN = 400


class ServerControl:
    """Calls one server, and retries calls after failures that may be temporary.

    Args:
        url: Address of the server, without ``/v1``.
        timeout: Most seconds of one call.
        retries: Further attempts after a failure that may be temporary.
    """

    def __init__(self, url: str, timeout: float, retries: int) -> None:
        self.url = url
        self._retries = retries
        self._http = httpx.Client(base_url=url, timeout=timeout)

    def context(self) -> int:
        """Return the largest number of tokens in a conversation."""
        return int(self._ask("GET", "/v1/models").json()["data"][0]["max_model_len"])

    def workers(self) -> int:
        """Return the number of processes with weights."""
        return int(self._ask("GET", "/get_world_size").json()["world_size"])

    def pause(self) -> None:
        """Abort every request, empty all caches, and start no new requests."""
        self._ask("POST", "/pause?mode=abort")

    def abort_all(self) -> None:
        """Abort requests that arrived since."""
        self._ask("POST", "/abort_requests", {})

    def resume(self) -> None:
        """Let the server accept requests again."""
        self._ask("POST", "/resume")

    def forget(self) -> None:
        """Empty the caches of keys and values and of image features."""
        self._ask("POST", "/reset_prefix_cache")
        self._ask("POST", "/reset_encoder_cache")

    def sleep(self, level: int) -> None:
        """Let the server release GPU memory."""
        self._ask("POST", f"/sleep?level={level}")

    def wake(self) -> None:
        """Let the server allocate that memory again."""
        self._ask("POST", "/wake_up")

    def call(self, method: str, arguments: dict[str, str] | None = None) -> list[Any]:
        """Call a method of every worker; return the result of each."""
        body = {"method": method, "kwargs": arguments or {}}
        results: list[Any] = self._ask("POST", "/collective_rpc", body).json()["results"]
        return results

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        wait = FIRST_WAIT
        for attempt in range(self._retries + 1):
            problem = ""
            try:
                response = self._http.request(method, path, json=body)
            except httpx.ReadTimeout as error:  # the server hangs: a retry would hang, too
                raise PolicyError(
                    f"The vLLM server at {self.url} does not answer {path}: {error!r}"
                ) from error
            except httpx.TransportError as error:
                problem = f"does not answer {path}: {error!r}"
            else:
                if response.is_success:
                    return response
                problem = f"answers {path} with {response.status_code}: {message_of(response)}"
                if response.is_client_error:
                    break
            if attempt < self._retries:
                time.sleep(wait)
                wait = min(2 * wait, LONGEST_WAIT)
        raise PolicyError(f"The vLLM server at {self.url} {problem}")


def message_of(response: httpx.Response) -> str:
    """Return the error message of a server's response."""
    try:
        message = response.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        message = response.text
    return str(message)[:_SHOWN]
