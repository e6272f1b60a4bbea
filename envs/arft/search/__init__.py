"""Contains ArftSearch: searching for facts that an image does not show."""
