"""Determines which option of a multiple-choice question a free-form answer selects."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_letters, ascii_uppercase
from typing import Literal

from visenv.rewards.vqa import is_too_long
from visenv.text.claims import claimed_label, claimed_list
from visenv.text.mentions import NAME, ONE, SPACE, mention
from visenv.text.normalize import ARTICLES, NUMBERS, comparison_tokens, without_markup
from visenv.text.replies import stated
from visenv.text.stance import ClaimPhrases
from visenv.text.words import CJK

_OUTSIDE = "\"'.,:;!?()[]{}<>*_~-=|/\\→∴✅✓✔☑👉👍… \t\n"
"""Characters around a letter that mean nothing; ``C++`` and ``C#`` are no letters."""

_CLOSING = "\"'*_` )\n"
"""Characters that may follow the last punctuation mark."""

_WORD = rf"[^\W{CJK}]"
_LETTER = re.compile(
    rf"(?<!{_WORD})(?<![/@\\&#$€£%^])(?<!\w[.'-])"
    rf"(?:([(\[])\s?([A-Za-z])\s?[)\]]|([A-Za-z]))"
    rf"(?!{_WORD})(?!['@/\\-]\w)(?![+#*=^%°<>]|\.\w)(?!\s(?:minus|plus)(?![\w\s]*[A-Z]))"
)
"""A letter that may be a label: group 2 if it is in brackets, group 3 if not."""

_NAMED = re.compile(r"\b((?:option|choice|answer)s?)[-_](?=[A-Z]\b)", re.IGNORECASE)
"""A name with a hyphen or an underscore before the letter: ``Option-B``."""

_JOINED = re.compile(rf"(?<!{_WORD})(?<![/.@])[A-Za-z](?:\s?[/&+|]\s?[A-Za-z])+(?![\w/@])")
"""Letters with signs between them: ``A/B``."""

_VERB = re.compile(
    r"\s+(?:is|was|isn't|wasn't|because|since|as|and|or|nor|but|seems|appears|looks|fits|matches"
    r"|best|describes|corresponds|rather|instead|not|then|so|over|than|only|fails|doesn't|does|cannot"
    r"|can't|can|might|may|could|would|won't|must|remains|oder|ou|et|und|y)\b"
)
"""Words after "A" or "I" that show that it is a label."""

_IN_PROSE = re.compile("[ \\t]+(?:[^\\W\\d_]{2}|[^\\W\\d_A-Z]|[\ue200-\ue2ff])")
"""Words after "A" or "I" that show, without `_VERB`, that it is an article or a pronoun."""

_OF_A_PERSON = re.compile(r"\s+(?:would|could|can|may|must|might|cannot|can't|won't)\b(?! be\b)")
"""Verbs after "I" that show that it is a pronoun."""

_PRIME = re.compile(r"'(?!\w)")
"""An apostrophe after a letter, which is no label (``A'``) unless a `_QUOTE` precedes it."""

_QUOTE = re.compile(r"(?<!\w)'")
_SIGN = re.compile(r"[/&+|]")
_LONGEST_OPTION = 1000
_RUN = re.compile(r"(?!\w*(\w)\w*\1)[A-I]{1,9}|[A-Z]|[0-9]{1,8}|[a-z]")
"""A whole answer of labels without separators: ``ACD``."""

_EACH = re.compile(r"\b([A-Z])\)?\s(?:is|are)\s(?:also\s)?(?:correct|right|true)\b")
"""``A is right. C is right`` selects both."""

_ONE_LABEL = r"[(\[\"']{0,2}[A-Za-z0-9][)\]\"'.]{0,2}"
_SEPARATED = re.compile(
    rf"{_ONE_LABEL}(?:(?:\s*[,;/&+|、和]\s*(?:and\s)?|\s+(?:and\s)?){_ONE_LABEL}){{1,9}}"
)
"""A whole answer of labels with separators: ``A, C``, ``(A) and (C)``."""

