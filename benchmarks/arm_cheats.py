"""Computes the mean rewards in the ARM environments of policies that call tools to no purpose.

    python benchmarks/arm_cheats.py [samples]

Every policy except the honest one gives each possible verdict of each sample once, so that the mean
is the exact expectation of a random guess; only the choice of samples is random.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np

import visenv  # noqa: F401 - registers the environments
from visenv.envs.arm.env.base import JudgingEnv
from visenv.envs.arm.verdicts import verdicts, write_verdict
from visenv.grammar import ParsedTurn

Moves = Callable[[JudgingEnv], list[str]]
"""The turns of a policy before its answer."""

CHECK = "check_whether_response_paragraph_number_in_range"


class Policy(NamedTuple):
    """Describes a policy that guesses after some turns.

    Attributes:
        name: Description of the policy in the table.
        moves: Its turns before the answer.
        thought: Its last thought.
        kind: ``"honest"``, ``"cheat"`` (calls tools without searching for evidence), ``"lucky"``
            (looks at random places, and may see the evidence by chance) or ``"thoughtless"`` (looks
            at the evidence, and then guesses).
    """

    name: str
    moves: Moves = lambda judge: []
    thought: str = "so"
    kind: Literal["honest", "cheat", "lucky", "thoughtless"] = "cheat"


def call(name: str, thought: str = "look", **arguments: Any) -> str:
    """Return a turn with a call."""
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<think>{thought}</think><tool_call>{body}</tool_call>"


def page(judge: JudgingEnv, number: int, document: str = "") -> str:
    """Return a turn that requests a page, by default of the sample's document."""
    name = document or judge.truth.document
    return call("doc_page_retrieval_by_index", filename=name, image_idx=number)


def crop(*box: int, image: str = "original_image") -> str:
    """Return a turn that zooms in."""
    return call("image_zoom_in_tool", image=image, bbox_2d=list(box))


def _useless_page(judge: JudgingEnv) -> int:
    return next(number for number in range(2, 5) if number not in judge.truth.evidence_pages)


def _any_page(judge: JudgingEnv) -> str:
    pages = len(judge.source.library.document(judge.truth.document))  # type: ignore[union-attr]
    return page(judge, int(_rng(judge).integers(1, pages + 1)))


def _any_pages(judge: JudgingEnv, number: int) -> list[str]:
    pages = len(judge.source.library.document(judge.truth.document))  # type: ignore[union-attr]
    chosen = _rng(judge).permutation(pages)[:number] + 1
    return [page(judge, each) for each in chosen.tolist()]


def _any_quarter(judge: JudgingEnv) -> str:
    x, y = (500 * int(each) for each in _rng(judge).integers(0, 2, 2))
    return crop(x, y, x + 500, y + 500)


def _quarters(number: int) -> list[str]:
    """Return zooms into that many quarters of the image, the upper ones first."""
    corners = [(0, 0), (500, 0), (0, 500), (500, 500)]
    return [crop(x, y, x + 500, y + 500) for x, y in corners[:number]]


def _strips(number: int) -> list[str]:
    """Return zooms into vertical strips that together cover half of the image."""
    width = 500 // number
    return [crop(2 * width * n, 0, 2 * width * n + width, 1000) for n in range(number)]


def search(judge: JudgingEnv, query: str) -> str:
    """Return a turn that searches in the sample's document."""
    name = judge.truth.document
    return call("doc_page_retrieval_by_query", filename=name, query=query)


def _ask(judge: JudgingEnv) -> str:
    """Return a turn that searches for the question itself."""
    return search(judge, judge.sample.question)


def _target(judge: JudgingEnv) -> list[str]:
    """Return the turns of the oracle before its verdict."""
    return [judge.grammar.compose(ParsedTurn("look", (each,))) for each in judge.oracle_calls()]


def _rng(judge: JudgingEnv) -> np.random.Generator:
    """Return a generator that is the same for every verdict of a sample."""
    return np.random.default_rng(list(judge.sample.id.encode()))


