r"""Implements the 19 text checks of MM-IFEngine and ARM-Thinker for constraints on a response.

::

    from visenv.checks import CHECKS, check

    check(
        "check_whether_response_word_count_in_range",
        response,
        {"lower_bound": 80, "upper_bound": 120},
    )

There are three dialects. ``strict``, the default, checks the constraint as it is worded. ``arm``
and ``mmif`` return the results of the public code of ARM-Thinker and of MM-IFEngine (VLMEvalKit's
copy), for comparisons with their published numbers. The numbers of the checks are those of the
papers' table and of `CHECKS`.

=================== ============================ ========================== ========================
rule                strict                       arm                        mmif
=================== ============================ ========================== ========================
text                lines stripped               stripped for 1-8, 15-19    stripped for 1-4, 6,
                                                                            9-12, 15, 16
paragraph           between blank lines, with a  between blank lines        as arm
                    letter or digit
sentence            Punkt's with a letter or     Punkt's, over blank lines  as arm
                    digit; a blank line or a     and list items
                    list item ends it
verse (3, 4)        lines are counted if short   lines are counted if half  sentences are counted
                    and most begin with a        of them end in a dash; in
                    capital or end in a dash     check 3 only
word (5, 6)         between blanks, with a       between blanks             as arm, after all except
                    letter or digit                                         ``\w . -`` is removed
substring (7, 8)    any case                     any case                   same case
affix (9-14)        any case; punctuation at     any case; full stops at    same case, all
                    the edge is ignored          the edge are removed       characters
affix "!" (9-14)    required                     required                   required
affix "." (9-14)    required                     always true                required
keyword (15, 16)    any case, no adjacent        any case, between word     any case, between word
                    letter or digit; line        boundaries; never          boundaries; ``C++`` and
                    breaks and repeated          ``C++``; ``#cat`` also in  ``#cat`` almost never
                    keywords are ignored         ``#cats``
percentage (17)     with decimals or whole       decimals only, no blank    a whole one always fails
                                                 before ``%``
number (18)         with decimals or whole; not  decimals, also of          with decimals or whole,
                    in names (A4, GPT-4),        ``v1.2.3``                 also of ``v1.2.3``
                    versions, list markers
no number (19)      as 18, and list markers:     digits between word        as arm, but not next to
                    ``4.`` is a number,          boundaries: ``covid-19``   a point: ``4.`` at the
                    ``covid-19`` is not          has one, ``3rd`` has none  sentence end is none
=================== ============================ ========================== ========================

Each dialect has its own rules for arguments (`visenv.checks.arguments`). ``strict`` refuses
arguments that can only be a mistake. ``arm`` and ``mmif`` accept them, as the public code does: no
number satisfies bounds in the wrong order or below zero, every response satisfies an empty list of
substrings (check 7) or keywords (check 15), and an empty text occurs in every text, at its
beginning and its end, and as a keyword counts the boundaries of words.

``strict`` compares substrings, affixes and keywords in canonical form
(`visenv.text.normalize.canonical`), so that ``don’t`` is ``don't``.

In every dialect bounds are inclusive, and checks of "each …" pass for a text without any.

Sentences are split by NLTK's Punkt, with its trained parameters if they are installed
(``python -m nltk.downloader punkt_tab``), otherwise with a small set of visenv; `sentence_splitter`
returns which are used. Scores for comparison with published scores need the trained set. Punkt
takes about a millisecond for 200 words, and the first check of sentences imports NLTK, which takes
seconds. A text with more than 10,000 marks that may end a sentence raises a `DataError`.
"""

from visenv.checks.sentences import SentenceSplitter, sentence_splitter, split_sentences
from visenv.checks.table import CHECKS, DIALECTS, Dialect, TextCheck, check, find_check

__all__ = [
    "CHECKS",
    "DIALECTS",
    "Dialect",
    "SentenceSplitter",
    "TextCheck",
    "check",
    "find_check",
    "sentence_splitter",
    "split_sentences",
]
