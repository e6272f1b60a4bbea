"""Encodes requests for vLLM's endpoint ``/inference/v1/generate``, and decodes its replies.

The endpoint takes tokens with one placeholder per item, and images and videos by name
(``content_parts``, vLLM 0.28 or newer). An item that the server has cached is sent by its name
alone.
"""

from __future__ import annotations

import base64
from collections.abc import Set as AbstractSet
from typing import Any

from visenv.types import FinishReason, Video, Visual

from .request import EngineOutput, EngineRequest
from .videos import MEDIA_TYPE, packed

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
