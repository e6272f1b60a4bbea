"""Computes chat template increments: the tokens that the template adds for new messages.

The tokens of a session are append-only: sampled tokens are never encoded again. The template is
therefore needed not for a whole conversation, but for its next piece. The pieces are derived from
the template itself: a probe conversation of the same shape is rendered with markers in place of its
texts, and the text after the marker of the last assistant turn is the increment. A self-test at the
start checks that the joined pieces equal the whole rendering.
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

_MARK = re.compile(r"§(\d+)§")
_ASSISTANT_MARK = "§A§"
_CONTROL = re.compile(r"<\|[^|<>\s]+\|>")


class TemplatePiece(NamedTuple):
    """Represents a piece of a rendered increment.

    Attributes:
        kind: ``"control"``: one control token; ``"text"``: plain text of the template; ``"part"``:
            the message text with a number; ``"item"``: the place of the next image or video.
        value: The token id, the text, or the number.
    """

    kind: Literal["control", "text", "part", "item"]
    value: int | str


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
        image_id: The placeholder token of an image.

    Raises:
        PolicyError: If the tokenizer lacks a special token, or the template changes earlier turns;
            the message says how.
    """

    def __init__(self, processor: Any, vocabulary: Vocabulary) -> None:
        self._processor = processor
        self._vocabulary = vocabulary
        image_token: str = processor.image_token
        if image_token not in vocabulary.control:
            raise PolicyError(
                f"The tokenizer has no special token {image_token!r} for images. Use a checkpoint "
                "with the tokenizer of its model."
            )
        self.image_id = vocabulary.control[image_token]
        self._video_id = vocabulary.control.get(str(getattr(processor, "video_token", "")))
        control = sorted(vocabulary.control, key=len, reverse=True)
        self._cut = re.compile("(" + "|".join(map(re.escape, control)) + r"|§\d+§)")
        self._known: dict[tuple[Shape, bool], list[TemplatePiece]] = {}
        self.end_id = self._find_end()
        self._self_test()

    def require_video(self) -> None:
        """Check that the template supports videos.

        Raises:
            PolicyError: If it does not; the message says why.
        """
        if self._video_id is None:
            raise PolicyError("The tokenizer has no special token for videos.")
        shown = self._pieces((("user", ("video",)),), after_turn=True)
        if [piece.value for piece in shown if piece.kind == "item"] != [self._video_id]:
            raise PolicyError("The chat template ignores message parts of the type 'video'.")
        self._self_test("video")

    def increment(
        self, messages: Sequence[Message], prefix: str, after_turn: bool, ended: bool
    ) -> Increment:
        """Return the tokens between the policy's last turn, or the beginning, and its next turn.

        Args:
            messages: The new messages of the environment.
            prefix: The prefill of the next turn.
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
        return Increment(self._encode(pieces[int(ended) :], texts, prefix), items)

    def _encode(
        self, pieces: Sequence[TemplatePiece], texts: Sequence[str], prefix: str
    ) -> list[int]:
        """Encode the pieces; adjacent texts are joined first, as in a whole rendering."""
        ids: list[int] = []
        run: list[str] = []
        for kind, value in pieces:
            if kind == "text":
                run.append(str(value))
            elif kind == "part":
                run.append(texts[int(value)])
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
                pieces.append(TemplatePiece("part", int(mark[1])))
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

    def _find_end(self) -> int:
        pieces = self._pieces((), after_turn=True)
        if not pieces or pieces[0].kind != "control":
            raise PolicyError("The chat template does not end a turn with a control token.")
        return int(pieces[0].value)

    def _self_test(self, item: Kind = "image") -> None:
        """Compare a conversation of three turns, joined from pieces, with its full rendering.

        Args:
            item: Kind of the item that is shown with the text.
        """
        said = ["<think>first thought</think> one", "<think>second</think> two"]
        asked = [
            _asked("system", " rules ", False) + _asked("user", "\nbefore", True),
            _asked("user", "<result>\nmore", True),
            _asked("user", "last?\n", True),
        ]
        shown = [_plain(messages, item) for messages in asked]
        whole = [*shown[0], _assistant(said[0]), *shown[1], _assistant(said[1])]
        full = self._render([*whole, *shown[2]], generate=True)
        _require_verbatim(full, said)
        past = self._render([*whole, _assistant(_ASSISTANT_MARK)], generate=False)
        prompt = full.removeprefix(self._render([*whole, *shown[2]], generate=False))
        _require_same_header(prompt, past.partition(_ASSISTANT_MARK)[0])
        if self._put_together(asked, said, item) != self._tokens(full):
            raise PolicyError(
                "The chat template is not append-only: earlier turns are rendered differently once "
                "later ones follow, so that sampled tokens would be lost."
            )

    def _put_together(self, asked: list[_Asked], said: list[str], item: Kind) -> list[int]:
        ids: list[int] = []
        for turn, messages in enumerate(asked):
            shape = tuple(
                (role, tuple([item if part is None else "text" for part in parts]))
                for role, parts in messages
            )
            texts = [part for _, parts in messages for part in parts if part is not None]
            ids += self._encode(self._pieces(shape, turn > 0), texts, "")
            ids += self._vocabulary.encode(said[turn]) if turn < len(said) else []
        return ids

    def _tokens(self, rendered: str) -> list[int]:
        ids: list[int] = self._processor.tokenizer(rendered, add_special_tokens=False)["input_ids"]
        return ids


_Asked = list[tuple[str, tuple[str | None, ...]]]
"""Messages of the self-test: role and parts; None is an image or a video."""


def _asked(role: str, text: str, with_item: bool) -> _Asked:
    return [(role, (text, None, "\nafter") if with_item else (text,))]


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
            content.append(_text(f"§{number}§") if kind == "text" else _part(kind))
            number += kind == "text"
        conversation.append({"role": role, "content": content})
    return conversation


def _require_verbatim(full: str, said: list[str]) -> None:
    for text in said:
        if text not in full:
            raise PolicyError(
                "The chat template strips earlier thoughts: it is not prefix-preserving, so the "
                "model would be trained on tokens it never saw. Use one that keeps <think> blocks."
            )


def _require_same_header(prompt: str, past: str) -> None:
    """Check that a past turn begins with the text that prompts the model for a turn."""
    if not past.endswith(prompt):
        raise PolicyError(
            "The chat template prompts for a turn differently from how it writes one: the prompt "
            f"ends in {prompt!r}, a past turn begins with {past[-len(prompt) :]!r}."
        )
