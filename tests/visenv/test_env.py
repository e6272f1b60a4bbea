"""Tests `VisEnv`: all kinds of turns, on the adder and on an environment that shows images."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from visenv.env import EpisodeLimits, Observation, VisEnv
from visenv.errors import ConfigurationError, DataError, EpisodeOverError, ServiceError, ToolError
from visenv.evaluation.controls import NoTool
from visenv.grammar import KeyValueGrammar
from visenv.testing import toy
from visenv.testing.toy import SumTruth
from visenv.tools.base import Arguments, Store, Tool, ToolResult
from visenv.types import (
    Aborted,
    Answered,
    EventLog,
    Image,
    Malformed,
    Message,
    Sample,
    StepResult,
    ToolCalled,
    Truncated,
    TurnRequest,
    TurnTaken,
)

ADD = "<think>go</think><tool>\nname: add\namount: {}\n</tool>"
TROUBLE = "<tool>\nname: trouble\nkind: {}\n</tool>"


def adder(**options: Any) -> VisEnv:
    """Return the bare environment, without its reward."""
    env = toy.make(**options).unwrapped
    assert isinstance(env, VisEnv)
    return env


def record(info: dict[str, Any]) -> StepResult:
    found = info["step"]
    assert isinstance(found, StepResult)
    return found


def shows(text: str) -> Observation:
    return {"text": text, "images": ()}


def kinds(info: dict[str, Any]) -> list[type]:
    return [type(event) for event in record(info).events]


def test_check_env_passes_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(toy.register(), render_mode="ansi").unwrapped)
        # The checker's only warning about the rewarded environment is that it is wrapped.
        warnings.filterwarnings("ignore", ".*different from the unwrapped version")
        check_env(gym.make(toy.register(), render_mode="rgb_array"), skip_render_check=True)


def test_reset_shows_the_opening_and_asks_for_a_turn() -> None:
    env = adder()
    observation, info = env.reset(seed=0)
    first, second = env.sample.ground_truth.add
    assert observation == shows(f"Add {first}, then {second}, and say the total.")
    assert record(info).messages == (Message("user", (observation["text"],)),)
    assert record(info).request == TurnRequest(stop=("</tool>", "</answer>"))
    assert (info["aborted"], info["truncated_by"], env.turns_left) == ("", "", 4)


def test_tool_call_shows_its_result() -> None:
    env = adder()
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(ADD.format(12))
    assert observation == shows("<result>\ntotal 12\n</result>")
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert record(info).events == (
        TurnTaken(0, ADD.format(12), "go"),
        ToolCalled(0, "add", {"amount": 12}, True, "", (), {"total": 12}),
    )
    assert record(info).request is not None
    assert list(env.log) == list(record(info).events)


def test_right_answer_terminates_with_its_outcome_and_metrics() -> None:
    env = adder()
    env.reset(seed=0)
    total = env.sample.answers[0]
    observation, reward, terminated, truncated, info = env.step(f"<answer> {total} </answer>")
    assert observation == shows("")
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert record(info).events[1] == Answered(0, total)
    assert record(info).request is None
    assert record(info).metrics == {"accuracy": 1.0}
    assert env.metrics() == {"accuracy": 1.0}


def test_episode_score_is_that_of_the_present_events() -> None:
    env = adder()
    env.reset(seed=0)
    assert env.episode_score == 0.0
    env.step(f"<answer>{env.sample.answers[0]}</answer>")
    assert env.episode_score == 1.0
    env.log.append(Answered(1, "another answer"))
    assert env.episode_score == 0.0
    env.log = EventLog([*env.log[:-1], Answered(1, env.sample.answers[0])])
    assert env.episode_score == 1.0
    env.reset(seed=0)
    assert env.episode_score == 0.0


def test_answer_that_is_wrong_terminates_with_reward_0() -> None:
    env = adder()
    env.reset(seed=0)
    assert env.step("<answer>-1</answer>")[1:4] == (0.0, True, False)


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        ("", "neither a tool call nor an answer"),
        ("<tool>\nname: add\n", "not closed"),
        ("<tool>\nname: divide\nby: 0\n</tool>", "There is no tool called 'divide'. Tools: add."),
        ("<tool>\nname: add\namount: many\n</tool>", "add takes amount."),
        ("<tool>\nname: add\namount: 100\n</tool>", "less than or equal to 99"),
        ("<tool>\nname: add\n</tool>", "Field required"),
        ("<tool>\nname: add\namount: 1\nextra: 2\n</tool>", "extra"),
    ],
)
def test_call_that_cannot_be_done_is_answered_and_costs_a_turn(turn: str, says: str) -> None:
    env = adder()
    env.reset(seed=0)
    observation, reward, terminated, truncated, _ = env.step(turn)
    assert observation["text"].startswith("<result>\nError: ")
    assert says in observation["text"]
    assert (reward, terminated, truncated, env.turns_left) == (0.0, False, False, 3)


def test_malformed_turn_and_a_failed_call_are_different_events() -> None:
    env = adder(turns=9)
    env.reset(seed=0)
    assert kinds(env.step("hello")[4]) == [TurnTaken, Malformed]
    assert kinds(env.step("<tool>\nname: add\n")[4]) == [TurnTaken, Malformed, ToolCalled]
    *_, info = env.step("<tool>\nname: divide\n</tool>")
    called = record(info).events[1]
    assert isinstance(called, ToolCalled)
    assert (called.tool, called.ok) == ("divide", False)
    assert called.reason == "There is no tool called 'divide'. Tools: add."
    assert [call.ok for call in env.log.tool_calls] == [False, False]


def test_last_turn_truncates() -> None:
    env = adder(turns=2)
    env.reset(seed=0)
    env.step(ADD.format(1))
    _, reward, terminated, truncated, info = env.step(ADD.format(1))
    assert (reward, terminated, truncated, info["truncated_by"]) == (0.0, False, True, "turns")
    assert record(info).events[-1] == Truncated(1, "turns")
    assert record(info).request is None
    assert record(info).metrics == {"accuracy": 0.0}


def test_answer_in_the_last_turn_terminates() -> None:
    env = adder(turns=1)
    env.reset(seed=0)
    assert env.step("<answer>0</answer>")[2:4] == (True, False)


def test_invalid_actions_truncate_and_valid_ones_do_not_count() -> None:
    env = adder(turns=9, invalid_actions=2)
    env.reset(seed=0)
    assert not env.step("hello")[3]
    assert not env.step(ADD.format(1))[3]
    *_, truncated, info = env.step("<tool>\nname: divide\n</tool>")
    assert (truncated, info["truncated_by"]) == (True, "invalid actions")
    env.reset(seed=0)
    assert not env.step("hello")[3], "a new episode counts from nothing"


def test_failed_service_aborts() -> None:
    env = adder(trouble=True)
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(TROUBLE.format("service"))
    assert observation == shows("")
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["aborted"], info["truncated_by"]) == ("search: the server is down", "")
    assert record(info).events[-1] == Aborted(0, "search", "the server is down")
    assert record(info).metrics == {}
    with pytest.raises(EpisodeOverError):
        env.step("x")


def test_failed_service_can_raise_instead() -> None:
    env = adder(trouble=True, on_abort="raise")
    env.reset(seed=0)
    with pytest.raises(ServiceError, match="search: the server is down"):
        env.step(TROUBLE.format("service"))


@pytest.mark.parametrize("on_abort", ["truncate", "raise"])
def test_notice_of_a_failed_simulator_aborts(
    on_abort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = adder(on_abort=on_abort)
    opened: list[str] = []
    monkeypatch.setattr(next(iter(env.tools.values())), "open", lambda: opened.append("open"))
    env.reset(seed=0)
    turns: list[int] = []

    def fail() -> tuple[str, ...]:
        turns.append(env.turn)
        raise ServiceError("simulator", "no frame")

    monkeypatch.setattr(env, "turn_notice", fail)
    if on_abort == "raise":
        with pytest.raises(ServiceError, match="no frame"):
            env.step(ADD.format(1))
        assert (env.turn, len(env.log)) == (0, 0)
    else:
        observation, _, terminated, truncated, info = env.step(ADD.format(1))
        assert (observation, terminated, truncated) == (shows(""), False, True)
        assert (info["aborted"], info["truncated_by"]) == ("simulator: no frame", "")
        assert record(info).events[-1] == Aborted(0, "simulator", "no frame")
    assert turns == [1], "the notice belongs to the next turn"
    env.reset(seed=0)
    assert opened == ["open", "open"], "the simulator is opened again"


def test_bug_in_a_tool_is_not_hidden() -> None:
    env = adder(trouble=True)
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match="a bug in a tool"):
        env.step(TROUBLE.format("error"))


def test_stepping_what_is_over_or_not_begun_raises() -> None:
    env = adder()
    with pytest.raises(EpisodeOverError, match="reset"):
        env.step("x")
    env.reset(seed=0)
    env.step("<answer>1</answer>")
    with pytest.raises(EpisodeOverError, match="reset"):
        env.step("x")


def test_action_that_is_no_string_is_the_callers_fault() -> None:
    env = adder()
    env.reset(seed=0)
    with pytest.raises(TypeError, match="a string, got bytes"):
        env.step(b"x")  # type: ignore[arg-type]


@given(st.text(alphabet=st.characters(), max_size=200))
def test_step_never_raises_for_a_text(text: str) -> None:
    env = adder(turns=2)
    env.reset(seed=0)
    observation, reward, *_ = env.step(text)
    assert env.observation_space.contains(observation)
    assert 0.0 <= reward <= 1.0


def test_episode_is_seeded() -> None:
    one, other = adder(), adder()
    assert one.reset(seed=5)[0] == other.reset(seed=5)[0]
    assert one.step(ADD.format(3))[0] == other.step(ADD.format(3))[0]
    texts = {one.reset(seed=seed)[0]["text"] for seed in range(30)}
    assert len(texts) > 20


class Rows:
    """Holds a finite number of rows."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Sample:
        return Sample(
            f"row-{index}", f"question {index}", answers=("1",), ground_truth=SumTruth(add=(0, 1))
        )


