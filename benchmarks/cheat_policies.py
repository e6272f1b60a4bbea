"""Lists the policies of `benchmarks/cheats.py` for each family.

A policy is a function that returns texts of turns. After these turns, it gives its answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from benchmarks.arm_cheats import EVERYWHERE, OF_ENV
from benchmarks.arm_cheats import search as _search_in_document
from visenv.envs.arm.verdicts import verdicts, write_verdict
from visenv.envs.embodied.world.goals import Goal, with_target
from visenv.envs.embodied.world.tasks import next_action
from visenv.grammar import ParsedTurn, ToolCall
from visenv.grammar.plan import TOOL

Turns = Callable[[Any, str], Iterable[str]]
"""Returns turns of a policy, given the environment and the answer. It is a generator if a turn
depends on earlier ones."""


class Policy(NamedTuple):
    """Describes a policy.

    Attributes:
        name: Description of the policy in the table.
        kind: ``"honest"`` (the oracle), ``"guess"`` (answers at once), ``"cheat"`` (ignores what a
            tool shows) or ``"right"`` (knows the answer, and omits what the task asks for).
        turns: Its turns before its answer; they may contain the answer.
    """

    name: str
    kind: Literal["honest", "guess", "cheat", "right"]
    turns: Turns = lambda base, answer: ()


class Family(NamedTuple):
    """Describes an environment and its policies.

    Attributes:
        title: Its name in the table.
        env: Its id, without namespace and version.
        top: The maximum reward.
        cheats: The policies besides the honest one and the guess.
        options: The options of the environment.
        published: The options that select the published reward; None without such an option.
        answers: Returns all answers of a guess.
        right: Returns the right answer.
    """

    title: str
    env: str
    top: float
    cheats: Sequence[Policy]
    options: Mapping[str, Any] = {}
    published: Mapping[str, Any] | None = None
    answers: Callable[[Any], Sequence[str]] = lambda base: base.sample.ground_truth.options
    right: Callable[[Any], str] = lambda base: base.sample.answers[0]

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Return all policies, first the honest one and the guess."""
        return (Policy("honest play", "honest"), Policy("guess at once", "guess"), *self.cheats)


# ------------------------------------------------------------------ ARM


def _arm(name: str, common: bool = True) -> list[Policy]:
    """Return the policies of `benchmarks/arm_cheats.py`."""
    listed = (*EVERYWHERE[1:], *OF_ENV[name]) if common else OF_ENV[name]
    return [
        Policy(each.name, "cheat", lambda base, answer, moves=each.moves: moves(base))  # type: ignore[misc]
        for each in listed
    ]


def _search_for_guess(base: Any, answer: str) -> list[str]:
    """Search for what only the guessed answer contains; this finds right values more often."""
    texts = list(getattr(base.truth, "candidates", ())) or [*base.truth.options]
    chosen = next(
        each
        for place, each in enumerate(texts, start=1)
        if each == answer or f"Answer {place}" in answer
    )
    other = {word for each in texts if each != chosen for word in each.split()}
    words = [word for word in chosen.split() if word not in other] or [chosen]
    return [_search_in_document(base, " ".join(words))]


_GUESSED = Policy("search for the value of the guess", "cheat", _search_for_guess)


def _verdicts(base: Any) -> Sequence[str]:
    return [write_verdict(each) for each in verdicts(len(base.truth.candidates))]


def _right_verdict(base: Any) -> str:
    return write_verdict(base.sample.answers[0])


# ------------------------------------------------------------------ ZoomVQA


def _keypoint(at: Callable[[Any], tuple[float, float]]) -> Turns:
    def turns(base: Any, answer: str) -> list[str]:
        x, y = at(base)
        call = ToolCall("zoom", {"keypoint": [round(x), round(y)]})
        begun = base.turn_request().prefill
        return [base.grammar.compose(ParsedTurn(f"{begun.removeprefix('<think>')} so ", (call,)))]

    return turns


def _target(base: Any) -> tuple[float, float]:
    left, top, right, bottom = base.truth.target_box
    across = base.store.images["input_image"].size[0] / base.sample.images[0].size[0]
    return (left + right) / 2 * across, (top + bottom) / 2 * across


def _center(base: Any) -> tuple[float, float]:
    width, height = base.store.images["input_image"].size
    return width / 2, height / 2


_ZOOM = [
    Policy("zoom into the corner", "cheat", _keypoint(lambda base: (0, 0))),
    Policy("zoom into the center", "cheat", _keypoint(_center)),
    Policy("zoom into the target, ignore the crop", "cheat", _keypoint(_target)),
]

# ------------------------------------------------------------------ ArftCoding


def _label_and(code: str, label: bool = True) -> Turns:
    def turns(base: Any, answer: str) -> list[str]:
        calls = [ToolCall("problem", {"labels": [*base.truth.problems]})] if label else []
        calls.append(ToolCall("code", {"code": code}))
        return [base.grammar.compose(ParsedTurn("so", (call,))) for call in calls]

    return turns