_ANSWERED_RUN = re.compile(
    r"((?:answers?|choices?|答案|选|選)\s?(?:is|are|:|是|为)?\s?)([A-I]{2,6})(?![A-Za-z])",
    re.IGNORECASE,
)
"""Letters without separators after "answer:"; three-letter words are no answer elsewhere."""

_WORDS_OF_NUMBERS = {
    digits: word for word, digits in NUMBERS.items() if word not in ("zero", "one")
}
"""Numbers that may be written as words; "one" is mostly a pronoun."""

_CUE = re.compile(
    r"\b(?:(?:vote|pick|choice|point|win) goes to"
    r"|answers?|ans|choice|choose|chose|chosen|pick|picked|select|selected|selection|conclusion"
    r"|result|solution|decision|verdict|best|closest|accurate|correct|right(?=:)"
    r"|right (?:option|one|letter|response)|(?:go|opt|opted|vote|settle|settled|decide|decided) for"
    r"|(?:settle|settled|settling|decide|decided) on|(?:go|going|went|stick|sticking) with|vote"
    r"|stick to|bet on|(?:this|that|which|it) means|am (?:choosing|picking|selecting)|confirms"
    r"|leads (?:me |us )?to|arrive at|money (?:is )?on|give me|respond|final(?=\s?$)"
    r"|prefer|favou?r|lean(?:s|ing)?(?: to(?:wards?)?)?|inclined to|points? to|match(?:es)?|fits"
    r"|gives|mak(?:es|ing)|corresponds to|consistent with|supports|leaving|remains|must be)\b"
    r"|[=-]>|[→⇒]"
)
"""Phrases before an option that select it."""

_FILLER = (
    r"(?:(?:is|are|be|has be|must be|should be|would be|seems|appears|looks|clearly|definitely"
    r"|probably|likely|certainly|surely|obviously|exactly|perfect|completely|totally|most|more"
    r"|very|only|best|the|a|my|option)\s)*"
)
"""Words that may stand between an option and a phrase of `_AFFIRMED`."""

_END = rf"{SPACE}$"
_AFFIRMED = re.compile(
    rf"^{SPACE}{_FILLER}(?:"
    r"(?:correct|true|answer|best|better|accurate|plausible|convincing|appropriate|suitable"
    r"|reasonable|logical|fitting|consistent|closest|choice|wins|makes sense)\b"
    r"|what\b(?! (?:most|many|some|people|they|others?|everyone|everybody|someone|he|she|one)\b)"
    r"|right\b(?! (?:of|next|above|below|behind|beside|in|at|on|side|hand|by|to)\b)"
    rf"|it{_END}|(?:(?<=the )|(?<=only ))(?:one|option)"
    rf"(?= that (?:best )?(?:fits|matches)| left\b| remaining\b|{_END})"
    rf"|(?:match(?:es)?|fits?|corresponds?)(?= (?:it|to|the|this|best|well|perfectly)\b|{_END})"
    r"|(?:spot on|nails it|gets my vote)\b|(?:(?<=perfect )|(?<=best )|(?<=closest ))match\b"
    r"|(?:accurately |correctly )?describes (?:it|the (?:image|picture|scene|photo|figure))\b"
    r"|[✅✓✔☑👍])"
)
"""Phrases after an option that select it."""

_CORRECTED = re.compile(
    r"\b(?:wait|scratch that|correction|actually|mistake|i was wrong)\b|\bno[,.:]", re.IGNORECASE
)
"""Words after a box that may correct its content."""

_VALUED = re.compile(r"\b(?:final |correct |right |best |the |my )?answer\s?(?:is|:|=|-+>)+:?\s?")
"""The beginning of a declaration that must name an option."""

_PAIR = re.compile(rf"\W*?({NAME})[)\].:]+\s*({ONE})[\s.!*_]*")
"""A label and the text of an option, which may contradict each other: ``(B) blue``."""

_LIST_END = re.compile(r"(?<![A-Za-z])\(?[A-Z]\)?(?:;\s*\(?[A-Z]\)?)+(?=[.\s]*\Z)")
"""Letters between semicolons at the end of an answer."""

