"""Defines what a scorer is asked: frozen requests, known by a digest of their content.

A backend declares the requests that it answers. A family may add its own, for example::

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
    """The base class of requests: a frozen dataclass whose fields say everything that matters.

    A field may hold JSON-like values, `Image`, `Message`, NumPy arrays, bytes, and frozen
    dataclasses of these.

    Attributes:
        kind: Stands for the class in digests, so that the class may be renamed.
    """

    kind: ClassVar[str]

    @override
    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "kind" not in cls.__dict__:
            raise TypeError(f"{cls.__name__} needs a `kind: ClassVar[str]`, a name for digests.")


@dataclass(frozen=True)
class Generate(ScoreRequest):
    """Asks a language model for a reply. The value is ``{"text": str, "finish_reason": str}``.

    The reason is ``"stop"``, ``"length"`` or another word of the server.

    Attributes:
        messages: The conversation, images included.
        max_tokens: Most tokens of the reply.
        temperature: Of sampling; 0 takes the most probable token each time.
        seed: Of sampling.
        stop: Strings that end the reply and are not part of it.
    """

    kind: ClassVar[str] = "generate"
    messages: tuple[Message, ...]
    max_tokens: int = 512
    temperature: float = 0.0
    seed: int = 0
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogProbs(ScoreRequest):
    """Asks for the log-probabilities of a given reply (teacher forcing), one for each token.

    The value is a list of floats in nats: log P(token | messages, earlier tokens of the reply).
    The end-of-turn token after the reply is not counted.

    Attributes:
        messages: The conversation up to the reply, images included.
        continuation: The reply.
    """

    kind: ClassVar[str] = "logprobs"
    messages: tuple[Message, ...]
    continuation: str


@dataclass(frozen=True)
class Embed(ScoreRequest):
    """Asks an encoder for the vector of a text or an image: float32 ``[dimension]``, unit length.

    Attributes:
        content: The text or the image.
    """

    kind: ClassVar[str] = "embed"
    content: str | Image


@dataclass(frozen=True)
class Detect(ScoreRequest):
    """Asks an open-vocabulary detector where a phrase is in an image.

    The value is a list of ``[left, top, right, bottom, score]`` in pixels of the image.

    Attributes:
        image: The image.
        phrase: One phrase, for example ``"a chest of drawers"``.
    """

    kind: ClassVar[str] = "detect"
    image: Image
    phrase: str


@dataclass(frozen=True)
class HitMasks(ScoreRequest):
    """Asks a segmenter whether points lie in the union of the masks of its prompts.

    The value is a list of bools, one for each point: masks themselves would be too large to save
    with an episode.

    Attributes:
        image: The image.
        prompts: Boxes ``(left, top, right, bottom)``, or points ``(x, y)``, one mask for each.
        points: The points ``(x, y)``, inside the image.
    """

    kind: ClassVar[str] = "hit_masks"
    image: Image
    prompts: tuple[tuple[float, ...], ...]
    points: tuple[tuple[float, float], ...]


def digest(request: ScoreRequest) -> str:
    """Return the SHA-256 of a request, hexadecimal.

    The digest depends on the content alone: images count by their pixels, however they are encoded.
    A field that has its default is left out, so that a new field with a default leaves the digests
    of old requests as they are. Asking decodes images whose hash is not known yet.

    Raises:
        ImageError: If an image cannot be decoded.
        ValueError: If a field holds something that a request may not hold.
    """
    return hashlib.sha256(canonical(["visenv request 1", _form(request)])).hexdigest()


def is_cheap(request: ScoreRequest) -> bool:
    """Return whether `digest` needs no decoding and about a millisecond at most."""
    return all(image.cheap_to_hash for image in _images(request))


def _form(value: Any) -> Any:
    """Return a field as JSON; a name that starts with "$" says which type an object stands for."""
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
        # A list of pairs: no key can be taken for the name of a type.
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
