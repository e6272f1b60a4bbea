"""Implements the checks of substrings: texts that must not occur, prefixes and suffixes.

``strict`` ignores punctuation at the edge of the text, unless the required text contains it:
``**Hello** there`` begins with "Hello", but ``cat`` does not begin with "#cat".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from visenv.checks.arguments import (
    Affix,
    AnyAffix,
    AnySubstring,
    AnySubstrings,
    Substring,
    Substrings,
)
from visenv.checks.sentences import split_sentences
from visenv.checks.text import blocks, clean, paragraphs, sentences
from visenv.text.normalize import canonical

_EDGE = re.compile(r"[\W_]*+")

_SENTENCE_MARKS = " \t\n.…!?,;:"

# ---------------------------------------------------------------------------- 7: none of several


def contains_none_strict(response: str, arguments: Substrings) -> bool:
    """Check case-insensitively, also inside words, in the canonical form (``don’t``, NFC)."""
    text = canonical(response).casefold()
    return not any(canonical(each).casefold() in text for each in arguments.substrings)


def contains_none_arm(response: str, arguments: AnySubstrings) -> bool:
    """Check case-insensitively, also inside words."""
    text = clean(response).lower()
    return not any(substring.lower() in text for substring in arguments.substrings)


def contains_none_mmif(response: str, arguments: AnySubstrings) -> bool:
    """Check case-sensitively, also inside words."""
    return not any(substring in response for substring in arguments.substrings)


# ---------------------------------------------------------------------------------- 8: not the one


def does_not_contain_strict(response: str, arguments: Substring) -> bool:
    """Check case-insensitively, also inside words, in the canonical form (``don’t``, NFC)."""
    return canonical(arguments.substring).casefold() not in canonical(response).casefold()


def does_not_contain_arm(response: str, arguments: AnySubstring) -> bool:
    """Check case-insensitively, also inside words."""
    return arguments.substring.lower() not in clean(response).lower()


def does_not_contain_mmif(response: str, arguments: AnySubstring) -> bool:
    """Check case-sensitively, also inside words."""
    return arguments.substring not in response


# -------------------------------------------------------------------- 9 and 12: each sentence


def each_sentence_begins_strict(response: str, arguments: Affix) -> bool:
    """Check the beginning of each sentence case-insensitively, ignoring punctuation."""
    return _all(begins, sentences(response), arguments)


def each_sentence_begins_arm(response: str, arguments: AnyAffix) -> bool:
    """Check the beginning of each sentence case-insensitively, ignoring full stops, in raw text."""
    return _all(begins_arm, split_sentences(response), arguments)


def each_sentence_begins_mmif(response: str, arguments: AnyAffix) -> bool:
    """Check the beginning of each sentence literally."""
    return _all(str.startswith, split_sentences(clean(response)), arguments)


def each_sentence_ends_strict(response: str, arguments: Affix) -> bool:
    """Check the end of each sentence case-insensitively, ignoring punctuation."""
    return _all(ends, sentences(response), arguments)


def each_sentence_ends_arm(response: str, arguments: AnyAffix) -> bool:
    """Check the end of each sentence case-insensitively, ignoring full stops, in raw text."""
    return _all(ends_arm, split_sentences(response), arguments)


def each_sentence_ends_mmif(response: str, arguments: AnyAffix) -> bool:
    """Check the end of each sentence literally, including the full stop."""
    return _all(str.endswith, split_sentences(clean(response)), arguments)


# ------------------------------------------------------------------ 10 and 11: each paragraph


def each_paragraph_begins_strict(response: str, arguments: Affix) -> bool:
    """Check the beginning of each paragraph case-insensitively, ignoring punctuation."""
    return _all(begins, paragraphs(response), arguments)


def each_paragraph_begins_arm(response: str, arguments: AnyAffix) -> bool:
    """Check each paragraph's beginning case-insensitively, ignoring full stops, in raw text."""
    return _all(begins_arm, blocks(response), arguments)


