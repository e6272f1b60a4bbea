"""Writes the prompts of the embodied environments, which are all our own, and their examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from visenv.decoding.files import read_regular
from visenv.decoding.json_text import read_json_file
from visenv.errors import DataError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.grammar.plan import TOOL, PlanGrammar
from visenv.types import EventLog, Malformed, ToolCalled
from visenv.worlds.draws import pick, shuffled

from .dialects import Dialect
from .ground_truth import HouseTruth
from .world.furnish import OPEN_STORAGE
from .world.goals import Clause, Fact, Goal
from .world.items import word_of
from .world.planner import PlanError
from .world.tasks import actions_of
from .world.tasks.references import article

PromptStyle = Literal["full", "brief"]

NOW = "\nWhat the camera sees now:\n"

BEFORE = "\nWhat the camera saw before:\n"
"""Texts before the current frame, and before earlier ones."""

_RULES = {
    "alfred": (
        "You control a robot in a house. You see what its camera sees.\n"
        "Rules:\n"
        "- Find an object or a receptacle before you use it. Finding it takes the robot there.\n"
        "- The hand holds one object. It is put down at the receptacle that was found or opened "
        "last.\n"
        "- Open a receptacle before you put something into it or take something out of it.\n"
        "- A microwave heats what is in it when it is turned on with its door closed. A stove "
        "heats what is on it. A fridge cools what is in it when it is closed. A faucet washes "
        "what is in its sink. A knife in the hand slices.\n"
        "- Several objects may have the same type; their names end with numbers that say nothing "
        "about their looks or places. The camera shows which one is meant. If the instruction "
        "names one of them, never put another one where it belongs.\n"
        "- Plan several actions if you can. When an action fails, the rest of the plan is "
        "dropped, and you plan again.\n"
    ),
    "habitat": (
        "You control a robot in a house. You see what its camera sees.\n"
        "Rules:\n"
        "- Navigate to a receptacle before you use it or an object there.\n"
        "- The robot holds one object. Place it before you pick up another one.\n"
        "- Open a receptacle before you place something in it or pick something up from it.\n"
        "- Several objects may have the same type, at different receptacles. The camera shows "
        "which one is meant. If the instruction names one of them, never place another one where "
        "it belongs.\n"
        "- Plan several actions if you can. When an action is invalid, the rest of the plan is "
        "dropped, and you plan again.\n"
    ),
}

_RULES["skills"] = _RULES["habitat"]

_BRIEF = "Look for the object, then bring it to its place.\n"

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


def rules(dialect: str, style: PromptStyle, form: str, limits: tuple[int, int]) -> str:
    """Return the constant part of the prompt: the rules and the format of a turn.

    Args:
        dialect: The dialect.
        style: ``"full"`` or ``"brief"``.
        form: The format of a turn (`PlanGrammar.instructions`).
        limits: The maximum numbers of steps and of invalid actions.
    """
    if style == "brief":
        return _BRIEF
    steps, invalid = limits
    return (
        f"{_RULES[dialect]}- The episode ends after {steps} actions or {invalid} invalid ones.\n"
        f"\n{form}\n"
    )


def action_list(description: str, names: Sequence[str]) -> str:
    """Return the description of a plan's entries, and the numbered actions."""
    lines = "".join(f"{index}: {name}\n" for index, name in enumerate(names))
    return f"\n{description}\nActions:\n{lines}"


NO_ACTIONS = "\nThere are no actions.\n"
"""Text that replaces the actions under the control ``no_tool``."""


def examples(texts: Sequence[str]) -> str:
    """Return the numbered examples as a block, ``""`` if there are none."""
    if not texts:
        return ""
    numbered = "\n".join(f"Example {place}.\n{text}" for place, text in enumerate(texts, 1))
    return f"\nExamples of other tasks in this house:\n{numbered}\n"


def example(instruction: str, reply: str) -> str:
    """Return one example, an instruction with its reply."""
    return f"Instruction: {instruction}\nReply: {reply}"


def instruction(text: str) -> str:
    """Return the line with the task's instruction."""
    return f"\nInstruction: {text}\n"


def history(lines: Iterable[str]) -> str:
    """Return the history of the episode, ``""`` if it is empty."""
    joined = "\n".join(lines)
    return f"\nHistory:\n{joined}\n" if joined else ""


def step(number: int, action_id: int, name: str, feedback: str) -> str:
    """Return the line of one action; an empty `feedback` is omitted."""
    line = f"Step {number}, action {action_id}, {name}"
    return f"{line}: {feedback}" if feedback else line


def refused(message: str) -> str:
    """Return the line of a reply that could not be used."""
    return f"A reply was not used: {message}"


def history_lines(log: EventLog, *, feedback: bool, compat: bool) -> list[str]:
    """Return a line for each action, and for each reply that was not used.

    Args:
        log: The events of the episode.
        feedback: Whether the lines contain the feedback of the simulator.
        compat: Whether the lines are those of the public code: actions are counted from 0, and
            replies that were not used have no line.
    """
    lines: list[str] = []
    for event in log:
        if isinstance(event, ToolCalled) and event.detail:
            number = event.detail["step"] - (1 if compat else 0)
            told = event.detail["feedback"] if feedback else ""
            arguments = event.arguments
            lines.append(step(number, arguments["action_id"], arguments["action_name"], told))
        elif isinstance(event, Malformed) and not compat:
            lines.append(refused(event.message))
    return lines


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
        written.append(example(text, reply))
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
