"""Provides search engines with one interface: the web, a local corpus, or recorded answers.

::

    searcher = open_searcher("words:index")          # made by `visenv search build`
    searcher.search("who founded the Kastor works", 4)

A failure beyond the retries raises `ServiceError`, which aborts an episode: a failed search must
not count as a bad one.
"""

from visenv.search.corpus import Passage, Searcher
from visenv.search.engines import open_searcher

__all__ = ["Passage", "Searcher", "open_searcher"]
