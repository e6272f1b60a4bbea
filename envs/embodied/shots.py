"""Creates examples for prompts: plans for other objects of the house, written by the planner."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from visenv.decoding.files import read_regular
from visenv.decoding.json_text import read_json_file
from visenv.errors import DataError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.grammar.plan import TOOL, PlanGrammar
from visenv.worlds.draws import pick, shuffled

from . import prompts
from .dialects import Dialect
from .ground_truth import HouseTruth
from .world.furnish import OPEN_STORAGE
from .world.goals import Clause, Fact, Goal
from .world.items import word_of
from .world.planner import PlanError
from .world.tasks import actions_of
from .world.tasks.phrases import article

_FACTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Put {} on the {}.", ()),
    ("Put {}, clean, on the {}.", ("clean",)),
    ("Put {}, cold, on the {}.", ("cold",)),
    ("Put {}, hot, on the {}.", ("hot",)),
)
_LONG: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Put {}, clean and cold, on the {}.", ("clean", "cold")),
    ("Put {}, clean and hot, on the {}.", ("clean", "hot")),
    ("Put {}, sliced and cold, on the {}.", ("sliced", "cold")),
)
_ATTEMPTS = 20


def write_examples(
    dialect: Dialect, truth: HouseTruth, grammar: PlanGrammar, count: int, long: bool
) -> list[str]:
    """Return examples that the planner has written.

    Args:
        dialect: The actions of the episode, whose ids the examples use.
        truth: The task, whose objects do not occur in examples.
        grammar: Writes the replies.
        count: The number of examples.
        long: Whether examples are long plans (the subset long_horizon).
    """
    house = dialect.house
    rng = np.random.default_rng((house.palette, count))
    goal = truth.goal
    used = {name for clause in (*goal.conditions, *goal.guards) for domain in clause.domains
            for name in domain}  # fmt: skip
    kinds = {house.items[name].kind for name in used if name in house.items}
    items = [name for name, each in house.items.items() if each.kind not in kinds]
    places = [each for each in house.fixtures.values() if each.kind in OPEN_STORAGE]
    written: list[str] = []
    for _ in range(_ATTEMPTS * count):
        if len(written) == count or not items or not places:
            break
        pattern, facts = pick(rng, _LONG if long and dialect.name == "alfred" else _FACTS)
        item, place = pick(rng, items), pick(rng, places)
        literals = (Fact("in", ("?0", place.name)), *(Fact(fact, ("?0",)) for fact in facts))
        kind = house.items[item].kind
        clause = Clause("exists", (tuple(house.of_kind(kind)),), literals)
        try:
            ids = actions_of(dialect, Goal((clause,)))
        except (PlanError, KeyError):
            continue
        if ids is None or len(ids) > grammar.most_actions:
            continue
        text = pattern.format(article(word_of(kind)), place.type.word)
        calls = [ToolCall(TOOL, {"action_id": index, "action_name": dialect.names[index]})
                 for index in ids]  # fmt: skip
        thought = "\n".join(
            ["I see the room.", "I will follow the plan.", f"{len(ids)} actions: {text}"][
                -len(grammar.text_keys) :
            ]
        )
        reply = grammar.compose(ParsedTurn(thought, tuple(calls)))
        written.append(prompts.example(text, reply))
    return shuffled(rng, written)


def read_examples(file: str | Path, count: int) -> list[str]:
    """Return the examples of a file, a JSON list of texts as in EmbodiedBench's files.

    Args:
        file: The file.
        count: The number of examples to use, from the beginning.

    Raises:
        DataError: If the file cannot be read, or is not a list of texts.
    """
    try:
        value = read_json_file(read_regular(Path(file)))
    except (OSError, DataError) as error:
        raise DataError(f"{file}: examples cannot be read: {error}") from error
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise DataError(f"{file}: examples must be a JSON list of texts.")
    return value[:count]
