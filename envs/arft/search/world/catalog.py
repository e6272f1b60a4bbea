"""Defines the facts of a world of entities: people, cities, companies and works."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from visenv.worlds.draws import pick

from . import names
from .kinds import Appearance, EntityKind, Relation


def _one_of(options: tuple[str, ...]) -> Callable[[np.random.Generator], str]:
    return lambda rng: pick(rng, options)


def _year(first: int, last: int) -> Callable[[np.random.Generator], str]:
    return lambda rng: str(int(rng.integers(first, last + 1)))


def _population(rng: np.random.Generator) -> str:
    return f"{int(rng.integers(2, 900))},{int(rng.integers(1000)):03d}"


def _made(verb: str, noun: str, passive: str) -> Relation:
    """Return the relation from a work to its maker: ``_made("wrote", "author", "written")``."""
    return Relation(
        "person",
        (f"It was {passive} by {{value}}.", f"Its {noun} is {{value}}."),
        f"Who {verb} {{}}?",
        f"{noun} of {{}}",
        f"the {noun} of {{}}",
    )


KINDS: Mapping[str, EntityKind] = {
    "person": EntityKind(
        48,
        "{name} is known far beyond this country.",
        {
            "birth year": Relation(
                "",
                ("{name} was born in {value}.", "The year of birth is {value}."),
                "In which year was {} born?",
                "birth year of {}",
                value=_year(1850, 1990),
            ),
            "birthplace": Relation(
                "city",
                ("The birthplace of {name} is {value}.", "{name} comes from {value}."),
                "In which city was {} born?",
                "birthplace of {}",
                "the birthplace of {}",
            ),
            "teacher": Relation(
                "person",
                ("{name} was taught by {value}.", "A pupil of {value}, {name} took to it early."),
                "Who taught {}?",
                "teacher of {}",
                "the teacher of {}",
            ),
            "profession": Relation(
                "",
                ("By profession {name} is {value}.", "{name} earned a living as {value}."),
                "What is the profession of {}?",
                "profession of {}",
                value=_one_of(names.PROFESSIONS),
            ),
            "instrument": Relation(
                "",
                ("In the evenings {name} plays the {value}.", "{name} is fond of the {value}."),
                "Which instrument does {} play?",
                "instrument played by {}",
                value=_one_of(names.INSTRUMENTS),
            ),
        },
        Appearance("the person whose name badge this is"),
        Appearance(
            "the person in this portrait",
            "portrait of a person in {}",
            "The best known portrait of {name} shows {look}.",
        ),
        names.HEADGEAR,
    ),
    "city": EntityKind(
        24,
        "{name} is a city on a hill.",
        {
            "river": Relation(
                "",
                ("The river {value} flows through it.", "It lies on the river {value}."),
                "Which river flows through {}?",
                "river through {}",
                value=_one_of(names.RIVERS),
            ),
            "population": Relation(
                "",
                ("It has {value} inhabitants.", "At the last count {value} people lived there."),
                "How many people live in {}?",
                "population of {}",
                value=_population,
            ),
            "mayor": Relation(
                "person",
                ("Its mayor is {value}.", "{value} is mayor there."),
                "Who is the mayor of {}?",
                "mayor of {}",
                "the mayor of {}",
            ),
            "partner": Relation(
                "city",
                ("Its partner city is {value}.", "It has a partnership with {value}."),
                "What is the partner city of {}?",
                "partner city of {}",
                "the partner city of {}",
            ),
        },
        Appearance("the city that this road sign names"),
        Appearance(
            "the city whose coat of arms this is",
            "city whose coat of arms shows {}",
            "The coat of arms of {name} shows {look}.",
        ),
        names.CHARGES,
    ),
    "company": EntityKind(
        21,
        "{name} is a company with some hundred workers.",
        {
            "founder": Relation(
                "person",
                ("Its founder is {value}.", "{value} founded it in a shed."),
                "Who founded {}?",
                "founder of {}",
                "the founder of {}",
            ),
            "seat": Relation(
                "city",
                ("It has its seat in {value}.", "Its head office is in {value}."),
                "In which city does {} have its seat?",
                "seat of {}",
                "the city where {} has its seat",
            ),
            "product": Relation(
                "",
                ("It makes {value}.", "It is known for its {value}."),
                "What does {} make?",
                "product of {}",
                value=_one_of(names.PRODUCTS),
            ),
            "founding year": Relation(
                "",
                ("It was founded in {value}.", "It goes back to the year {value}."),
                "In which year was {} founded?",
                "founding year of {}",
                value=_year(1820, 1990),
            ),
        },
        Appearance("the company whose sign this is"),
        Appearance(
            "the company whose emblem this is",
            "company whose emblem is {}",
            "The emblem of {name} is {look}.",
        ),
        names.CHARGES,
    ),
    "novel": EntityKind(
        12,
        "{name} is a novel in three parts.",
        {
            "author": _made("wrote", "author", "written"),
            "setting": Relation(
                "city",
                ("It is set in {value}.", "The story takes place in {value}."),
                "In which city is {} set?",
                "setting of {}",
                "the city where {} is set",
            ),
            "year": Relation(
                "",
                ("It was published in {value}.", "It came out in {value}."),
                "In which year was {} published?",
                "publication year of {}",
                value=_year(1890, 2020),
            ),
        },
        Appearance("the novel whose cover this is"),
    ),
    "opera": EntityKind(
        12,
        "{name} is an opera in two acts.",
        {
            "composer": _made("composed", "composer", "composed"),
            "first performance": Relation(
                "city",
                ("It was first performed in {value}.", "It was first heard in {value}."),
                "In which city was {} first performed?",
                "city of the first performance of {}",
                "the city where {} was first performed",
            ),
            "year": Relation(
                "",
                ("The score was finished in {value}.", "The music dates from {value}."),
                "In which year was the score of {} finished?",
                "year of the score of {}",
                value=_year(1850, 2010),
            ),
        },
        Appearance("the opera that this poster announces"),
    ),
    "bridge": EntityKind(
        12,
        "{name} is a bridge for walkers and carts.",
        {
            "designer": _made("designed", "designer", "designed"),
            "place": Relation(
                "city",
                ("It stands in {value}.", "It can be seen in {value}."),
                "In which city does {} stand?",
                "city of {}",
                "the city where {} stands",
            ),
            "opening": Relation(
                "",
                ("It was opened in {value}.", "Traffic has crossed it since {value}."),
                "In which year was {} opened?",
                "opening year of {}",
                value=_year(1780, 1990),
            ),
            "material": Relation(
                "",
                ("It is built of {value}.", "Its arches are made of {value}."),
                "What is {} built of?",
                "material of {}",
                value=_one_of(names.MATERIALS),
            ),
        },
        Appearance("the bridge whose plaque this is"),
    ),
}
