"""Retrieval that `visenv.documents` and `visenv.search` share: BM25, and a store of vectors."""
