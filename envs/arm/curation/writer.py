"""A model as a writer of data: asked for one JSON object, and again when it cannot be used.

Any policy of visenv writes: a model behind an OpenAI-compatible server, one in this process, or
`ScriptedGenerator` where there is none. The client of a server repeats what failed on the way;
here a reply that did arrive is read, and the writer is sent what is wrong with it and asked again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from typing_extensions import override

from visenv.curation.journal import RowOutcome, failed
from visenv.curation.lines import Row, read_object
from visenv.curation.step import CurationStep
from visenv.errors import ConfigurationError, DataError
from visenv.images import ARM_PIXELS, fit
from visenv.policy import Policy
from visenv.types import Image, Message, Sampling, TurnRequest

from .rows import MAX_CHARACTERS

WrittenT = TypeVar("WrittenT")

_SHOWN = 300
_REFUSALS = re.compile(
    r"\b(?:i\s*['’]?\s*a?m (?:sorry|unable|not able)|i can\s*(?:['’]?t|not)|i (?:won['’]t|will not)"
    r"|as an ai\b|i apologi[sz]e)",
    re.IGNORECASE,
)


class UnusableReplyError(Exception):
    """Raised inside this package when a reply cannot be used.

    Args:
        code: Why, in few words, for counting: the reason of a failed row.
        complaint: What is wrong with the reply, for the writer.
    """

    def __init__(self, code: str, complaint: str) -> None:
        super().__init__(complaint)
        self.code = code
        self.complaint = complaint


class Writer:
    """Asks a policy for a JSON object until it sends one that can be used.

    Args:
        policy: The policy that writes. It cannot be one that asks an environment for advice
            (oracle, random).
        sampling: How it samples; the seed is replaced by one that belongs to the row.
        attempts: Most replies to one row.
        image_pixels: Images are shrunk to this many pixels (4096 patches of 28 x 28 by default,
            as the paper trains with).
        label: What the journal calls the writer, for example the model's name.

    Raises:
        ConfigurationError: If `attempts` is below 1.
    """

    def __init__(
        self,
        policy: Policy[Any],
        sampling: Sampling | None = None,
        attempts: int = 3,
        image_pixels: int = ARM_PIXELS,
        label: str = "",
    ) -> None:
        if attempts < 1:
            raise ConfigurationError(f"attempts must be at least 1, got {attempts}.")
        self._policy = policy
        self._sampling = sampling or Sampling(max_tokens=4096)
        self._attempts = attempts
        self._image_pixels = image_pixels
        self._label = label

    def settings(self) -> dict[str, Any]:
        """Return the settings on which replies depend."""
        return {
            "writer": self._label,
            "temperature": self._sampling.temperature,
            "max_tokens": self._sampling.max_tokens,
            "attempts": self._attempts,
            "image_pixels": self._image_pixels,
        }

    async def write(
        self, prompt: str, images: Sequence[str], read: Callable[[Row], WrittenT], seed: int
    ) -> WrittenT:
        """Return what `read` returns for the first reply that it accepts.

        Args:
            prompt: What to write, and as which JSON object.
            images: Paths of the images shown before it.
            read: Makes what is wanted of the object, or raises `UnusableReplyError`.
            seed: Seeds the first attempt; each further one counts up.

        Raises:
            UnusableReplyError: If no reply of `attempts` could be used; the last one's.
            PolicyError: If there is no reply to be had.
            ImageError: If an image cannot be read.
        """
        session = self._policy.open(seed)
        shown = await asyncio.to_thread(self._images, images)  # large images take a while
        message = Message("user", (*shown, prompt))
        for attempt in range(self._attempts):
            session.observe([message])
            sampling = self._sampling._replace(seed=(seed + attempt) % 2**32)
            reply = await self._policy.respond(session, TurnRequest(), sampling)
            try:
                return read(read_reply(reply.text, cut=reply.finish_reason == "length"))
            except UnusableReplyError as error:
                problem = UnusableReplyError(
                    error.code, f"{error.complaint} It was: {reply.text[-_SHOWN:]!r}"
                )
                message = Message("user", (f"{error.complaint} Please try again, as asked above.",))
        raise problem

    def _images(self, paths: Sequence[str]) -> list[Image]:
        return [fit(Image.from_file(path), self._image_pixels) for path in paths]


class WritingStep(CurationStep):
    """A step that a writer does; a row whose replies cannot be used failed.

    Args:
        writer: Who writes.
    """

    def __init__(self, writer: Writer) -> None:
        self.writer = writer

    async def compose(self, row: Row) -> RowOutcome:
        """Decide on a row; may raise `UnusableReplyError` and the errors of `decide`."""
        raise NotImplementedError

    @override
    async def decide(self, row: Row) -> RowOutcome:
        try:
            return await self.compose(row)
        except UnusableReplyError as error:
            return failed(error.code, error)


# ---------------------------------------------------------------------------- reading


def read_reply(text: str, cut: bool = False) -> Row:
    """Return the JSON object in a reply; thoughts, prose and a fence around it are ignored.

    Args:
        text: The reply.
        cut: Whether the token limit cut it off.

    Raises:
        UnusableReplyError: If there is none: ``"empty reply"``, ``"reply cut off"``, ``"refusal"``
            or ``"no JSON"``.
    """
    if cut:  # what it holds may be a draft among thoughts that never ended
        raise UnusableReplyError("reply cut off", "The reply was too long.")
    said = text.rpartition("</think>")[2].strip()
    start, end = said.find("{"), said.rfind("}")
    try:
        return read_object(said[start : end + 1])
    except DataError as error:
        if not said:
            raise UnusableReplyError("empty reply", "The reply was empty.") from error
        if is_refusal(said):
            raise UnusableReplyError("refusal", "The reply was a refusal.") from error
        complaint = "The reply must be one JSON object and nothing else."
        raise UnusableReplyError("no JSON", complaint) from error


def read_text(row: Row, key: str) -> str:
    """Return the text under `key` of a reply.

    Raises:
        UnusableReplyError: If there is none, or it refuses, or is far too long.
    """
    return _checked(row.get(key), key)


def read_texts(row: Row, key: str, count: int) -> list[str]:
    """Return the `count` texts under `key` of a reply.

    Raises:
        UnusableReplyError: If they are not as many, or one is no text, refuses or is far too long.
    """
    texts = row.get(key)
    if not isinstance(texts, list):
        raise UnusableReplyError("wrong shape", f"There must be a list of texts under {key!r}.")
    if len(texts) != count:
        complaint = f"There must be {count} texts under {key!r}, not {len(texts)}."
        raise UnusableReplyError("wrong count", complaint)
    return [_checked(text, key) for text in texts]


def is_refusal(text: str) -> bool:
    """Return whether a text begins by declining to answer."""
    return _REFUSALS.search(text[:80]) is not None


def _checked(text: object, key: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise UnusableReplyError("wrong shape", f"What stands under {key!r} must be text.")
    if len(text) > MAX_CHARACTERS:
        raise UnusableReplyError("too long", f"What stands under {key!r} is far too long.")
    if is_refusal(text):
        raise UnusableReplyError("refusal", f"What stands under {key!r} is a refusal.")
    return text.strip()
