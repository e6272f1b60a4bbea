"""Makes an animation of an episode: the images that the policy sees, and the texts of its turns."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from itertools import count, islice
from typing import Any, NamedTuple

import PIL.Image
from PIL import ImageDraw, ImageFont

from visenv.types import Answered, Episode
from visenv.viewer.episode import episode_record

WIDTH, HEIGHT = 960, 480
"""The size of the animation in pixels: a square for the image, and one of the same size for the
text.
"""

_MOST_FRAMES = 40
_MOST_CHARACTERS = 700
_NAME_OF_IMAGE = re.compile(r"^(<image_name> \w+ </image_name>|\w+:)$", re.MULTILINE)
_MARGIN, _TEXT_SIZE, _LINE_HEIGHT, _QUESTION_ROWS = 24, 19, 26, 4
_PAPER, _INK, _PALE, _MARGIN_COLOR = "#ffffff", "#1f2430", "#8a93a5", "#e6e8ee"
_SPEAKERS = {"environment": "#3f51b5", "policy": "#c2410c", "result": "#15803d"}
_MARKS = {"zoom": "#c2410c", "rejected": "#dc2626", "truth": "#15803d", "hit": "#15803d"}


class AnimationFrame(NamedTuple):
    """Holds one frame of the animation.

    Attributes:
        speaker: ``"environment"``, ``"policy"`` or ``"result"``.
        text: The text; only the beginning that fits is drawn.
        image: The image, or None for a frame with only text.
        marks: Boxes and points on the image, in its pixels (`visenv.viewer.episode`).
        milliseconds: The duration of the frame.
        page: The text in place of the image, if there is none.
    """

    speaker: str
    text: str
    image: PIL.Image.Image | None
    marks: tuple[Mapping[str, Any], ...]
    milliseconds: int
    page: str = ""


def animate(episode: Episode, still: bool = False) -> bytes:
    """Return an animation of an episode, as the bytes of a WebP file.

    The boxes that a turn cuts out and the points in its text are drawn on the image.

    Args:
        episode: The episode, with its messages.
        still: Return only the frame of the first turn with the question, at half the size.
    """
    played = list(scenes(episode))[:_MOST_FRAMES]
    title = episode.env_id.partition("/")[2] or episode.env_id
    out = io.BytesIO()
    if still:
        first = next((each for each in played if each.speaker == "policy"), played[0])
        whole = _draw(first, title, episode.question)
        half = whole.resize((WIDTH // 2, HEIGHT // 2), PIL.Image.Resampling.LANCZOS)
        half.save(out, "WEBP", quality=80)
        return out.getvalue()
    frames = [_draw(scene, title) for scene in played]
    frames[0].save(
        out,
        "WEBP",
        save_all=True,
        append_images=frames[1:],
        duration=[scene.milliseconds for scene in played],
        loop=0,
        quality=75,
        method=4,
    )
    return out.getvalue()


def scenes(episode: Episode) -> Iterator[AnimationFrame]:
    """Yield the frames: each shown image, each turn, and the result.

    In an episode without images, the last text of the environment is beside each turn.
    """
    record = episode_record(episode, "")
    images = {image.sha256: image for image in episode.images}
    name, current, page = "", None, ""
    for number, turn in enumerate(record["turns"]):
        text = _said(turn["messages"])
        if not number and len(text) > _MOST_CHARACTERS:  # the prompt begins with all its rules
            text = _from_question(text, episode.question)
        shown = list(_pictures(turn["messages"]))
        for picture in shown:
            pixels = images[picture["image"].removeprefix("/").removesuffix(".png")].pixels
            name, current = picture["name"], PIL.Image.fromarray(pixels)
            words = text if len(shown) == 1 else f"{name}\n{text}"
            yield AnimationFrame(
                "environment", words, current, (), 350 if "time" in picture else 1800
            )
        if not shown:
            yield AnimationFrame("environment", text, current, (), 1800)
        page = "" if current else text
        marks = [each for each in record["marks"] if each["image"] == name and not number]
        said = turn["prefix"] + turn["text"]
        yield AnimationFrame("policy", said, current, tuple(marks), 2800, page)
    yield AnimationFrame("result", _result(episode), current, (), 2800, page)


def _from_question(text: str, question: str) -> str:
    """Return the part of a prompt from the question on; the question if the prompt lacks it."""
    place = text.find(question)
    return text[place:] if place >= 0 and question else question


def _pictures(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for part in (part for message in messages for part in message["parts"]):
        if "image" in part:
            yield part
        yield from part.get("video", ())


def _said(messages: list[dict[str, Any]]) -> str:
    """Return the text of the messages without system messages and the names of images."""
    texts = [
        _NAME_OF_IMAGE.sub("", part.get("text", ""))
        for message in messages
        if message["role"] != "system"
        for part in message["parts"]
    ]
    return "\n".join(filter(None, map(str.strip, texts)))


def _result(episode: Episode) -> str:
    answers = [event.answer for event in episode.events if isinstance(event, Answered)]
    lines = [f"reward {episode.reward:.2f}"]
    lines += [f"answer: {answers[-1]}"] if answers else [episode.status]
    lines += [f"{name} {value:.2f}" for name, value in episode.terms.items() if value is not None]
    return "\n".join(lines)


def _draw(scene: AnimationFrame, title: str, question: str = "") -> PIL.Image.Image:
    frame = PIL.Image.new("RGB", (WIDTH, HEIGHT), _PAPER)
    draw = ImageDraw.Draw(frame)
    left = _MARGIN
    if scene.image is not None:
        frame.paste(_framed(scene.image, scene.marks), (0, 0))
        left += HEIGHT
    elif scene.page:
        draw.rectangle((0, 0, HEIGHT, HEIGHT), fill=_MARGIN_COLOR)
        _write(draw, scene.page, (_MARGIN, _MARGIN), HEIGHT - _MARGIN)
        left += HEIGHT
    draw.text((left, 18), title, _PALE, ImageFont.load_default(15))
    top = 40
    if question and not scene.page:  # a page begins with the question
        _write(draw, question, (left, top), WIDTH - _MARGIN, _QUESTION_ROWS)
        top += _QUESTION_ROWS * _LINE_HEIGHT + 14
    draw.text((left, top), scene.speaker, _SPEAKERS[scene.speaker], ImageFont.load_default(22))
    _write(draw, scene.text, (left, top + 44), WIDTH - _MARGIN)
    return frame


def _write(
    draw: ImageDraw.ImageDraw, text: str, place: tuple[int, int], right: int, most_rows: int = 99
) -> None:
    """Write the lines of a text that fit between `place` and the right and lower margins."""
    left, top = place
    font = ImageFont.load_default(_TEXT_SIZE)
    rows = min(most_rows, (HEIGHT - top - _MARGIN // 2) // _LINE_HEIGHT)
    lines = list(islice(wrapped(text, font, right - left), rows + 1))
    if len(lines) > rows:
        lines = [*lines[: rows - 1], "..."]
    for row, line in enumerate(lines):
        draw.text((left, top + row * _LINE_HEIGHT), line, _INK, font)


def _framed(image: PIL.Image.Image, marks: tuple[Mapping[str, Any], ...]) -> PIL.Image.Image:
    """Return a gray square with the image in its center, as large as possible, and the marks."""
    square = PIL.Image.new("RGB", (HEIGHT, HEIGHT), _MARGIN_COLOR)
    scale = HEIGHT / max(image.size)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    left, top = ((HEIGHT - side) // 2 for side in size)
    square.paste(image.resize(size, PIL.Image.Resampling.BICUBIC), (left, top))
    draw = ImageDraw.Draw(square)
    for mark in marks:
        color = _MARKS.get(mark["what"], "#c2410c")
        if mark["box"]:
            box = [side * scale + (left, top)[axis % 2] for axis, side in enumerate(mark["box"])]
            draw.rectangle(box, outline=color, width=3)
        elif mark["point"]:
            x, y = (side * scale + (left, top)[axis] for axis, side in enumerate(mark["point"]))
            draw.ellipse((x - 6, y - 6, x + 6, y + 6), outline=color, width=3)
    return square


def wrapped(text: str, font: Any, width: int) -> Iterator[str]:
    """Yield the lines of a text that are at most `width` pixels wide."""
    for paragraph in text.strip().splitlines():
        line = ""
        for word in paragraph.split():
            longer = f"{line} {word}".strip()
            if line and font.getlength(longer) > width:
                yield line
                longer = word
            while font.getlength(longer) > width:
                cut = next(n for n in count(1) if font.getlength(longer[: n + 1]) > width)
                yield longer[:cut]
                longer = longer[cut:]
            line = longer
        yield line
