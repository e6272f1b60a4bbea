"""Defines what a procedural question asks about, for the reasoner of the world."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from visenv.types.ground_truth import STRICT, Texts


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Asked:
    """Describes the relation that a question asks about.

    Attributes:
        relation: The relation, a key of `visenv.envs.argos.world.conclusions.READERS`.
        subject: The thing in question, for example ``"ball"`` or ``"red ball"``; ``""`` if the
            options are the things in question.
        other: The second thing of a relation, for example the reference of "to the left of".
        given: The word that the question gives: an extreme, or the color before a change.
        conclusion: A true sentence that decides the question.
        facts: Names of the things of which the answer is the number.
    """

    relation: str
    subject: str = ""
    other: str = ""
    given: str = ""
    conclusion: str
    facts: Texts = ()
