"""Provides BM25 and a store of vectors for `visenv.documents` and `visenv.search`."""
