"""Creates a world for a model of a million parameters: six colored tokens, their owners and homes.

Its articles have few words, all of which are in `WORDS`. The tokens of a world are three colors in
two shapes, so that neither property alone identifies a token.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from visenv.search.corpus import Passage
from visenv.types import Image, Pixels
from visenv.worlds.draws import pick, shuffled

from ...tiny_images import COLORS, SIDE, gray_ground, with_grain
from .kinds import Hop, MultiHopQuestion

SHAPES = ("square", "circle", "triangle")
OWNERS = ("anna", "ben", "clara", "david", "emma", "frank", "grace", "henry")
TOWNS = ("york", "bath", "derby", "leeds", "ripon", "truro", "wells", "ely")
OWNED, LIVES = "owner {}", "lives in {}"
QUESTIONS = {"owner": "Who owns this?", "town": "Where does the owner of this live?"}
WORDS = (
    *COLORS, *SHAPES, *OWNERS, *TOWNS,
    "owner", "lives", "in", "Who", "owns", "this", "Where", "does", "the", "of", "live",
)  # fmt: skip
"""All words of questions and articles."""

_GRAY = 110


class Token(NamedTuple):
    """Describes a colored shape and its owner."""

    color: str
    shape: str
    owner: str

    @property
    def name(self) -> str:
        """Return the title of the token's article."""
        return f"{self.color} {self.shape}"


class Tokens(NamedTuple):
    """Describes a world: its tokens, and the town of each of their owners."""

    tokens: tuple[Token, ...]
    homes: dict[str, str]


def write_tokens(rng: np.random.Generator) -> Tokens:
    """Return a world of six tokens, each with a different owner."""
    colors, shapes = shuffled(rng, tuple(COLORS))[:3], shuffled(rng, SHAPES)[:2]
    looks = [(color, shape) for color in colors for shape in shapes]
    owners = shuffled(rng, OWNERS)
    tokens = [Token(*look, owner) for look, owner in zip(looks, owners, strict=False)]
    return Tokens(tuple(tokens), {token.owner: pick(rng, TOWNS) for token in tokens})


def token_articles(world: Tokens) -> list[Passage]:
    """Return one article for each token and each owner."""
    return [
        *(Passage(token.name, OWNED.format(token.owner)) for token in world.tokens),
        *(Passage(owner, LIVES.format(town)) for owner, town in world.homes.items()),
    ]


def ask_token(rng: np.random.Generator, world: Tokens, hops: int) -> MultiHopQuestion:
    """Return a question about who owns a token (1 hop), or where the owner lives (2 hops)."""
    token, hard = pick(rng, world.tokens), hops == 2
    kind = "town" if hard else "owner"
    chain = (
        Hop(token.name, (token.color, token.shape), token.name),
        Hop(token.owner, (token.owner,), token.owner),
    )
    return MultiHopQuestion(
        text=QUESTIONS[kind],
        image=Image.from_pixels(draw_token(rng, token)),
        hops=chain[:hops],
        answers=(world.homes[token.owner] if hard else token.owner,),
        options=TOWNS if hard else OWNERS,
        kind=kind,
        hard=hard,
    )


def draw_token(rng: np.random.Generator, token: Token) -> Pixels:
    """Return the token on a gray ground, uint8 ``[96, 96, 3]``."""
    from visenv.opencv import cv2

    radius = int(rng.integers(20, 29))
    across, down = (int(rng.integers(radius + 4, SIDE - radius - 4)) for _ in range(2))
    mask = np.zeros((SIDE, SIDE), np.uint8)
    if token.shape == "circle":
        cv2.circle(mask, (across, down), radius, 1, -1)
    elif token.shape == "square":
        mask[down - radius : down + radius, across - radius : across + radius] = 1
    else:
        corners = [(across, down - radius), (across - radius, down + radius)]
        corners.append((across + radius, down + radius))
        cv2.fillPoly(mask, [np.array(corners, np.int32)], 1)
    pixels = gray_ground(_GRAY)
    pixels[mask == 1] = COLORS[token.color]
    return with_grain(rng, pixels)