_COMPUTED = re.compile(rf"{ONE}[^,.;:]{{0,20}}\b(?:minus|plus|times|divided by|multiplied by)\b")
"""A number in a calculation or a ratio: ``5 times as large``."""

PHRASES = ClaimPhrases(declaring=_CUE, affirming=_AFFIRMED, valued=_VALUED, opening=_COMPUTED)
"""The phrases that select an option."""


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
    r"""Return the letter of the option that `answer` selects, or None if that is unclear.

    1. If the answer contains a box (``\boxed{}``), ``<answer>`` tags or a JSON object with the
       answer, only the last of them counts (`visenv.text.replies`), unless the text after it
       corrects it.
    2. An answer that is only a letter, with any punctuation around it (``A``, ``(a)``, ``"B".``),
       or only the text of one option selects that option. Signs count: ``-3`` is not ``3``.
    3. Otherwise, `visenv.text.claims` finds the letter or the text that the answer asserts, with
       negations, doubts and corrections: "It isn't A, it's B" selects B, and "A or B" nothing. "A"
       and "I" before a word are an article and a pronoun.

    An answer longer than `visenv.rewards.vqa.LONGEST_ANSWER` selects no option. The time is linear.
    """
    if is_too_long(answer):
        return None
    lettered = tuple(options)[: len(ascii_uppercase)]
    said = stated(answer)
    label = _chosen(said.text, lettered)
    corrected = label is not None and _CORRECTED.search(said.after) is not None
    if corrected or (label is None and said.after):
        before = f"The answer is {mention(label)}." if corrected else ""
        after = before + _marked(without_markup(said.after), lettered, len(lettered))
        label = claimed_label(after, PHRASES._replace(bare=False))
    return None if label is None or label >= len(lettered) else ascii_uppercase[label]


def chosen_letters(answer: str) -> str:
    """Return all letters that an answer selects together, sorted; ``""`` if that is unclear.

    ``A, C``, ``AC``, ``A and C`` and ``(A), (C)`` select two letters; ``A or C`` selects none.
    Digits count as letters. Otherwise, the rules are those of `chosen_letter`.
    """
    if is_too_long(answer):
        return ""
    plain = without_markup(stated(answer).text)
    alone = plain.strip(_OUTSIDE)
    if plain.rstrip(_CLOSING).endswith("?") or alone.upper() == "N/A":
        return ""
    if _RUN.fullmatch(alone) or _SEPARATED.fullmatch(alone):
        return "".join(sorted({*filter(_is_label, alone.replace("and", "").upper())}))
    each = {*_EACH.findall(plain)}
    if len(each) > 1 and not _CORRECTED.search(plain):
        return "".join(sorted(each))
    plain = _LIST_END.sub(lambda found: found[0].replace(";", ","), plain)
    plain = plain.replace(")(", ") and (").replace(") (", ") and (")
    spaced = _ANSWERED_RUN.sub(lambda found: found[1] + ", ".join(found[2]), plain)
    labels = claimed_list(_marked(spaced, (), len(ascii_uppercase)), PHRASES)
    return "".join(ascii_uppercase[label] for label in labels)


