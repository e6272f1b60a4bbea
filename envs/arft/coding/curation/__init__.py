"""Contains the curation step of ArftCoding."""
