"""ArftSearch: what an image does not tell must be searched for."""
