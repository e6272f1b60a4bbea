"""Uses a model as a writer of data: requests one JSON object, and retries if it is unusable.

The writer can be any policy of visenv: a model behind an OpenAI-compatible server, a model in this
process, or one that follows a script. The client of a server retries failed requests. This module
parses the replies; if one is unusable, the writer is told the reason and asked again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from typing_extensions import override

from visenv.curation.journal import RowOutcome, failed
from visenv.curation.lines import Row, read_object
from visenv.curation.step import CurationStep
from visenv.errors import ConfigurationError, DataError
from visenv.images import ARM_PIXELS, fit
from visenv.policy import Policy
from visenv.types import Image, Message, Sampling, TurnRequest

MAX_CHARACTERS = 100_000
"""Maximum length of a text, because comparing two texts takes quadratic time."""

WrittenT = TypeVar("WrittenT")

_SHOWN = 300
_REFUSALS = re.compile(
    r"\b(?:i\s*['’]?\s*a?m (?:sorry|unable|not able)|i can\s*(?:['’]?t|not)|i (?:won['’]t|will not)"
    r"|as an ai\b|i apologi[sz]e)",
    re.IGNORECASE,
)


class UnusableReplyError(Exception):
    """Raised if a reply cannot be used; `WritingStep` then fails the row.

    Args:
        code: The reason in few words, by which failed rows are counted.
        complaint: The reason in a sentence for the writer.
    """

    def __init__(self, code: str, complaint: str) -> None:
        super().__init__(complaint)
        self.code = code
        self.complaint = complaint


class Writer:
    """Requests a JSON object from a policy until a reply can be used.

    Args:
        policy: The policy that writes. It cannot be one that requests advice from an environment
            (oracle, random).
        sampling: The sampling parameters; the seed is replaced by that of the row.
        attempts: Maximum number of replies for one row.
        image_pixels: Maximum number of pixels of an image; larger ones are shrunk. By default
            4096 patches of 28 x 28, as in the training of ARM-Thinker.
        label: The name of the writer in the journal, for example the model's name.

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
        """Return the result of `read` for the first reply that it accepts.

        Args:
            prompt: The prompt, which describes the JSON object.
            images: Paths of the images that are shown before the prompt.
            read: Parses the object, or raises `UnusableReplyError`.
            seed: The seed of the first attempt; each retry adds 1.

        Raises:
            UnusableReplyError: If no reply of `attempts` could be used; the error of the last one.
            PolicyError: If the policy gives no reply.
            ImageError: If an image cannot be read.
        """
        session = self._policy.open(seed)
        shown = await asyncio.to_thread(self._images, images)  # decoding large images is slow
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


@dataclass(eq=False)
class WritingStep(CurationStep):
    """Implements a step that uses a writer; a row without a usable reply fails."""

    concurrency: ClassVar[int] = 64

    writer: Writer

    async def compose(self, row: Row) -> RowOutcome:
        """Decide on a row; may raise `UnusableReplyError` and the errors of `decide`."""
        raise NotImplementedError

    @override
    async def decide(self, row: Row) -> RowOutcome:
        try:
            return await self.compose(row)
        except UnusableReplyError as error:
            return failed(error.code, error)


# ---------------------------------------------------------------------------- parsing


def read_reply(text: str, cut: bool = False) -> Row:
    """Return the JSON object in a reply; thoughts, prose and a fence around it are ignored.

    Args:
        text: The reply.
        cut: Whether the token limit cut it off.

    Raises:
        UnusableReplyError: If there is no object: ``"empty reply"``, ``"reply cut off"``,
            ``"refusal"`` or ``"no JSON"``.
    """
    if cut:  # it may contain a draft of the object in unfinished thoughts
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
        UnusableReplyError: If it is missing, a refusal or far too long.
    """
    return _checked(row.get(key), key)


def read_texts(row: Row, key: str, count: int) -> list[str]:
    """Return the `count` texts under `key` of a reply.

    Raises:
        UnusableReplyError: If the count is wrong, or a value is no text, a refusal or far too long.
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
        raise UnusableReplyError("wrong shape", f"The value of {key!r} must be a text with words.")
    if len(text) > MAX_CHARACTERS:
        complaint = f"The text of {key!r} must have at most {MAX_CHARACTERS:,} characters."
        raise UnusableReplyError("too long", complaint)
    if is_refusal(text):
        raise UnusableReplyError("refusal", f"The text of {key!r} is a refusal.")
    return text.strip()
