"""The evaluation of the paper: answers extracted, judged, and put into the layout of table 1."""
