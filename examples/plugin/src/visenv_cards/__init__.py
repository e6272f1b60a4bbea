"""Defines an environment in which a policy turns over one of four cards and names its color.

`FAMILY` lists the names that the package adds to visenv. The import also registers the environment,
so that plain Gymnasium finds it::

    gym.make("visenv_cards:cards/Cards-v0")
"""

from visenv.family import EnvEntry, Family
from visenv.registration import register

FAMILY = Family(
    environments={
        "cards/Cards-v0": EnvEntry("visenv_cards.env:make", "turn over a card, name its color"),
    },
    data={"decks": "visenv_cards.data:Decks"},
    records={"CardsTruth": "visenv_cards.world:CardsTruth"},
    curation={"colorful": "visenv_cards.curation:Colorful"},
    suites={"cards": "visenv_cards.evaluation:SUITE"},
    recipes={"cards_tiny": "visenv_cards:cards_tiny.toml"},
    scorers={"colors": "visenv_cards.evaluation:ColorJudge"},
    baselines={"cards": "visenv_cards.evaluation:PROMPTS"},
)

register("cards/Cards-v0", "visenv_cards.env:make")