def _is_label(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _chosen(text: str, options: tuple[str, ...]) -> int | None:
    """Return the index of the option that a text selects, or None."""
    plain = without_markup(text)
    alone = plain.strip(_OUTSIDE)
    asked = plain.rstrip(_CLOSING).endswith("?")
    if len(alone) == 1 and alone in ascii_letters and not plain.startswith("!") and not asked:
        return ascii_uppercase.index(alone.upper())
    for exact in (True, False):
        given = _compared(plain, exact)
        same = [place for place, each in enumerate(_tokens(options, exact)) if each == given]
        question = asked and same and not options[same[0]].rstrip(_CLOSING).endswith("?")
        if given and same and not question:
            return same[0] if len(same) == 1 else None
    marked = _marked(plain, options, len(options))
    pair = _PAIR.fullmatch(marked)
    if pair and ord(pair[1]) % 0x100 != ord(pair[2]) % 0x100:
        return None
    return claimed_label(marked, PHRASES)


@lru_cache(maxsize=256)
def _tokens(options: tuple[str, ...], exact: bool) -> list[list[str]]:
    return [_compared(option, exact) for option in options]


def _compared(text: str, exact: bool) -> list[str]:
    """Return the tokens of a text; if not `exact`, small numbers have digits."""
    tokens = comparison_tokens(text, exact=exact)
    return tokens if exact else [NUMBERS.get(token, token) for token in tokens]


def _marked(plain: str, options: tuple[str, ...], count: int) -> str:
    """Return the text with a character for each mention of an option, by its text or letter."""
    pattern = _texts(options)
    if pattern is not None:
        plain = pattern.sub(lambda found: mention(_label(found, options), "text"), plain)
    plain = _NAMED.sub(r"\1 ", plain)
    plain = _JOINED.sub(lambda found: _SIGN.sub(r" \g<0> ", found[0]), plain)
    return _LETTER.sub(lambda found: _letter(found, count), plain)


def _letter(found: re.Match[str], count: int) -> str:
    """Return the character for a letter, or the text itself if it is no label."""
    letter = found[2] or found[3]
    label = ascii_uppercase.index(letter.upper())
    before = found.string[max(0, found.start() - 40) : found.start()]
    rest = found.string[found.end() : found.end() + 40]
    if _PRIME.match(rest) and not _QUOTE.search(before):
        return found[0]
    if letter in "Ii" and not found[1] and (label >= count or _OF_A_PERSON.match(rest)):
        return found[0]
    is_word = letter in "AaIi" and not found[1]
    if is_word and _IN_PROSE.match(rest) and not _VERB.match(rest):
        return found[0]
    if label >= count and letter.islower():
        return found[0]
    return mention(label if label < count else None, "marked" if found[1] else "bare")


def _label(found: re.Match[str], options: tuple[str, ...]) -> int | None:
    """Return the index of the option whose text was found; None if two have that text."""
    given = _key(found[0])
    places = [place for place, option in enumerate(options) if _key(option) == given]
    return places[0] if len(places) == 1 else None


@lru_cache(maxsize=1024)
def _key(text: str) -> list[str]:
    """Return the tokens of a text without an article at its beginning."""
    tokens = _compared(text, exact=False)
    return tokens[1:] if len(tokens) > 1 and tokens[0] in ARTICLES else tokens


@lru_cache(maxsize=256)
def _texts(options: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return a pattern for the texts of options, the longest first; None without any."""
    written = {
        _pattern(tokens): len(tokens)
        for option in options
        if len(option) <= _LONGEST_OPTION and (tokens := comparison_tokens(option, exact=True))
    }
    if not written:
        return None
    longest = sorted(written, key=lambda each: (written[each], len(each)), reverse=True)
    return re.compile("|".join(longest), re.IGNORECASE)


def _pattern(tokens: list[str]) -> str:
    """Return a pattern for the text of an option that is not part of a longer word or number."""
    article = ""
    if len(tokens) > 1 and tokens[0] in ARTICLES:
        article, tokens = rf"(?:\b{tokens[0]}\s)?", tokens[1:]
    first, last = tokens[0][0], tokens[-1][-1]
    before, after = "", r"(?![+#])"
    if re.match(_WORD, first) or first in ".+-":
        before = r"(?<!\w)(?<!\w[-'])"
    if first.isdigit() or first in ".+-":
        before += r"(?<![$€£+./^<>≤≥≠~-])(?<![<>≤≥≠~]\s)(?<!\d[,:])"
    if re.match(_WORD, last):
        after += r"(?!\w)(?!-\w)"
    if last.isdigit():
        after += r"(?![%°/^])(?![.,:-]\d)"
    return before + article + r"[\s-]?".join(map(_token_pattern, tokens)) + after


def _token_pattern(token: str) -> str:
    """Return a pattern for a token; a small number may be written in digits or as a word."""
    digits = NUMBERS.get(token, token)
    word = _WORDS_OF_NUMBERS.get(digits)
    return re.escape(token) if word is None else rf"(?:{digits}|{word}(?!\w))"
