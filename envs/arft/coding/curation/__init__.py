"""The curation step of ArftCoding."""
