"""Chat messages: text and images in order, and their two plain forms."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from visenv.types.image import Image

Role = Literal["system", "user", "assistant"]
Part = str | Image
"""One piece of a message. Text is data: no token of any tokenizer in it is ever special."""

IMAGE_MARKER = "<image>"
"""Stands for one image, in order, where a message must be plain text (the observation)."""

_MARKER_AS_TEXT = "< image>"


class Message(NamedTuple):
    """One chat message.

    Attributes:
        role: Who speaks.
        parts: Texts and images in reading order.
    """

    role: Role
    parts: tuple[Part, ...]

    @property
    def images(self) -> tuple[Image, ...]:
        """The images of the message, in order."""
        return tuple([part for part in self.parts if isinstance(part, Image)])

    def in_memory(self) -> Message:
        """The same message, to be sent to where its images' files do not exist (`Image`)."""
        parts = (part.in_memory() if isinstance(part, Image) else part for part in self.parts)
        return Message(self.role, tuple(parts))

    def plain(self) -> str:
        """The message as text with one `IMAGE_MARKER` per image.

        A marker that foreign text contains is broken by a blank, so that markers always count
        the images; `parts` keeps the text as it was.
        """
        return flatten((self,))[0]

    def openai(self) -> dict[str, Any]:
        """The message as OpenAI chat content parts, images as PNG data URLs."""
        content: list[dict[str, Any]] = []
        for part in self.parts:
            if isinstance(part, Image):
                data = base64.b64encode(part.png()).decode("ascii")
                url = {"url": f"data:image/png;base64,{data}"}
                content.append({"type": "image_url", "image_url": url})
            else:
                content.append({"type": "text", "text": part})
        return {"role": self.role, "content": content}


def flatten(messages: Iterable[Message]) -> tuple[str, tuple[Image, ...]]:
    """All messages as one text (`Message.plain`, a blank line between two), and their images."""
    texts: list[str] = []
    images: list[Image] = []
    for message in messages:
        if texts:
            texts.append("\n\n")
        for part in message.parts:
            if isinstance(part, str):
                texts.append(part.replace(IMAGE_MARKER, _MARKER_AS_TEXT))
            else:
                texts.append(IMAGE_MARKER)
                images.append(part)
    return "".join(texts), tuple(images)


def all_images(messages: Iterable[Message]) -> tuple[Image, ...]:
    """All images of the messages, in the order of their markers."""
    return tuple(
        [part for message in messages for part in message.parts if isinstance(part, Image)]
    )
