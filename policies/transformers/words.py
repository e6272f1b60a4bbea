"""The words that the tokenizers of tiny models are trained on, task by task.

Each word of a task becomes one token, so that a turn is some 20 to 40 tokens long.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

_REPEATS = 300
"""Often enough that each word becomes one token, alone and after a blank."""

COLOURS = (
    "red", "orange", "yellow", "green", "cyan", "blue", "purple", "magenta", "white", "black",
)  # fmt: skip
ROLES = ("system", "user", "assistant")


class Words(NamedTuple):
    """What a tokenizer is made of.

    Attributes:
        tags: One token each, but not special: a parser must see them, and a policy may say them.
        corpus: Texts to learn merges from, the same every time.
    """

    tags: tuple[str, ...]
    corpus: Callable[[], Iterator[str]]


def _tags(*names: str) -> tuple[str, ...]:
    return tuple(f"<{slash}{name}>" for name in names for slash in ("", "/"))


_ZOOM_WORDS = (
    *COLOURS, "square", "round", "diamond", *ROLES, "left", "right", "yes", "no", "unknown",
)  # fmt: skip
_ZOOM_TEXTS = (
    "What colour are the stripes on the orange square sign?",
    "What is written on the red round sign?",
    "How many rings are on the blue diamond sign?",
    "On the white square sign, is the triangle to the left or to the right of the circle?",
    "look closer",
    " look closer ",
    "now clear",
    " now clear ",
    "Error: ",
)


def _zoom_corpus() -> Iterator[str]:
    rng = random.Random(0)
    for _ in range(_REPEATS):
        yield from _ZOOM_TEXTS
        yield from (f"{word} {word}" for word in _ZOOM_WORDS)
        yield f"\nname: zoom\nkeypoint: [{rng.randrange(96)}, {rng.randrange(96)}]\n"
        yield f" input_image \n tool_result_{rng.randint(1, 9)} \n"


_ARM_TEXTS = (
    "What colour are the stripes on page",
    "original_image:\n",
    "resp_1: resp_2: resp_0: text_0: ",
    " look ",
    '{"name": "doc_page_retrieval_by_query", "arguments": {"filename": "cards-',
    '{"name": "doc_page_retrieval_by_index", "arguments": {"filename": "cards-',
    '", "query": "page ',
    '", "image_idx": ',
    "Pages , from left to right, the best first.",
    "Page , which has pages.",
    "Error: ",
    "Overall Judgment: Answer is better",
    "Overall Judgment: True",
    "Overall Judgment: False",
    "You have no tool calls left. Give your final judgment now, inside tags.",
)


def _arm_corpus() -> Iterator[str]:
    rng = random.Random(0)
    for _ in range(_REPEATS):
        yield from _ARM_TEXTS
        yield from (f"{word} {word}" for word in (*COLOURS, *ROLES, "yes", "no"))
        yield f"observation_{rng.randint(1, 9)}:\n"
        yield f"\ncards-{rng.randrange(10_000)}\n"
        yield f" {rng.randint(1, 9)} of 'cards-{rng.randrange(10_000)}'"


_ARFT_PROGRAM = 'cv2.imwrite("path_to_output_image.jpg",{})'
_ARFT_IMAGE = 'cv2.imread("path_to_input_image.jpg")'
_ARFT_TEXTS = (
    "What colour is the upper band of the flag?",
    "What colour is the lower band of the flag?",
    "What colours are the bands of the flag, upper first?",
    "Who owns this?",
    "Where does the owner of this live?",
    "1. cyan square: owner grace",
    "2. grace: lives in derby",
    "{'rotation180'}",
    "{'dark'}",
    "{'none'}",
    "{'rotation180', 'dark'}",
    " upside down ",
    " dark ",
    " fine ",
    " upside down, dark ",
    " repair ",
    " now clear ",
    "\nTrue\n",
    "Error: ",
    "Nothing was found for '",
    "'. Try other words.",
    "\nThis is your last turn. Give your final answer now, inside tags.",
    *(
        f"```python\n{_ARFT_PROGRAM.format(work)}\n```"
        for work in (
            f"cv2.rotate({_ARFT_IMAGE},cv2.ROTATE_180)",
            f"cv2.convertScaleAbs({_ARFT_IMAGE},None,4)",
            f"cv2.rotate(cv2.convertScaleAbs({_ARFT_IMAGE},None,4),cv2.ROTATE_180)",
            f"cv2.convertScaleAbs(cv2.rotate({_ARFT_IMAGE},cv2.ROTATE_180),None,4)",
        )
    ),
)


_ARFT_NAMES = (
    "square", "circle", "triangle", "anna", "ben", "clara", "david", "emma", "frank", "grace",
    "henry", "york", "bath", "derby", "leeds", "ripon", "truro", "wells", "ely",
)  # fmt: skip


def _arft_corpus() -> Iterator[str]:
    for _ in range(_REPEATS):
        yield from _ARFT_TEXTS
        yield from (f"{word} {word}" for word in (*COLOURS, *ROLES, *_ARFT_NAMES))


VOCABULARIES: dict[str, Words] = {
    "zoom": Words(_tags("think", "tool", "answer", "result", "image_name"), _zoom_corpus),
    "arm": Words(_tags("think", "tool_call", "answer", "tool_response"), _arm_corpus),
    "arft": Words(
        _tags("think", "search", "problem", "code", "answer", "information"), _arft_corpus
    ),
}
"""By the name that `TinyConfig.words` gives."""
