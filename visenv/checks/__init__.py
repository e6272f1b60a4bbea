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
what                strict                       arm                        mmif
=================== ============================ ========================== ========================
text                lines stripped               stripped for 1-8, 15-19    stripped for 1-4, 6,
                                                                            9-12, 15, 16
paragraph           between blank lines, with a  between blank lines        as arm
                    letter or digit
sentence            Punkt's with a letter or     Punkt's, over blank lines  as arm
                    digit; a blank line or a     and list items
                    list item ends it
verse (3, 4)        lines count: short, most     3 only: half of the lines  sentences count
                    begin with a capital or end  end in a dash
                    in a dash
word (5, 6)         between blanks, with a       between blanks             as arm, when all but
                    letter or digit                                         ``\w . -`` is dropped
substring (7, 8)    any case                     any case                   this case
affix (9-14)        any case; punctuation at     any case; full stops at    this case, as it is
                    the edge is looked past      the edge dropped
affix "!" (9-14)    has to be there              has to be there            has to be there
affix "." (9-14)    has to be there              always true                has to be there
keyword (15, 16)    any case, no letter or       any case, between word     any case, between word
                    digit beside it; broken      boundaries; ``C++`` never, boundaries; ``C++`` and
                    lines and repetitions do     ``#cat`` also in           ``#cat`` hardly ever
                    not matter                   ``#cats``
percentage (17)     with decimals or whole       decimals only, no blank    a whole one always fails
                                                 before ``%``
number (18)         with decimals or whole; not  decimals, also of          with decimals or whole,
                    in names (A4, GPT-4),        ``v1.2.3``                 also of ``v1.2.3``
                    versions, list markers
no number (19)      as 18, list markers too:     digits between word        as arm, but not beside a
                    ``4.`` is one, ``covid-19``  boundaries: ``covid-19``   point: ``4.`` at a
                    is not                       is one, ``3rd`` is not     sentence's end is none
=================== ============================ ========================== ========================

Each dialect has its own rules for arguments (`visenv.checks.arguments`). ``strict`` refuses
arguments that can only be a mistake. ``arm`` and ``mmif`` accept them, as the public code does: no
number satisfies bounds in the wrong order or below zero, every response satisfies an empty list of
substrings (check 7) or keywords (check 15), and an empty text occurs in every text, at its
beginning and its end, and as a keyword counts the boundaries of words.

In every dialect bounds are inclusive, and checks of "each …" pass for a text without any.

Sentences are split by NLTK's Punkt, with its trained parameters if they are installed (``python -m
nltk.downloader punkt_tab``), otherwise with a small set of visenv; `sentence_splitter` returns
which are used. Scores for comparison with published scores need the trained set. Punkt takes about
a millisecond for 200 words, and the first check of sentences imports NLTK, which takes seconds. A
text with more than 10,000 marks that may end a sentence raises a `DataError`.
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
