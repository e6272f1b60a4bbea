"""Reads conclusions about amounts: numbers of things, and durations of events."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from .asked import Asked
from .sentences import ADJECTIVES, Options, Sentence, is_negated, is_statement, without
from .things import SHAPES

_BOUNDS: dict[str, Callable[[int, int], bool]] = {
    "at least": operator.ge,
    "more than": operator.gt,
    "at most": operator.le,
    "up to": operator.le,
    "fewer than": operator.lt,
    "less than": operator.lt,
}
"""Words before a number that make it a bound; "no more than" is a negation of "more than"."""


def number(sentence: Sentence, asked: Asked, options: Options, step: float) -> set[str] | None:
    """Read a number of things of a shape, or of things that change."""
    text = sentence.text
    changes = asked.relation == "number of changes"
    noun = (
        "(?:thing|things|object|objects|shape|shapes|of the thing|of them)"
        if changes
        else asked.subject
    )
    named = {word for word in re.findall(r"\w+", text) if word in SHAPES}
    if changes and named and re.search(r"\b(?:chang\w*|turn\w*|new|another|other)\b", text):
        return (
            {str(len(asked.facts))} if named == set(asked.facts) and not is_negated(text) else None
        )
    if changes and re.search(r"\bnot\b.*\b(?:keep|stay|remain)", text):
        text = re.sub(r"\bnot\b", "", text)
    if re.search(r"\d+ or \d+|\bat the same\b", text):
        return None
    bound = re.search(rf"\b({'|'.join(_BOUNDS)}) (\d+)", text)
    if bound:
        value = int(bound[2])
        fits = {option for option in options if _BOUNDS[bound[1]](int(option), value)}
        return without(fits, options, is_negated(text))
    adjectives = rf"(?:(?:{ADJECTIVES}) )*"
    is_part = not changes and re.search(rf"\b\d+ of the {adjectives}{noun}\b", text)
    if is_part or re.search(r"\bmore\b.*\bthan\b", text):
        return None
    text = re.sub(r" , not \d+\b", "", text)
    mentions = changes or re.search(rf"\b{noun}\b", text)
    numbers = re.findall(r"(?<!frame )\b(\d+)\b", text)
    direct = re.findall(rf"\b(\d+) (?:(?:{ADJECTIVES}|different|more|of the|of) )*{noun}\b", text)
    adds_one = direct and re.search(rf"\b(?:a|an|another) {adjectives}{noun}\b", text)
    if adds_one or (not mentions and not is_statement(text, options)):
        return None
    if direct and not re.search(r"\b(?:total|altogether)\b", text):
        numbers = [str(sum(map(int, direct)))]
    foreign = re.search(
        rf"\b\d+ (?:(?:{ADJECTIVES}) )*(?!{noun})(?:{'|'.join(SHAPES)}|color|frame)s?\b", text
    )
    if (foreign and not direct) or len(set(numbers)) != 1 or int(numbers[0]) > 99:
        return None
    found = set(numbers) & set(options)
    return without(found, options, is_negated(text)) if found else None


def duration(sentence: Sentence, asked: Asked, options: Options, step: float) -> set[str] | None:
    """Read a number of frames or seconds, or the first and the last frame."""
    text = sentence.text
    if re.search(r"\d+ or \d+", text):
        return None
    span = re.search(r"\bframes? (\d+)\b.*?\b(?:to|through|until|till|and|-|ends)\b.*?(\d+)", text)
    if span:
        back = re.search(r"\bback (?:again )?(?:in|at|from)\b", text)
        numbers = [str(int(span[2]) - int(span[1]) + (0 if back else 1))]
    elif step and (seconds := re.search(r"(\d+(?:\.\d+)?) s(?:econds?)?\b", text)):
        numbers = [str(round(float(seconds[1]) / step))]
    else:
        numbers = re.findall(r"(?<!frame )\b(\d+)\b", text)
        stated = "frame" in text or re.search(r"\b(?:lasts?|duration)\b", text)
        if not stated and not is_statement(text, options):
            return None
    found = set(numbers) & set(options)
    if len(set(numbers)) != 1 or not found:
        return None
    return without(found, options, is_negated(text))