def each_paragraph_begins_mmif(response: str, arguments: AnyAffix) -> bool:
    """Check the beginning of each paragraph literally."""
    return _all(str.startswith, blocks(clean(response)), arguments)


def each_paragraph_ends_strict(response: str, arguments: Affix) -> bool:
    """Check the end of each paragraph case-insensitively, ignoring punctuation."""
    return _all(ends, paragraphs(response), arguments)


def each_paragraph_ends_arm(response: str, arguments: AnyAffix) -> bool:
    """Check each paragraph's end case-insensitively, ignoring full stops, in raw text."""
    return _all(ends_arm, blocks(response), arguments)


def each_paragraph_ends_mmif(response: str, arguments: AnyAffix) -> bool:
    """Check the end of each paragraph literally, including the full stop."""
    return _all(str.endswith, blocks(clean(response)), arguments)


# ------------------------------------------------------------------- 13 and 14: whole response


def response_begins_strict(response: str, arguments: Affix) -> bool:
    """Check the beginning of the response case-insensitively, ignoring punctuation."""
    return begins(response, arguments.substring)


def response_begins_arm(response: str, arguments: AnyAffix) -> bool:
    """Check the beginning of the response case-insensitively, ignoring full stops."""
    return begins_arm(response, arguments.substring)


def response_begins_mmif(response: str, arguments: AnyAffix) -> bool:
    """Check the beginning of the response literally."""
    return response.strip().startswith(arguments.substring)


def response_ends_strict(response: str, arguments: Affix) -> bool:
    """Check the end of the response case-insensitively, ignoring punctuation."""
    return ends(response, arguments.substring)


def response_ends_arm(response: str, arguments: AnyAffix) -> bool:
    """Check the end of the response case-insensitively, ignoring full stops."""
    return ends_arm(response, arguments.substring)


def response_ends_mmif(response: str, arguments: AnyAffix) -> bool:
    """Check the end of the response literally, including the full stop."""
    return response.strip().endswith(arguments.substring)


# ------------------------------------------------------------------------ comparing two texts


def begins(text: str, affix: str) -> bool:
    """Return whether a text begins with `affix` by the rules of ``strict``, in any case.

    Both are compared in the canonical form (`visenv.text.normalize.canonical`).

    Marks that end sentences are removed from `affix`, unless it consists only of them.
    """
    return _starts_past_edge(canonical(text).casefold(), _wanted(affix))


def ends(text: str, affix: str) -> bool:
    """Return whether a text ends with `affix` by the rules of ``strict``."""
    return _starts_past_edge(canonical(text).casefold()[::-1], _wanted(affix)[::-1])


def begins_arm(text: str, affix: str) -> bool:
    """Return whether a text begins with `affix`, in any case, without full stops at the ends."""
    return _normalized_arm(text).startswith(_normalized_arm(affix))


def ends_arm(text: str, affix: str) -> bool:
    """Return whether a text ends with `affix`, in any case, without full stops at the ends."""
    return _normalized_arm(text).endswith(_normalized_arm(affix))


def _all(matches: Callable[[str, str], bool], parts: Iterable[str], arguments: AnyAffix) -> bool:
    return all(matches(part, arguments.substring) for part in parts)


def _wanted(affix: str) -> str:
    folded = canonical(affix).casefold()
    return folded.strip(_SENTENCE_MARKS) or folded.strip()


def _starts_past_edge(text: str, wanted: str) -> bool:
    """Return whether only characters other than letters and digits come before `wanted`."""
    edge, own_edge = _edge(text), _edge(wanted)
    if own_edge == len(wanted):  # only punctuation, which must be in the edge
        return wanted in text[:edge]
    return edge >= own_edge and text.startswith(wanted, edge - own_edge)


def _edge(text: str) -> int:
    """Return the number of characters before the first letter or digit."""
    found = _EDGE.match(text)
    return found.end() if found else 0


def _normalized_arm(text: str) -> str:
    return text.strip().lower().strip(".…").strip()
