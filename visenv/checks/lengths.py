"""Implements checks 1 to 6: the number of paragraphs, sentences and words."""

from __future__ import annotations

from visenv.checks.arguments import AnyBounds, AnyRanges, Bounds, Ranges
from visenv.checks.sentences import split_sentences
from visenv.checks.text import (
    blocks,
    clean,
    is_verse,
    is_verse_arm,
    paragraphs,
    sentences,
    word_count,
    words_left_mmif,
)

# ------------------------------------------------------------------------------- 1: paragraphs


def paragraph_number_strict(response: str, arguments: Bounds) -> bool:
    """Count the blocks between blank lines that contain a letter or digit."""
    return _within(len(paragraphs(response)), arguments)


def paragraph_number_published(response: str, arguments: AnyBounds) -> bool:
    """Count the blocks between blank lines."""
    return _within(len(blocks(clean(response))), arguments)


# -------------------------------------------------------------------------------- 2: sentences


def sentence_number_strict(response: str, arguments: Bounds) -> bool:
    """Count Punkt's sentences with a letter or digit; a blank line always ends a sentence."""
    return _within(len(sentences(response)), arguments)


def sentence_number_published(response: str, arguments: AnyBounds) -> bool:
    """Count Punkt's sentences, which may extend across blank lines."""
    return _within(len(split_sentences(clean(response))), arguments)


# ----------------------------------------------------------------- 3: sentences of each paragraph


def each_paragraph_sentence_number_strict(response: str, arguments: Bounds) -> bool:
    """Count the sentences of each paragraph, or its lines if it is verse."""
    return all(_within(_sentences_or_lines(each), arguments) for each in paragraphs(response))


def each_paragraph_sentence_number_arm(response: str, arguments: AnyBounds) -> bool:
    """Count the sentences of each paragraph, or its lines if half of them end in a dash."""
    return all(
        _within(
            each.count("\n") + 1 if is_verse_arm(each) else len(split_sentences(each)), arguments
        )
        for each in blocks(clean(response))
    )


def each_paragraph_sentence_number_mmif(response: str, arguments: AnyBounds) -> bool:
    """Count the sentences of each paragraph, also in verse."""
    return all(_within(len(split_sentences(each)), arguments) for each in blocks(clean(response)))


# -------------------------------------------------- 4: sentences of each paragraph, range by range


def each_paragraph_sentence_number_list_strict(response: str, arguments: Ranges) -> bool:
    """Count as in check 3, with a separate range for each paragraph."""
    counted = [_sentences_or_lines(each) for each in paragraphs(response)]
    return _each_within(counted, arguments)


def each_paragraph_sentence_number_list_published(response: str, arguments: AnyRanges) -> bool:
    """Count the sentences of each paragraph, also in verse."""
    counted = [len(split_sentences(each)) for each in blocks(clean(response))]
    return _each_within(counted, arguments)


# ------------------------------------------------------------------------------------ 5: words


def word_count_strict(response: str, arguments: Bounds) -> bool:
    """Count words with a letter or digit: a dash between blanks is not a word."""
    return _within(word_count(response), arguments)


def word_count_arm(response: str, arguments: AnyBounds) -> bool:
    """Count the tokens between blanks."""
    return _within(len(response.split()), arguments)


def word_count_mmif(response: str, arguments: AnyBounds) -> bool:
    """Count the tokens between blanks after punctuation was removed."""
    return _within(words_left_mmif(response), arguments)


# ---------------------------------------------------------------------- 6: words of each paragraph


def each_paragraph_word_count_strict(response: str, arguments: Bounds) -> bool:
    """Count the words of each paragraph, as in check 5."""
    return all(_within(word_count(each), arguments) for each in paragraphs(response))


def each_paragraph_word_count_arm(response: str, arguments: AnyBounds) -> bool:
    """Count the words of each paragraph, as in check 5."""
    return all(_within(len(each.split()), arguments) for each in blocks(clean(response)))


def each_paragraph_word_count_mmif(response: str, arguments: AnyBounds) -> bool:
    """Count the words of each paragraph, as in check 5."""
    return all(_within(words_left_mmif(each), arguments) for each in blocks(clean(response)))


def _sentences_or_lines(paragraph: str) -> int:
    """Count the sentences of a paragraph in ``strict``, or its lines if it is verse."""
    return paragraph.count("\n") + 1 if is_verse(paragraph) else len(sentences(paragraph))


def _within(count: int, bounds: AnyBounds) -> bool:
    return bounds.lower_bound <= count <= bounds.upper_bound


def _each_within(counts: list[int], arguments: AnyRanges) -> bool:
    return len(counts) == len(arguments.ranges) and all(
        lower <= count <= upper
        for count, (lower, upper) in zip(counts, arguments.ranges, strict=True)
    )