def _elsewhere(judge: JudgingEnv) -> str:
    """Return a zoom into the quarter of the image that is farthest from the target."""
    left, top, right, bottom = judge.truth.target_box or (0, 0, 1, 1)
    width, height = judge.sample.images[0].size
    x = 500 if left + right < width else 0
    y = 500 if top + bottom < height else 0
    return crop(x, y, x + 500, y + 500)


def _other_bounds(judge: JudgingEnv) -> str:
    """Return the decisive check with wrong arguments."""
    check = judge.truth.check
    assert check is not None
    arguments: dict[str, Any] = {
        key: value + 1 if isinstance(value, int) else value
        for key, value in check.arguments.items()
    }
    if arguments == check.arguments:
        return call(CHECK, response="text_0", lower_bound=0, upper_bound=99)
    return call(check.name, response="text_0", **arguments)


GUESS = Policy("guess at once", kind="honest")
EVERYWHERE = (
    GUESS,
    Policy("call a tool that does not exist", lambda judge: [call("look_closely", at="it")]),
    Policy(
        "write a call that is not JSON", lambda judge: ["<think>x</think><tool_call>{</tool_call>"]
    ),
    Policy(
        "call a tool without arguments",
        lambda judge: [call(next(iter(judge.tools)))],
    ),
    Policy(
        "write the result of a tool into the thought",
        thought=("This is the zoom-in image. Here is page image #1. Check result: True"),
    ),
    Policy("write a call into the thought", thought="I call a tool. " + json.dumps({"name": "x"})),
    Policy(
        "use up all turns with calls that fail",
        lambda judge: [
            call(next(iter(judge.tools)), nothing=turn) for turn in range(judge.limits.turns - 1)
        ],
    ),
)
OF_ENV: dict[str, tuple[Policy, ...]] = {
    "ArmDoc": (
        Policy("retrieve a page of another document", lambda judge: [page(judge, 2, "report-77")]),
        Policy("retrieve the cover", lambda judge: [page(judge, 1)]),
        Policy(
            "retrieve a page without the evidence",
            lambda judge: [page(judge, _useless_page(judge))],
        ),
        Policy("retrieve a page that does not exist", lambda judge: [page(judge, 900)]),
        Policy(
            "search for nonsense",
            lambda judge: [
                call("doc_page_retrieval_by_query", filename=judge.truth.document, query="zxqv qqq")
            ],
        ),
        Policy("retrieve the cover again and again", lambda judge: [page(judge, 1)] * 3),
        Policy('search for "the"', lambda judge: [search(judge, "the")], kind="lucky"),
        Policy(
            "search four times for common words",
            lambda judge: [search(judge, each) for each in ("the", "table", "total", "year")],
            kind="lucky",
        ),
        Policy("retrieve any page", lambda judge: [_any_page(judge)], kind="lucky"),
        Policy("retrieve any four pages", lambda judge: _any_pages(judge, 4), kind="lucky"),
        Policy("search for the question", lambda judge: [_ask(judge)], kind="thoughtless"),
    ),
    "ArmZoom": (
        Policy("zoom into a corner of 28 pixels", lambda judge: [crop(0, 0, 9, 9)]),
        Policy("zoom into the whole image", lambda judge: [crop(0, 0, 1000, 1000)]),
        Policy(
            "zoom into the whole image twice",
            lambda judge: [crop(0, 0, 1000, 1000), crop(0, 0, 1000, 1000, image="observation_1")],
        ),
        Policy("zoom into another part", lambda judge: [_elsewhere(judge)]),
        Policy(
            "zoom into an image that does not exist",
            lambda judge: [crop(0, 0, 500, 500, image="observation_7")],
        ),
        Policy("zoom with the corners in the wrong order", lambda judge: [crop(500, 500, 0, 0)]),
        Policy("zoom into all four quarters", lambda judge: _quarters(4)),
        Policy("zoom into any quarter", lambda judge: [_any_quarter(judge)], kind="lucky"),
        Policy("zoom into the two upper quarters", lambda judge: _quarters(2), kind="lucky"),
        Policy(
            "zoom into the two left quarters",
            lambda judge: [crop(0, 0, 500, 500), crop(0, 500, 500, 1000)],
            kind="lucky",
        ),
        Policy("zoom into the left half", lambda judge: [crop(0, 0, 500, 1000)], kind="lucky"),
        Policy("zoom into three strips", lambda judge: _strips(3), kind="lucky"),
        Policy("zoom into the target", _target, kind="thoughtless"),
    ),
    "ArmIF": (
        Policy(
            "run an unrelated check",
            lambda judge: [call(CHECK, response="text_0", lower_bound=77, upper_bound=78)],
        ),
        Policy("run the check with other arguments", lambda judge: [_other_bounds(judge)]),
        Policy(
            "check a text that does not exist",
            lambda judge: [call(CHECK, response="text_5", lower_bound=1, upper_bound=2)],
        ),
        Policy("run the check", _target, kind="thoughtless"),
    ),
}


