"""Defines an environment in which a policy turns over one of four cards and names its color.

The import registers the environment, so that plain Gymnasium also finds it::

    gym.make("visenv_cards:cards/Cards-v0")
"""

from visenv.registration import register

register("cards/Cards-v0", "visenv_cards.env:make")
