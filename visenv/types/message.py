"""Defines chat messages (text, images and videos in order), and their conversion to two formats."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from visenv.text.control_tokens import without_control_tokens
from visenv.types.image import Image
from visenv.types.video import Video

Role = Literal["system", "user", "assistant"]
Visual = Image | Video
"""Visual content of a message; each image or video is identified by its ``sha256``."""

Part = str | Visual
"""One piece of a message. Text is data: a tokenizer must never read special tokens from it."""

IMAGE_MARKER = "<image>"
"""Marks the position of one image if a message must be plain text (as in the observation)."""

_MARKER_AS_TEXT = "< image>"


class Message(NamedTuple):
    """Holds one chat message.

    Attributes:
        role: The speaker.
        parts: Texts, images and videos in reading order.
    """

    role: Role
    parts: tuple[Part, ...]

    @property
    def images(self) -> tuple[Image, ...]:
        """Return the images of the message in order, including the frames of its videos."""
        return all_images((self,))

    @property
    def videos(self) -> tuple[Video, ...]:
        """Return the videos of the message, in order."""
        return tuple([part for part in self.parts if isinstance(part, Video)])

    def with_frames(self) -> Message:
        """Return the same message with each video replaced by its frames, as images."""
        if not any(isinstance(part, Video) for part in self.parts):
            return self
        parts: list[Part] = []
        for part in self.parts:
            parts += part.frames if isinstance(part, Video) else (part,)
        return Message(self.role, tuple(parts))

    def replace_images(self, change: Callable[[Image], Image]) -> Message:
        """Return the same message with each image and video frame replaced by ``change(image)``."""
        parts: list[Part] = []
        for part in self.parts:
            if isinstance(part, Image):
                parts.append(change(part))
            elif isinstance(part, Video):
                parts.append(part.replace_frames(change))
            else:
                parts.append(part)
        return Message(self.role, tuple(parts))

    def in_memory(self) -> Message:
        """Return the same message with images that need no files."""
        return self.replace_images(Image.in_memory)

    def plain(self) -> str:
        """Return the message as text with one `IMAGE_MARKER` per image or video frame.

        If the text itself contains a marker, a blank is inserted into it, so that the number of
        markers equals the number of images; `parts` contains the unchanged text.
        """
        return flatten((self,))[0]

    def openai(self) -> dict[str, Any]:
        """Return the message as OpenAI chat content parts, images and frames as PNG data URLs.

        A blank is inserted into text that looks like a control token of a model, because the server
        would read it as one (`visenv.text.control_tokens`).
        """
        content: list[dict[str, Any]] = []
        for part in self.with_frames().parts:
            if isinstance(part, Image):
                data = base64.b64encode(part.png()).decode("ascii")
                url = {"url": f"data:image/png;base64,{data}"}
                content.append({"type": "image_url", "image_url": url})
            elif isinstance(part, str):
                content.append({"type": "text", "text": without_control_tokens(part)})
        return {"role": self.role, "content": content}


def flatten(messages: Iterable[Message]) -> tuple[str, tuple[Image, ...]]:
    """Return all messages as one text (`Message.plain`, a blank line between two), and the images.

    The images include the frames of videos, in the order of the markers.
    """
    texts: list[str] = []
    images: list[Image] = []
    for message in messages:
        if texts:
            texts.append("\n\n")
        for part in message.parts:
            if isinstance(part, str):
                texts.append(part.replace(IMAGE_MARKER, _MARKER_AS_TEXT))
            else:
                frames = part.frames if isinstance(part, Video) else (part,)
                texts += [IMAGE_MARKER] * len(frames)
                images += frames
    return "".join(texts), tuple(images)


def all_images(messages: Iterable[Message]) -> tuple[Image, ...]:
    """Return all images of the messages and frames of their videos, in the order of the markers."""
    images: list[Image] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, Image):
                images.append(part)
            elif isinstance(part, Video):
                images += part.frames
    return tuple(images)
