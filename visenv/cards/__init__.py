"""Makes the card of an environment: facts, presets, reward terms, scores, and one episode.

`visenv card` prints the card, and the documentation has a page for each environment with it.
"""

from visenv.cards.animation import animate
from visenv.cards.card import EnvCard, make_card
from visenv.cards.markdown import card_markdown

__all__ = ["EnvCard", "animate", "card_markdown", "make_card"]