_COPY = """import cv2
cv2.imwrite("path_to_output_image.jpg", cv2.imread("path_to_input_image.jpg"))"""
_CODING = [
    Policy("right label, the program `pass`", "cheat", _label_and("pass")),
    Policy("right label, a program that copies the image", "cheat", _label_and(_COPY)),
    Policy("a program that copies the image", "cheat", _label_and(_COPY, label=False)),
    Policy("right answer at once", "right"),
    Policy("right label, the program `pass`, right answer", "right", _label_and("pass")),
]


# ------------------------------------------------------------------ ArftSearch


def _searches(base: Any, queries: Iterable[str]) -> list[str]:
    return [
        base.grammar.compose(ParsedTurn(" so ", (ToolCall("search", {"query": query}),)))
        for query in queries
    ]


_SEARCH = [
    Policy(
        "search for the question",
        "cheat",
        lambda base, answer: _searches(base, [base.sample.question]),
    ),
    Policy("search for 'the'", "cheat", lambda base, answer: _searches(base, ["the"])),
    Policy(
        "search for the first step, ignore the result",
        "cheat",
        lambda base, answer: _searches(base, base.truth.queries[:1]),
    ),
]

# ------------------------------------------------------------------ MagsZoom

_THOUGHT = (
    "The details that decide this question are too small to read here, so I enlarge each sign "
    "which matters before I count anything"
)


def _boxes(boxes: Callable[[Any], Sequence[Sequence[float]]]) -> Turns:
    def turns(base: Any, answer: str) -> list[str]:
        written = [[round(edge) for edge in box] for box in boxes(base)]
        return [f"<think>{_THOUGHT} <zoom>{json.dumps(written)}</zoom></think>"]

    return turns


def _tiles(count: int, side: int) -> Callable[[Any], list[list[int]]]:
    """Return adjacent tiles in the upper left corner."""
    return lambda base: [[side * n, 0, side * (n + 1), side] for n in range(count)]


