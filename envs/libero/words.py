"""Lists the words of the tiny preset, for the tokenizer of a tiny model."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from visenv.words import REPEATS, ROLES, TokenizerWords, doubled, tags

from .actions import LAST_BIN
from .datasets.tasks import language, task_names
from .prompts import CAMERAS, progress

_TASKS = tuple(language(name) for name in task_names("libero_goal"))
_SIGNS = ('{"actions": [[127, 127, 127, 127, 127, 127, 0], [', "]]}", "], [", ", ")


def _corpus() -> Iterator[str]:
    rng = random.Random(0)
    for _ in range(REPEATS):
        rows = [
            [rng.randint(0, LAST_BIN) for _ in range(6)] + [rng.randint(0, 1)] for _ in range(2)
        ]
        yield json.dumps({"actions": rows})
        yield from _SIGNS
        yield from (f"{camera}:\n" for camera in CAMERAS)
        yield f"Task: {rng.choice(_TASKS)}\n"
        yield progress(rng.randint(1, 96), 96)
        yield from doubled((*ROLES, "Error"))


WORDS = TokenizerWords(tags("think"), _corpus)
