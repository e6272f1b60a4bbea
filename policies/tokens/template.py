"""Computes chat template increments: the tokens that the template adds for new messages.

The tokens of a session are append-only: sampled tokens are never encoded again. The template is
therefore needed not for a whole conversation, but for its next piece. The pieces are derived from
the template itself: a probe conversation of the same shape is rendered with markers in place of its
texts, and the text after the marker of the last assistant turn is the increment.

A test at the start checks three properties: the first increment is the rendering of the first
messages; the text after a turn depends neither on the turn nor on earlier messages; and a control
token ends a turn. The rendering of earlier turns is not checked (many templates omit their
thoughts), because nothing is rendered a second time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from visenv.decoding.templates import render_chat_template
from visenv.errors import DataError, PolicyError
from visenv.types import Message, Part, Video, Visual

from .vocabulary import Vocabulary

Kind = Literal["text", "image", "video"]
"""Kind of a part of a message."""

Shape = tuple[tuple[str, tuple[Kind, ...]], ...]
"""Role of each message, and the kind of each of its parts."""

_BLANK = "\u2003"
"""A blank around each marker of a probe; it is missing where the template strips texts."""

_MARK = re.compile(rf"({_BLANK}?)§(\d+)§({_BLANK}?)")
_ASSISTANT_MARK = "§A§"
_CONTROL = re.compile(r"<\|[^|<>\s]+\|>")
_OPENING = re.compile(r"<think>.*\Z", re.DOTALL)
_PLACEHOLDERS = ("image_token", "boi_token")
"""Attributes of processors that name the token which a template writes for an image."""


class TemplatePiece(NamedTuple):
    """Represents a piece of a rendered increment.

    Attributes:
        kind: ``"control"``: one control token; ``"text"``: plain text of the template; ``"part"``:
            the message text with a number; ``"item"``: the place of the next image or video.
        value: The token id, the text, or the number.
        strips: The sides on which the template strips the message text: ``"l"``, ``"r"``, both, or
            neither.
    """

    kind: Literal["control", "text", "part", "item"]
    value: int | str
    strips: str = ""


class Increment(NamedTuple):
    """Holds the tokens to append before the policy's turn.

    Attributes:
        token_ids: The tokens, with one placeholder for each image and video.
        items: The images and videos, in the order of their placeholders.
    """

    token_ids: list[int]
    items: tuple[Visual, ...]


class ChatTemplate:
    """Computes the increments of one chat template.

    Args:
        processor: A processor of transformers, with `tokenizer` and `chat_template`.
        vocabulary: The vocabulary of its tokenizer.

    Attributes:
        end_id: The token that ends a turn.
        image_id: The token that the template writes for an image.
        opening: The beginning of a thought (``<think>`` and a line break) that the template writes
            at the start of each turn, or ``""``. It is part of the turn.

    Raises:
        PolicyError: If the tokenizer lacks a special token, or one of the three questions of the
            test is answered with no; the message contains the question and two texts.
    """

    def __init__(self, processor: Any, vocabulary: Vocabulary) -> None:
        self._processor = processor
        self._vocabulary = vocabulary
        self.image_id = self._find_image()
        self._video_id = vocabulary.control.get(str(getattr(processor, "video_token", "")))
        control = sorted(vocabulary.control, key=len, reverse=True)
        cut = "|".join(map(re.escape, control))
        self._cut = re.compile(f"({cut}|{_BLANK}?§\\d+§{_BLANK}?)")
        self._known: dict[tuple[Shape, bool], list[TemplatePiece]] = {}
        self.end_id = self._find_end()
        self.opening = self._find_opening()
        self._self_test()

    def require_video(self) -> None:
        """Check that the template supports videos.

        Raises:
            PolicyError: If it does not; the message says why.
        """
        if self._video_id is None:
            raise PolicyError(
                'The tokenizer has no special token for videos: set video="frames" for the policy.'
            )
        shown = self._pieces((("user", ("video",)),), after_turn=True)
        if [piece.value for piece in shown if piece.kind == "item"] != [self._video_id]:
            raise PolicyError(
                "The chat template ignores message parts of the type 'video': set "
                'video="frames" for the policy.'
            )
        self._self_test("video")

    def increment(
        self, messages: Sequence[Message], prefix: str, after_turn: bool, ended: bool
    ) -> Increment:
        """Return the tokens between the policy's last turn, or the beginning, and its next turn.

        Args:
            messages: The new messages of the environment.
            prefix: The prefill of the next turn. If it repeats `opening`, only its rest is added.
            after_turn: Whether a turn of the policy precedes.
            ended: Whether that turn contains its end token, which is then not added.
        """
        shape = tuple(
            (message.role, tuple([_kind(part) for part in message.parts])) for message in messages
        )
        pieces = self._pieces(shape, after_turn)
        parts = [part for message in messages for part in message.parts]
        texts = [part for part in parts if isinstance(part, str)]
        items = tuple(part for part in parts if not isinstance(part, str))
        rest = self.start(prefix).removeprefix(self.opening)
        return Increment(self._encode(pieces[int(ended) :], texts, rest), items)

    def start(self, prefix: str) -> str:
        """Return the text with which the policy's turn begins, for a prefill of that turn.

        This is the prefill, after `opening` if the prefill does not begin with it.
        """
        if not self.opening or not self.begins(prefix):
            return self.opening + prefix
        return self.opening + prefix.removeprefix(self.opening.strip()).lstrip()

    def begins(self, prefix: str) -> bool:
        """Return whether a prefill begins with `opening`, apart from blanks."""
        return prefix.startswith(self.opening.strip())

    def sampled(self, text: str, prefix: str) -> str:
        """Return the part of a turn's text that a policy samples: all but its beginning.

        Args:
            text: The whole text of the turn.
            prefix: The prefill of the turn.
        """
        for start in (self.start(prefix), prefix, self.opening.strip()):
            if start and text.startswith(start):
                return text.removeprefix(start)
        return text

    def _encode(
        self, pieces: Sequence[TemplatePiece], texts: Sequence[str], prefix: str
    ) -> list[int]:
        """Encode the pieces; adjacent texts are joined first, as in a whole rendering."""
        ids: list[int] = []
        run: list[str] = []
        for kind, value, strips in pieces:
            if kind == "text":
                run.append(str(value))
            elif kind == "part":
                run.append(_stripped(texts[int(value)], strips))
            else:
                ids += [*self._vocabulary.encode("".join(run)), int(value)]
                run = []
        return [*ids, *self._vocabulary.encode("".join(run) + prefix)]

    def _pieces(self, shape: Shape, after_turn: bool) -> list[TemplatePiece]:
        key = (shape, after_turn)
        if key not in self._known:
            rendered = self._render(_probe(shape, after_turn), generate=True)
            if after_turn:
                rendered = rendered.rpartition(_ASSISTANT_MARK)[2]
            self._known[key] = self._read(rendered)
        return self._known[key]

    def _read(self, rendered: str) -> list[TemplatePiece]:
        pieces: list[TemplatePiece] = []
        for text in self._cut.split(rendered):
            mark = _MARK.fullmatch(text)
            if mark:
                left, number, right = mark.groups()
                strips = "l" * (not left) + "r" * (not right)
                pieces.append(TemplatePiece("part", int(number), strips))
            elif text in self._vocabulary.control:
                token = self._vocabulary.control[text]
                is_item = token in (self.image_id, self._video_id)
                pieces.append(TemplatePiece("item" if is_item else "control", token))
            elif unknown := _CONTROL.search(text):
                raise PolicyError(
                    f"The chat template writes {unknown[0]!r}, which is not a special token of "
                    "the tokenizer and would be encoded as letters."
                )
            elif text:
                pieces.append(TemplatePiece("text", text))
        return pieces

    def _render(self, conversation: list[dict[str, Any]], generate: bool) -> str:
        try:
            return render_chat_template(self._processor, conversation, generate)
        except DataError as error:
            raise PolicyError(str(error)) from error

    def _find_image(self) -> int:
        names = [getattr(self._processor, name, None) for name in _PLACEHOLDERS]
        tokens = [*dict.fromkeys(name for name in names if isinstance(name, str))]
        known = [token for token in tokens if token in self._vocabulary.control]
        if not tokens:
            raise PolicyError(
                f"{type(self._processor).__name__} names no token for images (image_token)."
            )
        if not known:
            raise PolicyError(
                f"The tokenizer has no special token {', '.join(map(repr, tokens))} for images. "
                "Use a checkpoint with the tokenizer of its model."
            )
        shown = self._render(_plain([("user", (None,))], "image"), generate=False)
        for token in known:
            if token in shown:
                return int(self._vocabulary.control[token])
        raise PolicyError(
            f"The chat template writes none of {', '.join(map(repr, known))} for an image, but "
            f"{shown!r}."
        )

    def _find_end(self) -> int:
        pieces = self._pieces((("user", ("text",)),), after_turn=True)
        if not pieces or pieces[0].kind != "control":
            raise PolicyError(
                "The chat template does not end a turn with a control token, but writes "
                f"{str(pieces[0].value) if pieces else ''!r} after {_ASSISTANT_MARK!r}."
            )
        return int(pieces[0].value)

    def _find_opening(self) -> str:
        said = _plain([("user", ("probe",))], "image")
        without, rendered = (self._render(said, generate=each) for each in (False, True))
        found = _OPENING.search(rendered.removeprefix(without))
        return found[0] if found and rendered.startswith(without) else ""

    def _self_test(self, item: Kind = "image") -> None:
        """Check the increments before the first turn and after one, with an item; see the module.

        `_find_end` checks that a control token ends a turn.
        """
        first = _asked("system", " rules ", False) + _asked("user", "\nbefore", True)
        later = _asked("user", " <result>\nmore", True)
        shown, then = _plain(first, item), _plain(later, item)
        rendered = self._render(shown, generate=True)
        increment = self._put_together(first, item, after_turn=False)
        if increment != self._tokens(rendered):
            raise PolicyError(
                "The first increment of the chat template is not its rendering of the first "
                f"messages: {self._text(increment)!r}, rendered {rendered!r}."
            )
        opening = _plain([("user", ("probe",))], item)
        expected = self._render([*opening, _assistant(_ASSISTANT_MARK), *then], generate=True)
        expected = expected.rpartition(_ASSISTANT_MARK)[2]
        increment = self._put_together(later, item, after_turn=True)
        if increment != self._tokens(expected):
            raise PolicyError(
                "The increment of the chat template after a turn is not what it renders: "
                f"{self._text(increment)!r}, rendered {expected!r}."
            )
        for past in (opening, shown, [*shown, _assistant("one"), *then]):
            for said in _TURNS:
                found = self._render([*past, _assistant(said), *then], generate=True)
                if not found.endswith(expected):
                    raise PolicyError(
                        "The text of the chat template after a turn depends on the turn or on "
                        f"earlier texts: {expected!r} after {_ASSISTANT_MARK!r}, but "
                        f"{found[-len(expected) :]!r} after {said!r}."
                    )

    def _put_together(self, asked: _Asked, item: Kind, *, after_turn: bool) -> list[int]:
        """Return the tokens of an increment with these messages."""
        shape = tuple(
            (role, tuple([item if part is None else "text" for part in parts]))
            for role, parts in asked
        )
        texts = [part for _, parts in asked for part in parts if part is not None]
        return self._encode(self._pieces(shape, after_turn), texts, "")

    def _tokens(self, rendered: str) -> list[int]:
        ids: list[int] = self._processor.tokenizer(rendered, add_special_tokens=False)["input_ids"]
        return ids

    def _text(self, token_ids: list[int]) -> str:
        return str(self._processor.tokenizer.decode(token_ids))


_TURNS = ("x", "<think>\nhm\n</think>\n\ny", " z ")
"""Turns of the test: without and with a thought, and with blanks."""

_Asked = list[tuple[str, tuple[str | None, ...]]]
"""Messages of the self-test: role and parts; None is an image or a video."""


def _asked(role: str, text: str, with_item: bool) -> _Asked:
    return [(role, (text, None, "\nafter\n") if with_item else (text,))]


def _plain(asked: _Asked, item: Kind) -> list[dict[str, Any]]:
    return [
        {"role": role, "content": [_part(item) if part is None else _text(part) for part in parts]}
        for role, parts in asked
    ]


def _kind(part: Part) -> Kind:
    if isinstance(part, str):
        return "text"
    return "video" if isinstance(part, Video) else "image"


def _part(kind: Kind) -> dict[str, str]:
    return {"type": kind}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [_text(text)]}


def _probe(shape: Shape, after_turn: bool) -> list[dict[str, Any]]:
    """Return a conversation of that shape whose texts are numbered markers."""
    conversation: list[dict[str, Any]] = []
    if after_turn:
        opening = {"role": "user", "content": [_text("probe")]}
        conversation += [opening, _assistant(_ASSISTANT_MARK)]
    number = 0
    for role, kinds in shape:
        content = []
        for kind in kinds:
            marker = f"{_BLANK}§{number}§{_BLANK}"
            content.append(_text(marker) if kind == "text" else _part(kind))
            number += kind == "text"
        conversation.append({"role": role, "content": content})
    return conversation


def _stripped(text: str, strips: str) -> str:
    text = text.lstrip() if "l" in strips else text
    return text.rstrip() if "r" in strips else text
