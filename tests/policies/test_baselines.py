"""Tests baselines: the messages and requests of the wrapped policy, and the resulting turns."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from visenv.data.source import Source
from visenv.envs.arft import make_coding, make_search
from visenv.envs.arft.baselines import PROMPTS
from visenv.envs.arft.coding.world import distorted
from visenv.errors import ConfigurationError
from visenv.makers import make_policy
from visenv.policies.baselines import ChainOfThoughtPolicy, DirectPolicy, RetrievalPolicy
from visenv.policies.scripted import ScriptedPolicy
from visenv.rollout import EpisodeSpec, play
from visenv.types import Answered, Episode, Image, Message, Sample, ToolCalled, TurnRequest


class One:
    """Holds one sample with an undistorted image."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Sample:
        picture = Image.from_pixels(np.full((8, 8, 3), 90, np.uint8))
        sample = Sample("one", "Is it so?", (picture,), ("yes indeed",))
        return distorted(sample, ("none",), np.random.default_rng(0))


class Listener:
    """Replies from a list and records all messages and requests."""

    def __init__(self, *replies: str) -> None:
        self.replies = replies
        self.shown: list[list[Message]] = []
        self.asked: list[TurnRequest] = []

    def __call__(self, messages: Sequence[Message], request: TurnRequest) -> str:
        self.shown.append(list(messages))
        self.asked.append(request)
        return self.replies[len(self.asked) - 1]


def coding(source: Source | None = None) -> gym.Env[object, str]:
    return make_coding(data=source or One())  # type: ignore[return-value]


def played(
    env: gym.Env[object, str], made: Callable[..., object], listener: Listener, **options: bool
) -> Episode:
    policy = made(ScriptedPolicy(listener), **options)
    return asyncio.run(play(env, policy, EpisodeSpec(0)))  # type: ignore[arg-type]


def test_direct_asks_for_an_answer_and_explains_no_tool() -> None:
    listener = Listener("<answer>Yes, indeed!</answer>")
    episode = played(coding(), DirectPolicy, listener)
    (messages,), (request,) = listener.shown, listener.asked
    assert [message.role for message in messages] == ["user"]
    said = messages[0].plain()
    assert "Question: Is it so?" in said
    assert said.endswith(PROMPTS.answer)
    assert "OpenCV" not in said
    assert (request.prefill, request.stop) == ("<answer>", ("</answer>",))
    assert re.fullmatch(str(request.regex), "yes</answer>")
    assert not re.fullmatch(str(request.regex), "<code>…</code></answer>")
    # the environment scores it like any other answer
    assert (episode.status, len(episode.turns)) == ("terminated", 1)
    assert episode.metrics["accuracy"] == 1.0
    assert episode.segments == ()


def test_chain_of_thought_thinks_and_takes_no_step() -> None:
    listener = Listener("<think>It is <code>so</code>.</think><answer>yes</answer>")
    episode = played(coding(), ChainOfThoughtPolicy, listener)
    assert listener.shown[0][-1].plain().endswith(PROMPTS.reason)
    assert listener.asked[0].prefill == "<think>"
    assert not any(isinstance(event, ToolCalled) for event in episode.events)
    assert episode.turns[0].text.startswith("<think>It is")
    # against "yes indeed", "yes" has precision 1 and recall 1/2: F1 2 * 1 / (1 + 2)
    assert episode.metrics["f1"] == pytest.approx(2 / 3)


def test_beginning_of_the_turn_leads_without_words() -> None:
    listener = Listener("<answer>yes</answer>")
    played(coding(), DirectPolicy, listener, instruct=False)
    assert "inside <answer>" not in listener.shown[0][-1].plain()
    assert listener.asked[0].prefill == "<answer>"


@pytest.mark.parametrize("made", [DirectPolicy, ChainOfThoughtPolicy])
@pytest.mark.parametrize(
    "said",
    [
        "Yes, indeed.",  # the server does not continue the prefix, and there are no tags
        "<think>Let me see.</think>Yes, indeed.",
        "<think>It is.</think><code>yes indeed</code>",
        "<problem>yes</problem> indeed",
        "<think>yes indeed",  # never closed
        "<answer>yes indeed",
        "<answer>yes</answer><answer>indeed</answer>",
    ],
)
def test_reply_without_answer_tags_is_the_answer(made: type[DirectPolicy], said: str) -> None:
    episode = played(coding(), made, Listener(said))
    assert episode.status == "terminated"
    assert episode.metrics["accuracy"] == 1.0


@given(st.text(alphabet="<>/answerthinkcode ", max_size=40) | st.text(max_size=20))
def test_reply_of_any_text_answers(said: str) -> None:
    env = coding()
    for made in (DirectPolicy, ChainOfThoughtPolicy):
        episode = played(env, made, Listener(said))
        assert episode.status == "terminated"
        (answer,) = [event for event in episode.events if isinstance(event, Answered)]
        assert "<answer>" not in answer.answer


def test_retrieval_searches_for_the_question_and_what_is_seen() -> None:
    env = make_search(preset="tiny", hops=[1])
    env.reset(seed=0)
    sample = env.unwrapped.sample  # type: ignore[attr-defined]
    (query,) = sample.ground_truth.queries
    listener = Listener(f" {query} ", f"<answer>{sample.answers[0]}</answer>")
    episode = played(env, RetrievalPolicy, listener)  # type: ignore[arg-type]
    look, answer = listener.shown
    assert look[-1].plain().endswith(PROMPTS.look)
    (call,) = [event for event in episode.events if isinstance(event, ToolCalled)]
    assert call.arguments == {"query": f"{sample.question} {query}"}
    assert "<information>" in answer[-1].plain()
    assert answer[-1].plain().endswith(PROMPTS.answer)
    assert (episode.status, episode.metrics["accuracy"], len(episode.turns)) == (
        "terminated",
        1.0,
        2,
    )


def test_retrieval_without_words_searches_for_the_question_alone() -> None:
    env = make_search(preset="tiny", hops=[1])
    listener = Listener("<answer>nobody</answer>")
    episode = played(env, RetrievalPolicy, listener, instruct=False)  # type: ignore[arg-type]
    (call,) = [event for event in episode.events if isinstance(event, ToolCalled)]
    assert call.arguments == {"query": "Who owns this?"}


@pytest.mark.slow
def test_prompt_that_is_rebuilt_replaces_the_old_one() -> None:
    env = make_search(preset="tiny", hops=[1], compat="arft")
    listener = Listener("cyan square", "<answer>nobody</answer>")
    played(env, RetrievalPolicy, listener)  # type: ignore[arg-type]
    look, answer = listener.shown
    assert len(look) == len(answer) == 1
    assert answer[0].plain().endswith(PROMPTS.answer)


def test_retrieval_needs_something_to_search() -> None:
    with pytest.raises(ConfigurationError, match=r"tool 'search', got one with: problem, code"):
        played(coding(), RetrievalPolicy, Listener())


def test_baselines_by_name_on_the_command_line() -> None:
    policy = make_policy("direct", ["policy=openai", "model=some", "instruct=false"])
    assert isinstance(policy, DirectPolicy)
    assert (
        repr(policy.policy) == "OpenAIPolicy('some', 'http://localhost:8000/v1/chat/completions')"
    )
    assert policy.instruct is False


def test_closing_closes_the_policy() -> None:
    closed = []

    class Closing(ScriptedPolicy):
        @override
        def close(self) -> None:
            closed.append(True)

    DirectPolicy(Closing(["x"])).close()
    assert closed == [True]
