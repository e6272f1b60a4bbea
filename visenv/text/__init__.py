"""Normalizes texts, and reads what a reply claims.

- `visenv.text.normalize`: the forms of a text in which parsers and scores compare it.
- `visenv.text.replies`: the part of a reply that states the answer (a box, a tag, a JSON value).
- `visenv.text.claims`: which of several candidates a text claims, with negation, doubt and
  corrections. The parsers of options and verdicts use it.
- `visenv.text.control_tokens`: breaks texts that a chat template would read as control tokens.
- `visenv.text.words`: the words of a text for search, also in scripts without blanks.
"""