def _grid(columns: int, lines: int) -> Callable[[Any], list[list[float]]]:
    def boxes(base: Any) -> list[list[float]]:
        width, height = base.store.images["image"].size
        return [
            [width * x // columns, height * y // lines,
             width * (x + 1) // columns, height * (y + 1) // lines]
            for y in range(lines) for x in range(columns)
        ]  # fmt: skip

    return boxes


def _all_signs(base: Any) -> list[list[float]]:
    across = base.store.images["image"].size[0] / base.sample.images[0].size[0]
    return [
        [left * across - 1, top * across - 1, right * across + 1, bottom * across + 1]
        for left, top, right, bottom in base.sample.ground_truth.evidence_boxes
    ]


_MAGS = [
    Policy("zoom into a corner", "cheat", _boxes(_tiles(1, 8))),
    Policy("zoom into six tiles of 4 px", "cheat", _boxes(_tiles(6, 4))),
    Policy("zoom into 16 tiles of 4 px", "cheat", _boxes(_tiles(16, 4))),
    Policy("zoom into the left third", "cheat", _boxes(lambda base: _grid(3, 1)(base)[:1])),
    Policy("zoom into all three thirds", "cheat", _boxes(_grid(3, 1))),
    Policy("zoom into a grid of 4 x 4", "cheat", _boxes(_grid(4, 4))),
    Policy("zoom into all signs, ignore the crops", "cheat", _boxes(_all_signs)),
    Policy("six tiles of 4 px, right answer", "right", _boxes(_tiles(6, 4))),
]

# ------------------------------------------------------------------ Argos


def _response(thought: Callable[[Any, str], str]) -> Turns:
    return lambda base, answer: [f"<think>{thought(base, answer)}</think><answer>{answer}</answer>"]


def _concluded(base: Any, answer: str) -> str:
    """Return a sentence that states an answer."""
    return f"The answer is {answer}."


def _pointed(base: Any, answer: str) -> str:
    """Return points on everything in the first frame."""
    return " ".join(f"Here: {base.point(0, number).tag}." for number in base.truth.visible(0))


def _spans(base: Any, answer: str) -> str:
    """Return the spans of the named events without points."""
    return " ".join(
        f"From frame {event.first + 1} to frame {event.last + 1}, {event.sentence}."
        for event in base.truth.events[: base.truth.key_events]
    )


def _whole_video(base: Any, answer: str) -> str:
    last = len(base.sample.images)
    return " ".join(f"From frame 1 to frame {last}, {each.sentence}." for each in base.truth.events)


_IMAGE = [
    Policy("conclusion without points", "right", _response(_concluded)),
    Policy("points on everything, no conclusion", "right", _response(_pointed)),
]
_VIDEO = [
    Policy("conclusion alone", "right", _response(_concluded)),
    Policy(
        "spans without points",
        "right",
        _response(lambda base, answer: f"{_spans(base, answer)} {_concluded(base, answer)}"),
    ),
    Policy(
        "the whole video as span of each event",
        "right",
        _response(lambda base, answer: f"{_whole_video(base, answer)} {_concluded(base, answer)}"),
    ),
    Policy(
        "points on everything in the first frame",
        "right",
        _response(lambda base, answer: f"{_pointed(base, answer)} {_concluded(base, answer)}"),
    ),
]

# ------------------------------------------------------------------ House


def _objects(base: Any) -> Sequence[str]:
    """Return the objects that the instruction may mean, in random order."""
    found = sorted((*base.truth.targets, *base.truth.others))
    order = np.random.default_rng(base.truth.seed).permutation(len(found))
    return [found[place] for place in order.tolist()]


def _target_object(base: Any) -> str:
    return str(base.truth.targets[0])


def _from(base: Any, first: str) -> list[str]:
    """Return the objects in order, beginning with one of them."""
    found = [*_objects(base)]
    place = found.index(first)
    return [*found[place:], *found[:place]]


def _acts(base: Any, goal: Goal) -> Iterable[str]:
    """Yield plans until a goal is reached; each is made after the one before it was executed."""
    for _ in range(8):
        simulation = base.simulation
        ids = next_action(simulation.dialect, simulation.state, goal)
        if not ids:
            return
        names = simulation.dialect.names
        calls = tuple(
            ToolCall(TOOL, {"action_id": index, "action_name": names[index]})
            for index in ids[: base.preset.plan_actions]
        )
        yield base.grammar.compose(ParsedTurn("I see.\nI go on.\nSome actions.", calls))


def _goal_of(base: Any, item: str) -> Goal:
    return with_target(base.truth.goal, base.truth.targets, item)


def _deliver_all(base: Any, answer: str) -> Iterable[str]:
    for item in _from(base, answer):
        yield from _acts(base, _goal_of(base, item))


def _prepare_all(base: Any, answer: str) -> Iterable[str]:
    """Bring all objects into the required states, for example wash them; then deliver the first."""
    for item in _from(base, answer):
        goal = _goal_of(base, item)
        states = tuple(each for each in goal.conditions if each.domains == ((item,),))
        if states:
            yield from _acts(base, Goal(states))


def _deliver_others(base: Any, answer: str) -> Iterable[str]:
    """Deliver all objects but the answer, which is delivered last."""
    for item in _from(base, answer)[1:]:
        yield from _acts(base, _goal_of(base, item))


_HOUSE = [
    Policy("deliver every look-alike", "cheat", _deliver_all),
    Policy("deliver every other object first", "cheat", _deliver_others),
    Policy("wash, heat or cool every look-alike first", "cheat", _prepare_all),
]


def _house(title: str, env: str, options: Mapping[str, Any]) -> Family:
    return Family(title, env, 2.0, _HOUSE, options, None, _objects, _target_object)


_PUBLISHED = {"call_rule": "published"}
FAMILIES = (
    Family("ZoomVQA", "ZoomVQA", 2.1, _ZOOM, {}, {"tool_rule": "published"}),
    Family("ArmDoc", "ArmDoc", 1.5, [*_arm("ArmDoc"), _GUESSED], {}, _PUBLISHED, _verdicts,
           _right_verdict),
    *(
        Family(name, name, 1.5, _arm(name), {}, _PUBLISHED, _verdicts, _right_verdict)
        for name in ("ArmZoom", "ArmIF")
    ),
    Family("ArmPreference", "ArmPreference", 1.0, _arm("ArmZoom", False), {}, _PUBLISHED, _verdicts,
           _right_verdict),
    Family("ArmVQA", "ArmVQA", 1.5, _arm("ArmZoom", False), {}, _PUBLISHED),
    Family("ArmDocVQA", "ArmDocVQA", 1.5, [*_arm("ArmDoc", False), _GUESSED], {}, _PUBLISHED),
    Family("ArftCoding", "ArftCoding", 2.0, _CODING),
    Family("ArftSearch", "ArftSearch", 2.0, _SEARCH, {}, {"step_rule": "each"}),
    Family("MagsZoom, counting", "MagsZoom", 4.2, _MAGS,
           {"kinds": ["counting"], "magnifier": "none"}, {"compat": "paper"}),
    Family("MagsZoom, others", "MagsZoom", 4.2, _MAGS,
           {"kinds": ["relation", "attribute"], "magnifier": "none"}, {"compat": "paper"}),
    *(
        Family(f"MagsZoom degraded, {name}", "MagsZoom", 4.2, _MAGS,
               {"preset": "degraded", "kinds": kinds, "magnifier": "none"}, {"compat": "paper"})
        for name, kinds in (("counting", ["counting"]), ("others", ["relation", "attribute"]))
    ),
    Family("ArgosImage", "ArgosImage", 1.0, _IMAGE),
    Family("ArgosVideo", "ArgosVideo", 1.0, _VIDEO, {}, {"empty": "skip"}),
    _house("House, tiny", "House", {"preset": "tiny", "blind": True}),
    _house("House, spatial", "House", {"subset": "spatial", "blind": True}),
    _house("EBAlfred, visual", "EBAlfred", {"subset": "visual_appearance", "blind": True}),
    _house("EBHabitat, visual", "EBHabitat", {"subset": "visual_appearance", "blind": True}),
)  # fmt: skip
"""The environments of the table."""
