"""Defines requests to scorers: frozen objects that are identified by a digest of their content.

A backend declares the types of requests that it answers. A family may add its own, for example::

    @dataclass(frozen=True)
    class Magnify(ScoreRequest):
        kind: ClassVar[str] = "magnify"
        crop: Image
        scale: int
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from visenv.scorers.values import canonical, normalized
from visenv.types import Image, Message


@dataclass(frozen=True)
class ScoreRequest:
    """Serves as the base class of requests, which are frozen dataclasses.

    The fields must determine the value of the request. A field may contain JSON-like values,
    `Image`, `Message`, NumPy arrays, bytes, and frozen dataclasses of these.

    Attributes:
        kind: The name of the class in digests, so that the class may be renamed.
    """

    kind: ClassVar[str]

    @override
    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "kind" not in cls.__dict__:
            raise TypeError(f"{cls.__name__} needs a `kind: ClassVar[str]`, a name for digests.")


@dataclass(frozen=True)
class Generate(ScoreRequest):
    """Requests a reply of a language model. The value is ``{"text": str, "finish_reason": str}``.

    The reason is ``"stop"``, ``"length"`` or another string of the server.

    Attributes:
        messages: The conversation, including images.
        max_tokens: Maximum number of tokens of the reply.
        temperature: Sampling temperature; 0 always selects the most probable token.
        seed: Seed of the sampling.
        stop: Stop strings, which end the reply and are not part of it.
    """

    kind: ClassVar[str] = "generate"
    messages: tuple[Message, ...]
    max_tokens: int = 512
    temperature: float = 0.0
    seed: int = 0
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogProbs(ScoreRequest):
    """Requests the log-probabilities of the tokens of a given reply (teacher forcing).

    The value is a list of floats in nats, one for each token: log P(token | messages, earlier
    tokens of the reply). The end-of-turn token after the reply is not included.

    Attributes:
        messages: The conversation before the reply, including images.
        continuation: The reply.
    """

    kind: ClassVar[str] = "logprobs"
    messages: tuple[Message, ...]
    continuation: str


@dataclass(frozen=True)
class Embed(ScoreRequest):
    """Requests the embedding of a text or an image: float32 ``[dimension]``, unit length.

    Attributes:
        content: The text or the image.
    """

    kind: ClassVar[str] = "embed"
    content: str | Image


@dataclass(frozen=True)
class Detect(ScoreRequest):
    """Requests the places of a phrase in an image from an open-vocabulary detector.

    The value is a list of ``[left, top, right, bottom, score]`` in pixels of the image.

    Attributes:
        phrase: One phrase, for example ``"a chest of drawers"``.
    """

    kind: ClassVar[str] = "detect"
    image: Image
    phrase: str


@dataclass(frozen=True)
class HitMasks(ScoreRequest):
    """Asks a segmenter whether points are in the union of the masks of its prompts.

    The value is a list of bools, one for each point, because masks themselves would be too large to
    be saved with an episode.

    Attributes:
        prompts: Boxes ``(left, top, right, bottom)``, or points ``(x, y)``, one mask for each.
        points: The points ``(x, y)``, inside the image.
    """

    kind: ClassVar[str] = "hit_masks"
    image: Image
    prompts: tuple[tuple[float, ...], ...]
    points: tuple[tuple[float, float], ...]


def digest(request: ScoreRequest) -> str:
    """Return the SHA-256 of a request, hexadecimal.

    The digest depends only on the content: of images, on the pixels and not on the encoding. Fields
    with their default value are omitted, so that a new field with a default does not change the
    digests of old requests. Images whose hash is not known yet are decoded.

    Raises:
        ImageError: If an image cannot be decoded.
        ValueError: If a field contains a value of an unsupported type.
    """
    return hashlib.sha256(canonical(["visenv request 1", _form(request)])).hexdigest()


def is_cheap(request: ScoreRequest) -> bool:
    """Return whether `digest` needs no decoding and takes at most about a millisecond."""
    return all(image.cheap_to_hash for image in _images(request))


def _form(value: Any) -> Any:
    """Return a field as JSON; an object's key that starts with "$" is the name of its type."""
    if isinstance(value, Image):
        return {"$image": value.sha256}
    if isinstance(value, Message):
        return {"$message": [value.role, [_form(part) for part in value.parts]]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = value.kind if isinstance(value, ScoreRequest) else type(value).__name__
        return {f"${kind}": {name: _form(item) for name, item in _set_fields(value)}}
    if isinstance(value, np.ndarray):
        array = normalized(value)
        content = hashlib.sha256(array.tobytes()).hexdigest()
        return {"$array": [array.dtype.str, list(array.shape), content]}
    if isinstance(value, bytes):
        return {"$bytes": hashlib.sha256(value).hexdigest()}
    if isinstance(value, (list, tuple)):
        return [_form(item) for item in value]
    if isinstance(value, Mapping):
        # The form is a list of pairs, so that no key can be confused with the name of a type.
        return {"$mapping": [[key, _form(value[key])] for key in sorted(value)]}
    return normalized(value)


def _set_fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a dataclass that differ from their default."""
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        else:
            default = field.default
        if default is dataclasses.MISSING or type(item) is not type(default) or item != default:
            yield field.name, item


def _images(value: Any) -> Iterator[Image]:
    if isinstance(value, Image):
        yield value
    elif isinstance(value, (list, tuple)):  # a Message is a tuple
        for item in value:
            yield from _images(item)
    elif isinstance(value, Mapping):
        yield from _images(tuple(value.values()))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _images(getattr(value, field.name))
