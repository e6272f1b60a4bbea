"""Writes the prompts of the embodied environments, which are all our own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from visenv.types import EventLog, Malformed, ToolCalled

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
