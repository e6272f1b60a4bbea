"""Loads VSR, TallyQA and GQA, and the samples that were curated from them."""
