"""Lists the words of the ARM environments' tiny preset, for the tokenizer of a tiny model."""

from __future__ import annotations

import random
from collections.abc import Iterator

from visenv.words import COLORS, REPEATS, ROLES, TokenizerWords, doubled, tags, untagged

from .prompts import ANSWER_NOW, verifying
from .tools.pages import PageByIndex, PageByQuery
from .verdicts import HEAD, write_verdict

_TEXTS = (
    "What colour are the stripes on page",
    "original_image:\n",
    "resp_1: resp_2: resp_0: text_0: ",
    verifying("brief"),
    *(
        f'{{"name": "{tool.name}", "arguments": {{"filename": "cards-'
        for tool in (PageByQuery, PageByIndex)
    ),
    '", "query": "page ',
    '", "image_idx": ',
    "Pages , from left to right, the best first.",
    "Page , which has pages.",
    "Error: ",
    f"{HEAD} Answer is better",
    write_verdict("True"),
    write_verdict("False"),
    untagged(ANSWER_NOW).strip(),
)


def _corpus() -> Iterator[str]:
    rng = random.Random(0)
    for _ in range(REPEATS):
        yield from _TEXTS
        yield from doubled((*COLORS, *ROLES, "yes", "no"))
        yield f"observation_{rng.randint(1, 9)}:\n"
        yield f"\ncards-{rng.randrange(10_000)}\n"
        yield f" {rng.randint(1, 9)} of 'cards-{rng.randrange(10_000)}'"


WORDS = TokenizerWords(tags("think", "tool_call", "answer", "tool_response"), _corpus)