def played(env: Any, judge: JudgingEnv, policy: Policy, seed: int, verdict: str) -> float:
    """Return the reward of a policy that ends with that verdict."""
    env.reset(seed=seed)
    for turn in policy.moves(judge):
        env.step(turn)
    answer = write_verdict(verdict)
    return float(env.step(f"<think>{policy.thought}</think><answer>{answer}</answer>")[1])


def expected(env: Any, judge: JudgingEnv, policy: Policy, samples: int) -> float:
    """Return the mean reward over samples and all verdicts of each."""
    paid: list[float] = []
    for seed in range(samples):
        env.reset(seed=seed)
        options = verdicts(len(judge.truth.candidates))
        paid += [played(env, judge, policy, seed, option) for option in options]
    return sum(paid) / len(paid)


def honest(env: Any, judge: JudgingEnv, samples: int) -> float:
    """Return the mean reward of a policy that verifies and then gives the right verdict."""
    paid = 0.0
    for seed in range(samples):
        env.reset(seed=seed)
        over, reward = False, 0.0
        while not over:
            turn = judge.grammar.compose(judge.oracle_turn())
            _, reward, terminated, truncated, _ = env.step(turn)
            over = terminated or truncated
        paid += reward
    return paid / samples


class Row(NamedTuple):
    """Holds a row of the table: the mean rewards of a policy under two rules."""

    env: str
    policy: str
    kind: str
    evidence: float
    published: float


def rows(samples: int, reward: str = "stage2") -> Iterator[Row]:
    """Yield the rows of the table by environment, starting with the honest policies of each."""
    for name, policies in OF_ENV.items():
        made = [
            gym.make(f"visenv/{name}-v0", call_rule=rule, reward=reward)
            for rule in ("evidence", "published")
        ]
        judges: list[JudgingEnv] = [env.unwrapped for env in made]  # type: ignore[misc]
        pairs = list(zip(made, judges, strict=True))
        yield Row(name, "verify, then judge", "honest", *(honest(*pair, samples) for pair in pairs))
        for policy in (*EVERYWHERE, *policies):
            paid = (expected(*pair, policy, samples) for pair in pairs)
            yield Row(name, policy.name, policy.kind, *paid)


def table(lines: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    shown = {"honest": "**{}**", "cheat": "{}", "lucky": "*{}*", "thoughtless": "*{}*"}
    head = '| environment | policy | default | `call_rule="published"` |\n|---|---|--:|--:|'
    body = [
        f"| {row.env} | {shown[row.kind].format(row.policy)} "
        f"| {row.evidence:.3f} | {row.published:.3f} |"
        for row in lines
    ]
    return "\n".join([head, *body])


if __name__ == "__main__":
    print(table(list(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 20))))
