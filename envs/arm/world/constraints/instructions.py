"""Lists the instructions that texts respond to, about a topic or about a picture."""

from __future__ import annotations

from typing import Final

import numpy as np

from visenv.types import Image
from visenv.worlds.draws import pick
from visenv.worlds.scenes.styles import STYLES
from visenv.worlds.scenes.world import PLACES

_ABOUT: Final = (
    "Write a short text about {topic}.",
    "Describe {topic} in a few lines.",
    "Tell me something about {topic}.",
    "Make up a little story about {topic}.",
    "Write a letter to a friend in which you tell of {topic}.",
    "Write a note for a travel guide about {topic}.",
    "Draft a blog post that deals with {topic}.",
    "Write the opening of a novel that begins with {topic}.",
    "Put together a few sentences about {topic} for a school newspaper.",
    "Write what a grandmother might tell of {topic}.",
    "Compose a text about {topic} that could be read out on the radio.",
    "Note down some thoughts about {topic}.",
)
_TOPICS: Final = (
    "a day in a small town",
    "a market by the water",
    "an old railway station",
    "the people of a street",
    "a walk after work",
    "what happens before a storm",
    "a village that everybody has left",
    "the first day of spring",
    "a house at the end of a road",
    "a journey by night train",
    "the last ferry of the evening",
    "a garden behind a school",
    "a bakery early in the morning",
    "the repair of a clock",
    "a choir that lost its singers",
    "a bridge that nobody crosses",
    "an afternoon in a library",
    "two neighbours who never talk",
    "a lost suitcase",
    "the harvest in a bad year",
    "a lighthouse in fog",
    "a dog that waits at a door",
    "the oldest tree of a park",
    "a theatre before the show",
    "a street without cars",
    "a winter without snow",
    "the opening of a museum",
    "a family that moves away",
    "a fair on the edge of town",
    "a mill that turns again",
)
_OF_PICTURES: Final = (
    "Describe the picture.",
    "Write a short text that goes with this picture.",
    "Make up a little story that takes place here.",
    "Look at the picture and write what might happen next.",
    "Write a caption of several sentences for this picture.",
    "Tell somebody who cannot see the picture what it is like to be there.",
    "Write a diary entry of somebody who was here.",
    "Write a letter from the place in the picture.",
    "Use the picture as the setting of a scene.",
    "Write how this place changes through a year.",
)
_WITH_PICTURE: Final = 0.25
_SIZES: Final = ((640, 480), (480, 640), (512, 512), (800, 450))


def instruct(rng: np.random.Generator) -> tuple[str, tuple[Image, ...]]:
    """Return an instruction, and for one in four the picture that it is about."""
    if rng.random() >= _WITH_PICTURE:
        return pick(rng, _ABOUT).format(topic=pick(rng, _TOPICS)), ()
    width, height = pick(rng, _SIZES)
    paint = STYLES[pick(rng, PLACES)]
    picture = paint(rng, width, height, float(rng.random()))
    return pick(rng, _OF_PICTURES), (Image.from_pixels(picture),)
