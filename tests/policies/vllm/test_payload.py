"""Tests the payload of a request to a vLLM server."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from visenv.policies.vllm.request import EngineRequest, decode, encode
from visenv.types import Image

IMAGE = Image.from_pixels(np.arange(12, dtype=np.uint8).reshape(2, 2, 3))
OTHER = Image.from_pixels(np.zeros((2, 2, 3), np.uint8))


def reply(**choice: Any) -> dict[str, Any]:
    tokens = {"token_ids": [7, 8], "logprobs": {"content": [{"logprob": -0.5}, {"logprob": -1.0}]}}
    return {"prompt_token_ids": [1, 2], "choices": [{**tokens, "finish_reason": "stop", **choice}]}


def test_image_that_the_server_has_cached_is_sent_by_its_name() -> None:
    request = EngineRequest([1, 5, 5], (IMAGE, OTHER), 1.0, 0, 5)
    cached, sent = encode(request, 9, {IMAGE.sha256})["content_parts"]
    assert cached == {"type": "image_url", "url": None, "uuid": IMAGE.sha256}
    header, data = sent["url"].split(",")
    assert header == "data:image/png;base64"
    assert base64.b64decode(data) == OTHER.png()
    assert sent["uuid"] == OTHER.sha256


def test_request_without_images_has_no_content_parts() -> None:
    body = encode(EngineRequest([1, 2], (), 1.0, 0, 5), 9, frozenset())
    assert set(body) == {"token_ids", "sampling_params", "return_token_ids"}
    assert body["token_ids"] == [1, 2]


def test_reply_is_decoded() -> None:
    output = decode(reply(), 3)
    assert output.prompt_ids == [1, 2]
    assert output.token_ids == [7, 8]
    assert output.logprobs == [-0.5, -1.0]
    assert (output.finish, output.version) == ("stop", 3)


def test_aborted_reply_without_tokens_is_decoded() -> None:
    output = decode(reply(token_ids=[], logprobs=None, finish_reason="abort"), 3)
    assert (output.token_ids, output.logprobs, output.finish) == ([], [], "abort")


@pytest.mark.parametrize(
    ("reason", "finish"), [("length", "length"), ("error", "abort"), (None, "abort")]
)
def test_unknown_finish_reasons_count_as_interruptions(reason: str | None, finish: str) -> None:
    assert decode(reply(finish_reason=reason), 3).finish == finish
