"""Determines which option of a multiple-choice question a free-form answer selects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from string import ascii_uppercase
from typing import Literal

from visenv.rewards.vqa import is_too_long

Options = Mapping[str, str]

_LETTER_ALONE = re.compile(r"[^A-Za-z0-9]*([A-Za-z])[^A-Za-z0-9]*")
_LETTER_FIRST = re.compile(r"[\s\"'*(\[]{0,8}([A-Za-z])\s?[)\].:](?!\s*(?:or|and)\b)")
_AFTER_CUE = re.compile(
    r"\b(?i:answer|option|choice)\b(?:\s+is\b)?\s?:?\s?[\"'*(\[]{0,4}"
    r"([A-Z]|[a-z](?!\s+\w))(?![A-Za-z0-9'])(?!\s?(?:/|,|or\b|and\b)\s?[A-Za-z](?![A-Za-z0-9']))"
)
_IN_BRACKETS = re.compile(r"[(\[]([A-Z])[)\]]")
_ARTICLE = r"A\s+(?!(?:or|and|is|because|since|as)\b)[a-z]"
_NEGATED = re.compile(
    r"(?:\b[Nn](?:ot|either|or)\b|n't\b)\s{1,4}(?:(?:the\s)?(?:answer|option|choice)\s{1,4})?"
    rf"[\"'*(\[]{{0,4}}(?!{_ARTICLE})[A-Z](?![A-Za-z0-9'])"
)
_CAPITAL = re.compile(rf"(?<![A-Za-z0-9'])(?!{_ARTICLE})([A-Z])(?![A-Za-z0-9'])")


def choice_score(
    answer: str,
    label: str,
    options: Sequence[str],
    compat: Literal["r1_vlm"] | None = None,
) -> float:
    """Return 1 if `answer` selects the option with the letter `label`, otherwise 0.

    Args:
        answer: The answer of the policy, without its tags.
        label: The right letter.
        options: The options' texts, in the order of their letters.
        compat: ``"r1_vlm"`` joins all upper-case letters of the answer and compares them with the
            label, as that code does for V*Bench: ``"The answer is A"`` gives ``"TA"`` and the score
            0.
    """
    if is_too_long(answer):
        return 0.0
    if compat:
        return float("".join(filter(str.isupper, answer)) == label)
    return float(chosen_letter(answer, options) == label)


def chosen_letter(answer: str, options: Sequence[str]) -> str | None:
    """Return the letter of the option that `answer` selects, or None if that is unclear.

    Letters and option texts after "not" are ignored ("It is not (A)"). Then the result is that of
    the first of these rules that gives the letter of an option:

    1. the answer is a letter, with any punctuation around it: ``A``, ``(a)``, ``"B".``;
    2. the answer is the text of an option;
    3. the answer begins with a letter and a punctuation mark: ``B. red``, ``(B) red``;
    4. a letter follows ``answer``, ``option`` or ``choice``: the last such letter;
    5. a letter is in brackets, and all letters in brackets are equal;
    6. a capital letter is a separate word, and all such letters are equal; ``A`` before a word is
       an article (``A red car``);
    7. the text of exactly one option occurs in the answer, as whole words.

    The time is linear in the length of `answer`. An answer longer than
    `visenv.rewards.vqa.LONGEST_ANSWER` selects no option.
    """
    if is_too_long(answer):
        return None
    lettered = dict(zip(ascii_uppercase, options, strict=False))
    stated = _NEGATED.sub(" ", answer).strip()
    picks = (rule(stated, lettered) for rule in _RULES)
    return next((letter for letter in picks if letter in lettered), None)


def _letter_alone(answer: str, options: Options) -> str | None:
    found = _LETTER_ALONE.fullmatch(answer)
    return found[1].upper() if found else None


def _option_alone(answer: str, options: Options) -> str | None:
    given = _words(answer)
    return _only(letter for letter, option in options.items() if _words(option) == given)


def _letter_first(answer: str, options: Options) -> str | None:
    found = _LETTER_FIRST.match(answer)
    return found[1].upper() if found else None


def _after_cue(answer: str, options: Options) -> str | None:
    found = [letter.upper() for letter in _AFTER_CUE.findall(answer)]
    return next((letter for letter in reversed(found) if letter in options), None)


def _in_brackets(answer: str, options: Options) -> str | None:
    return _only(letter for letter in _IN_BRACKETS.findall(answer) if letter in options)


def _capital_alone(answer: str, options: Options) -> str | None:
    return _only(letter for letter in _CAPITAL.findall(answer) if letter in options)


def _option_within(answer: str, options: Options) -> str | None:
    given = f" {_words(answer)} "
    texts = {letter: f" {_words(option)} " for letter, option in options.items()}
    for text in sorted(texts.values(), key=len, reverse=True):
        given = given.replace(f" not{text}", " ") if text.strip() else given
    within = {letter: text for letter, text in texts.items() if text.strip() and text in given}
    # "dark red" contains "red": an option is ignored if a longer option that was found contains it.
    return _only(
        letter
        for letter, text in within.items()
        if not any(text != other and text in other for other in within.values())
    )


_RULES: tuple[Callable[[str, Options], str | None], ...] = (
    _letter_alone,
    _option_alone,
    _letter_first,
    _after_cue,
    _in_brackets,
    _capital_alone,
    _option_within,
)


def _words(text: str) -> str:
    """Return lower-case words and numbers, separated by one blank."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _only(letters: Iterable[str]) -> str | None:
    distinct = set(letters)
    return distinct.pop() if len(distinct) == 1 else None