def of_rows() -> VisEnv:
    return toy.Adder(source=Rows(), grammar=KeyValueGrammar(), limits=EpisodeLimits(2))


def test_options_pick_the_sample() -> None:
    env = of_rows()
    env.reset(seed=0, options={"index": 2})
    assert env.sample.id == "row-2"
    mine = Sample("mine", "what?")
    observation, _ = env.reset(seed=0, options={"sample": mine})
    assert env.sample is mine
    assert observation["text"] == "what?"
    ids = set()
    for seed in range(20):
        env.reset(seed=seed)
        ids.add(env.sample.id)
    assert ids == {"row-0", "row-1", "row-2"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"index": 3}, "0 to 2, got 3"),
        ({"index": -1}, "0 to 2, got -1"),
        ({"index": True}, "got True"),
        ({"index": "1"}, "got '1'"),
        ({"sample": "row"}, "must be a Sample"),
        ({"row": 1}, r"got \['row'\]"),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        of_rows().reset(options=options)


def test_procedural_source_has_no_index() -> None:
    with pytest.raises(ConfigurationError, match="procedural: pass a seed"):
        adder().reset(options={"index": 0})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"render_mode": "human"}, "render_mode must be one of"),
        ({"on_abort": "ignore"}, "on_abort must be"),
        ({"turns": 0}, "at least 1 turn"),
    ],
)
def test_constructor_refuses(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        toy.make(**options)


def test_rendering_as_text_is_the_conversation() -> None:
    env = adder(render_mode="ansi")
    env.reset(
        options={"sample": Sample("s", "what?", answers=("1",), ground_truth=SumTruth(add=(0, 1)))}
    )
    env.step(ADD.format(5))
    assert env.render() == (
        f"[user]\nwhat?\n\n[assistant]\n{ADD.format(5)}\n\n[user]\n<result>\ntotal 5\n</result>"
    )
    env.reset(options={"sample": Sample("s", "again?")})
    assert env.render() == "[user]\nagain?"


def test_rendering_without_a_mode_or_an_image() -> None:
    env = adder()
    env.reset(seed=0)
    assert env.render() is None
    env = adder(render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (1, 1, 3)


def test_copy_pickled_in_the_middle_continues_the_same() -> None:
    env = adder()
    env.reset(seed=4)
    env.step(ADD.format(7))
    twin = pickle.loads(pickle.dumps(env))
    for turn in (ADD.format(8), "hello", "<answer>15</answer>"):
        mine, theirs = env.step(turn), twin.step(turn)
        assert mine == theirs
    assert list(env.log) == list(twin.log)
    assert env.reset()[0] == twin.reset()[0], "the generators go on the same, too"


class NoArguments(Arguments):
    """Holds no arguments."""


class Camera(Tool[NoArguments]):
    """Returns a long text and a 20 x 10 image."""

    name = "look"
    description = "Looks."
    arguments = NoArguments

    @override
    def call(self, arguments: NoArguments, store: Store) -> ToolResult:
        ramp = np.arange(20 * 10 * 3, dtype=np.uint8).reshape(10, 20, 3)
        return ToolResult(("x" * 50, Image.from_pixels(ramp)))


def with_camera(**options: Any) -> VisEnv:
    limits = EpisodeLimits(3, tool_characters=8, image_pixels=60)
    return toy.Adder(
        source=Rows(), grammar=KeyValueGrammar(), tools=[Camera()], limits=limits, **options
    )


def test_long_results_are_cut_and_large_images_shrunk() -> None:
    env = with_camera(render_mode="rgb_array")
    env.reset(seed=0)
    observation, *_, info = env.step("<tool>\nname: look\n</tool>")
    # 50 characters, 8 shown: 42 are left. 20 x 10 = 200 pixels for a budget of 60: the scale is
    # sqrt(60 / 200) = 0.5477, so 20 x 0.5477 = 10.9 and 10 x 0.5477 = 5.4: 10 wide, 5 high.
    assert "xxxxxxxx… [42 more characters]" in observation["text"]
    assert observation["text"].count("<image>") == len(observation["images"]) == 1
    assert observation["images"][0].shape == (5, 10, 3)
    called = record(info).events[1]
    assert isinstance(called, ToolCalled)
    assert called.outputs == ("tool_result_1",)
    assert env.store.image("tool_result_1").size == (10, 5)
    assert np.array_equal(env.render(), observation["images"][0])


class Complaining(Camera):
    """Repeats its arguments in an error."""

    @override
    def run(self, raw: Mapping[str, Any], store: Store) -> ToolResult:
        raise ToolError(f"bad arguments {raw}")


def test_long_errors_of_tools_are_cut() -> None:
    env = toy.Adder(
        source=Rows(),
        grammar=KeyValueGrammar(),
        tools=[Complaining()],
        limits=EpisodeLimits(3, tool_characters=13),
    )
    env.reset(seed=0)
    observation, *_, info = env.step(f"<tool>\nname: look\nat: {'x' * 2**20}\n</tool>")
    called = record(info).events[1]
    assert isinstance(called, ToolCalled)
    # "bad arguments" has 13 characters; " {'at': '" has 9 and "'}" has 2.
    assert called.reason == f"bad arguments… [{9 + 2**20 + 2} more characters]"
    assert f"Error: {called.reason}\n" in observation["text"]


def test_observation_shares_no_memory_with_the_episode() -> None:
    env = with_camera()
    env.reset(seed=0)
    observation, *_ = env.step("<tool>\nname: look\n</tool>")
    before = env.store.image("tool_result_1").pixels.copy()
    observation["images"][0][:] = 0
    assert np.array_equal(env.store.image("tool_result_1").pixels, before)


class Noting(Camera):
    """Records which of its methods are called."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    @override
    def open(self) -> None:
        self.calls.append("open")

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        self.calls.append("reset")

    @override
    def end_episode(self) -> None:
        self.calls.append("end_episode")

    @override
    def close(self) -> None:
        self.calls.append("close")


def test_tools_are_opened_once_and_reset_for_each_episode() -> None:
    tool = Noting()
    env = toy.Adder(source=Rows(), grammar=KeyValueGrammar(), tools=[tool], limits=EpisodeLimits(1))
    assert tool.calls == []
    env.reset(seed=0)
    env.reset(seed=1)
    assert tool.calls == ["open", "reset", "end_episode", "reset"]
    env.close()
    assert tool.calls[4:] == ["end_episode", "close"]
    env.close()
    assert len(tool.calls) == 6, "a closed environment has nothing left to close"
    env.reset(seed=0)
    assert tool.calls[6:] == ["open", "reset"]


def test_tools_that_a_control_removed_are_not_opened() -> None:
    tool = Noting()
    env = toy.Adder(source=Rows(), grammar=KeyValueGrammar(), tools=[tool], limits=EpisodeLimits(1))
    without = NoTool(env)
    without.reset(seed=0)
    without.close()
    assert tool.calls == []


def test_oracle_is_right_and_the_random_answer_a_number() -> None:
    env = adder()
    env.reset(seed=2)
    result: tuple[Any, ...] = ()
    for _ in range(3):
        result = env.step(env.grammar.compose(env.oracle_turn()))
    assert result[1:4] == (1.0, True, False)
    assert env.random_answer(np.random.default_rng(0)).isdigit()


class Unreadable(Rows):
    """Holds a finite number of rows, the second of them broken."""

    @override
    def __getitem__(self, index: int) -> Sample:
        if index == 1:
            raise DataError("row 1 has no question")
        return super().__getitem__(index)


def test_reset_that_fails_leaves_no_old_episode() -> None:
    env = toy.Adder(source=Unreadable(), grammar=KeyValueGrammar(), limits=EpisodeLimits(2))
    env.reset(options={"index": 0})
    with pytest.raises(DataError, match="row 1"):
        env.reset(options={"index": 1})
    with pytest.raises(EpisodeOverError):
        env.step("x")
    assert not hasattr(env, "sample")
    env.reset(options={"index": 2})
    assert env.step("<answer>1</answer>")[1] == 1.0


@pytest.mark.parametrize(
    "data",
    [3, None, True, b"rows", {"question": "?"}, {1, 2}, [], ["a.png"], [{"id": "1"}], object],
)
def test_data_that_is_no_source_is_refused_when_the_environment_is_made(data: Any) -> None:
    with pytest.raises(ConfigurationError, match="data must be the name of a data set"):
        gym.make("visenv/ArmVQA-v0", data=data)


def test_list_of_samples_is_a_source() -> None:
    samples = [Sample("1", "Add.", ground_truth=SumTruth(add=(1, 2)))]
    env = toy.Adder(source=samples, grammar=KeyValueGrammar(), limits=EpisodeLimits(2))
    env.reset(seed=0)
    assert env.sample == samples[0]
