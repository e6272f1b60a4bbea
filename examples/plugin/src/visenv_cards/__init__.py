"""Turn over one of four cards, then name its color.

The import registers the environment, so that plain Gymnasium finds it too::

    gym.make("visenv_cards:cards/Cards-v0")
"""

from visenv.registration import register

register("cards/Cards-v0", "visenv_cards.env:make")
