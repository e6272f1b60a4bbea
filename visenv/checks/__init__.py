r"""The 19 text checks of MM-IFEngine and ARM-Thinker: whether a response keeps to a constraint.

::

    from visenv.checks import CHECKS, check

    check(
        "check_whether_response_word_count_in_range",
        response,
        {"lower_bound": 80, "upper_bound": 120},
    )

Three dialects. ``strict``, the default, is what the constraint says. ``arm`` and ``mmif`` answer
what the public code of ARM-Thinker and of MM-IFEngine (VLMEvalKit's copy) answers, to be comparable
with what they published. The numbers are those of the papers' table and of `CHECKS`.

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

Each dialect has its own rules for arguments (`visenv.checks.arguments`). ``strict`` refuses what
can only be a mistake; ``arm`` and ``mmif`` answer as the public code does: bounds in the wrong
order or below zero fit no number, an empty list of keywords or substrings is kept, and an empty
text occurs everywhere, begins and ends everything, and as a keyword counts boundaries of words.

In every dialect bounds are inclusive, and "each …" is true of a text without any.

Sentences are split by NLTK's Punkt, with its trained parameters where they are installed
(``python -m nltk.downloader punkt_tab``), otherwise with a small set of ours; `sentence_splitter`
tells which. Scores that are to be compared with published ones need the trained set. Punkt takes
about a millisecond for 200 words, and NLTK seconds to be imported, by the first check of sentences.
A text with more than 10,000 marks that may end a sentence raises a `DataError`.
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
