"""Lists the words of the ARFT environments' tiny presets, for the tokenizer of a tiny model."""

from __future__ import annotations

from collections.abc import Iterator

from visenv.words import COLORS, REPEATS, ROLES, TokenizerWords, doubled, tags, untagged

from .coding.ground_truth import Distortion
from .coding.prompts import looked, repairing, seen
from .coding.repairs import brief_repair
from .coding.world.flags import QUESTIONS as FLAG_QUESTIONS
from .prompts import ANSWER_NOW
from .search.world.tokens import LIVES, OWNED, OWNERS, QUESTIONS, SHAPES, TOWNS

_PROBLEMS = (("rotation180",), ("dark",), ("none",), ("rotation180", "dark"))
_TURNED, _DARK = Distortion(name="rotation180"), Distortion(name="dark", gain=0.25)
_REPAIRS = ((_TURNED,), (_DARK,), (_TURNED, _DARK), (_DARK, _TURNED))
_TEXTS = (
    *FLAG_QUESTIONS.values(),
    *QUESTIONS.values(),
    f"1. cyan square: {OWNED.format('grace')}",
    f"2. grace: {LIVES.format('derby')}",
    *(f"{{{', '.join(map(repr, problems))}}}" for problems in _PROBLEMS),
    *(looked(problems, brief=True) for problems in _PROBLEMS),
    repairing(brief=True),
    seen(brief=True),
    "Error: ",
    "Nothing was found for '",
    "'. Try other words.",
    untagged(ANSWER_NOW),
    *(f"```python\n{brief_repair(distortions)}\n```" for distortions in _REPAIRS),
)


def _corpus() -> Iterator[str]:
    for _ in range(REPEATS):
        yield from _TEXTS
        yield from doubled((*COLORS, *ROLES, *SHAPES, *OWNERS, *TOWNS))


WORDS = TokenizerWords(tags("think", "search", "problem", "code", "answer", "information"), _corpus)
