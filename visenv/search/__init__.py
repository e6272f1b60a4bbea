"""Search engines behind one protocol: the web, a local corpus, or recorded answers.

::

    searcher = open_searcher("words:index")          # what `visenv search build` made
    searcher.search("who founded the Kastor works", 4)

Everything that fails beyond its retries raises `ServiceError`, which aborts an episode: a search
that could not be made is not a bad one.
"""

from visenv.search.engines import open_searcher
from visenv.search.passage import Passage, Searcher

__all__ = ["Passage", "Searcher", "open_searcher"]
