"""Tests that an episode is aborted in time if a teacher hangs, dies or returns NaN.

The next episode works again. The teachers run behind real HTTP servers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import pytest

import visenv  # noqa: F401  (registers the ids)
from tests.visenv.scorers.chat_server import Act, Answer, ChatServer, Hang, running, said
from visenv.scorers import Detect, Scorer

TEACHERS = {
    "pointing_model": ("ArgosImage", "chart"),
    "reasoner": ("ArgosImage", "color"),
    "judge": ("ArgosVideo", "change"),
}
"""Maps each teacher to an environment and a kind of question for which the verifier uses it."""


def finds_all(request: Any) -> Any:
    """Return one box as a detector, and a hit for every point as a segmenter."""
    if isinstance(request, Detect):
        return [[0.0, 0.0, 20.0, 20.0, 0.9]]
    return [True] * len(request.points)


def speaks(number: str) -> Callable[[str, dict[str, Any]], Act]:
    """Return a server of the three teachers that writes this JSON number for every score."""

    def act(path: str, body: dict[str, Any]) -> Act:
        if path == "/tokenize":
            return Answer('{"tokens": [5], "count": 1}')
        if "prompt_logprobs" in body:
            reply = json.loads(said("!").body)
            text = json.dumps({**reply, "prompt_logprobs": [None, {"5": {"logprob": 0.0}}]})
            return Answer(text.replace('"logprob": 0.0', f'"logprob": {number}'))
        if "Point to" in json.dumps(body):
            return said('<point x="10" y="10" alt="bar">bar</point>')
        return said(f'{{"score": {number}}}')

    return act


def hangs(path: str, body: dict[str, Any]) -> Act:
    return Hang()


def dies(path: str, body: dict[str, Any]) -> Act:
    """Close the connection in the middle of the reply."""
    return Answer(json.dumps({"choices": []}), cut=True)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with running() as chat_server:
        yield chat_server


def play(env: gym.Env[Any, str], seed: int) -> tuple[float, bool, Any]:
    """Return the reward of the oracle's turn, whether the episode was truncated, and the result."""
    env.reset(seed=seed)
    base: Any = env.unwrapped
    _, reward, _, truncated, info = env.step(base.grammar.compose(base.oracle_turn()))
    return float(reward), truncated, info["step"]


FAULTS: dict[str, Callable[[str, dict[str, Any]], Act]]
FAULTS = {"hangs": hangs, "dies": dies, "NaN": speaks("NaN")}
CASES = [(teacher, fault) for teacher in TEACHERS for fault in FAULTS]
CASES.remove(("pointing_model", "NaN"))  # a point with NaN is dropped: `read_pointing`


@pytest.mark.slow
@pytest.mark.parametrize(("teacher", "fault"), CASES)
def test_broken_teacher_aborts_its_episode_alone(
    server: ChatServer, teacher: str, fault: str
) -> None:
    name, kind = TEACHERS[teacher]
    line = f"openai:m?base_url={server.url}&timeout=3&retries=0"
    good = f"rules:{__name__}:finds_all"
    lines = {"detector": good, "segmenter": good, teacher: line}
    env = gym.make(f"visenv/{name}-v0", kinds=[kind], teachers=lines, disable_env_checker=True)
    server.act = FAULTS[fault]
    reward, truncated, result = play(env, 0)
    assert (reward, truncated) == (0.0, True)
    assert result.failure.name in ("openai:m", "reasoner")
    server.act = speaks("0" if teacher == "reasoner" else "1")
    reward, truncated, result = play(env, 1)  # another seed, because readable replies are cached
    assert not truncated
    assert result.failure is None
    assert reward > 0.5
    env.close()
    Scorer.parse(line).close()
