"""Tests that the contract passes good environments, and that each check finds its flaw."""

from __future__ import annotations

import itertools
import pickle
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from pydantic import Field
from typing_extensions import override

from visenv.env import EpisodeLimits, Observation, VisEnv
from visenv.errors import ServiceError, ToolError
from visenv.grammar import KeyValueGrammar, ParsedTurn, ToolCall
from visenv.rewards import RewardTerm, RewardWrapper, of_log
from visenv.testing import EnvContract, check_all, contract, toy
from visenv.testing.contract import CHECKS
from visenv.testing.record import assert_same, facts
from visenv.tools.base import Arguments, Store, Tool, ToolResult
from visenv.types import EventLog, Image, Message, Sample, TurnRequest

pytestmark = pytest.mark.component("hypothesis")

NAMED = {check.__name__: check for check in CHECKS}

# ------------------------------------------------------- an environment that shows images


class LookArguments(Arguments):
    """Selects a picture."""

    place: int = Field(description="0 or 1", ge=0, le=1)


class Look(Tool[LookArguments]):
    """Returns the image object of the sample itself, in every call."""

    name = "look"
    description = "Shows a picture."
    arguments = LookArguments

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        self._images = sample.images

    @override
    def call(self, arguments: LookArguments, store: Store) -> ToolResult:
        image = self._images[arguments.place]
        return ToolResult((image, image, "the same <image> twice"))

    @override
    def example(self) -> LookArguments:
        return LookArguments(place=0)

    @override
    def random_arguments(self, rng: np.random.Generator, store: Store) -> LookArguments:
        return LookArguments(place=int(rng.integers(2)))


class Pictures:
    """Draws two pictures, each of a single gray; the answer contains both grays."""

    def sample(self, rng: np.random.Generator) -> Sample:
        grays = rng.choice(256, size=2, replace=False)
        images = tuple(
            Image.from_pixels(np.full((4 + place, 6, 3), gray, np.uint8))
            for place, gray in enumerate(grays)
        )
        answer = str(int(grays[0]) + 256 * int(grays[1]))
        return Sample(f"{grays[0]}-{grays[1]}", "Which greys?", images, (answer,))


class Gallery(VisEnv):
    """Shows a picture, and others by calls, before the answer."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(
            source=Pictures(),
            grammar=KeyValueGrammar(),
            tools=[Look()],
            limits=EpisodeLimits(turns=4),
            render_mode=render_mode,
        )

    @override
    def initial_messages(self) -> list[Message]:
        return [Message("user", ("Look: ", self.sample.images[0], self.sample.question))]

    @override
    def turn_request(self) -> TurnRequest:
        regex = self.grammar.answer_regex("<think>") if self.turns_left == 1 else None
        return TurnRequest("<think>", self.grammar.stop, regex)

    @override
    def task_score(self) -> float:
        return float(self.log.answer in self.sample.answers)

    @override
    def oracle_turn(self) -> ParsedTurn:
        if self.turn < 2:
            return ParsedTurn("again", (ToolCall("look", {"place": 0}),))
        return ParsedTurn("seen", answer=self.sample.answers[0])


def _correct(log: EventLog, sample: Sample) -> float:
    return float(log.answer in sample.answers)


def _many_calls(log: EventLog, sample: Sample) -> float:
    return float(len(log.tool_calls) > 2)


def make_gallery(render_mode: str | None = None) -> gym.Env[Observation, str]:
    """Make a gallery with reward 1 for the answer, and a penalty that the oracle avoids."""
    terms = (
        RewardTerm("correct", 1.0, of_log(_correct)),
        RewardTerm("calls", -0.5, of_log(_many_calls)),
    )
    return RewardWrapper(Gallery(render_mode), terms)


def register(env_id: str, entry_point: str | Callable[..., Any]) -> str:
    if env_id not in gym.registry:
        gym.register(env_id, entry_point)
    return env_id


GALLERY = register("visenv-testing/Gallery-v0", f"{__name__}:make_gallery")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("env_id", [toy.register(), GALLERY])
def test_good_environments_pass(env_id: str, check: Callable[..., None]) -> None:
    check(partial(gym.make, env_id))


def test_gallery_shows_images_at_every_turn() -> None:
    """Check that the checks of memory have images to test."""
    env = gym.make(GALLERY)
    assert len(env.reset(seed=0)[0]["images"]) == 1
    base = env.unwrapped
    assert isinstance(base, VisEnv)
    observation = env.step(base.grammar.compose(base.oracle_turn()))[0]
    assert len(observation["images"]) == 2


def test_check_all_and_the_class_run_every_check(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[object] = []
    make = partial(gym.make, GALLERY)
    monkeypatch.setattr(contract, "CHECKS", [ran.append, ran.append])
    check_all(make)
    assert ran == [make, make]
    names = {name for name in vars(EnvContract) if name.startswith("test_")}
    assert names == {check.__name__.replace("check_", "test_", 1) for check in CHECKS}
    assert EnvContract.test_conforms.__doc__ == NAMED["check_conforms"].__doc__  # type: ignore[attr-defined]


class TestGalleryByClass(EnvContract):
    """Inherits its tests, in the form that the documentation shows; pytest collects them."""

    @override
    def make(self) -> gym.Env[Observation, str]:
        return gym.make(GALLERY)


def test_contract_without_make_explains_the_missing_method() -> None:
    with pytest.raises(NotImplementedError, match="Write make"):
        EnvContract().make()


# ------------------------------------------------------- flaws


class WallClock(Gallery):
    """Shows a different text after each reset in the process."""

    count = itertools.count()

    @override
    def initial_messages(self) -> list[Message]:
        return [Message("user", (f"at {next(self.count)}",))]


class LastBit(Gallery):
    """Pays a reward that differs in its last bit in the second episode of each instance."""

    episodes = 0

    @override
    def reset(self, **kwargs: Any) -> Any:
        self.episodes += 1
        return super().reset(**kwargs)

    @override
    def task_score(self) -> float:
        return float(np.nextafter(super().task_score(), self.episodes % 2))


class OneEpisode(Gallery):
    """Ignores the seed."""

    @override
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=0, options=options)


class SharesState(Gallery):
    """Sends views of the images that it keeps."""

    @override
    def step(self, action: str) -> Any:
        observation, *rest = super().step(action)
        kept = tuple(self.sample.images[0].pixels[:] for _ in observation["images"])
        return {**observation, "images": kept}, *rest


class ReusesBuffer(Gallery):
    """Sends the same buffer in every step."""

    buffer = np.zeros((4, 6, 3), np.uint8)

    @override
    def step(self, action: str) -> Any:
        observation, *rest = super().step(action)
        return {**observation, "images": tuple(self.buffer for _ in observation["images"])}, *rest


class Writable(Gallery):
    """Sends an image whose memory can be written to."""

    @override
    def initial_messages(self) -> list[Message]:
        self.sample.images[0].pixels.flags.writeable = True
        return super().initial_messages()


class Feedback(Gallery):
    """Reads the observations that it returned before."""

    returned: Any

    @override
    def step(self, action: str) -> Any:
        returned = super().step(action)
        self.returned = returned[4]
        return returned

    @override
    def initial_messages(self) -> list[Message]:
        self.returned = {"step": None}
        return super().initial_messages()

    @override
    def turn_request(self) -> TurnRequest:
        return super().turn_request()._replace(max_tokens=1 + len(self.returned))


class RaisesOnNul(Gallery):
    @override
    def step(self, action: str) -> Any:
        if "\0" in action:
            raise ValueError("embedded null character")
        return super().step(action)


class RaisesOnRareLetter(Gallery):
    """Raises on letters that only fuzzing finds."""

    @override
    def step(self, action: str) -> Any:
        if any(ord(letter) > 0x3000 and letter.isalpha() for letter in action):
            raise ValueError("codec can't encode")
        return super().step(action)


class Endless(Gallery):
    """Does not count malformed turns."""

    @override
    def turn_events(self, turn: ParsedTurn) -> Any:
        if turn.problems:
            self.turn = 0
        return ()


class StepsOn(Gallery):
    """Allows steps after the end of the episode."""

    @override
    def step(self, action: str) -> Any:
        self._over = False
        return super().step(action)


class NumpyReward(Gallery):
    @override
    def step(self, action: str) -> Any:
        observation, reward, *rest = super().step(action)
        return observation, np.float64(reward), *rest


class NumpyFlag(Gallery):
    @override
    def step(self, action: str) -> Any:
        observation, reward, terminated, *rest = super().step(action)
        return observation, reward, np.bool_(terminated), *rest


class NanReward(Gallery):
    @override
    def step(self, action: str) -> Any:
        observation, _, *rest = super().step(action)
        return observation, float("nan"), *rest


class ListOfImages(Gallery):
    @override
    def step(self, action: str) -> Any:
        observation, *rest = super().step(action)
        return {**observation, "images": list(observation["images"])}, *rest


class EchoesMarkers(Gallery):
    """Copies the text of the policy into the observation, unchanged."""

    @override
    def step(self, action: str) -> Any:
        observation, *rest = super().step(action)
        return {**observation, "text": observation["text"] + action[-40:]}, *rest


class Repeating(Look):
    """Repeats the text of the policy in its error."""

    @override
    def run(self, raw: Mapping[str, Any], store: Store) -> ToolResult:
        raise ToolError(f"I do not understand {raw}.")


class RepeatsArguments(Gallery):
    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.tools = {"look": Repeating()}


class Converting(Look):
    """Converts a number of any length to a float."""

    @override
    def run(self, raw: Mapping[str, Any], store: Store) -> ToolResult:
        place = raw.get("place")
        if isinstance(place, int) and float(place) < 0:
            raise ToolError("Places are not negative.")
        return super().run(raw, store)


class ConvertsNumbers(Gallery):
    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.tools = {"look": Converting()}


class Fragile(Gallery):
    """Fails like a service that hostile text can break."""

    @override
    def turn_events(self, turn: ParsedTurn) -> Any:
        if turn.problems:
            raise ServiceError("search", "bad query")
        return ()


class Unpicklable(Gallery):
    @override
    def initial_messages(self) -> list[Message]:
        self.key = lambda: None
        return super().initial_messages()


class ForgetsItsTurn(Gallery):
    @override
    def __getstate__(self) -> Any:
        return {**self.__dict__, "turn": 0}


class ForgetsItsGenerator(Gallery):
    @override
    def __getstate__(self) -> Any:
        return {**self.__dict__, "_np_random": np.random.default_rng(0)}


class WrongOracle(Gallery):
    @override
    def oracle_turn(self) -> ParsedTurn:
        return ParsedTurn("", answer="0" * (self.sample.id[0] != "1"))


class SilentOracle(Gallery):
    @override
    def oracle_turn(self) -> ParsedTurn:
        return ParsedTurn("nothing to say")


class CarefreeOracle(Gallery):
    """Gives the right answer, but without the thought that the request requires."""

    @override
    def oracle_turn(self) -> ParsedTurn:
        return super().oracle_turn()._replace(thought=None)


class UnmatchedOracle(Gallery):
    """Requests a last turn that matches an expression; the oracle does not know the expression."""

    @override
    def turn_request(self) -> TurnRequest:
        return TurnRequest("<think>", self.grammar.stop, r"[a-z]*</think><answer>\d</answer>")


class Generous(Gallery):
    @override
    def task_score(self) -> float:
        return 1.0


def _generous_terms(log: EventLog, sample: Sample) -> float:
    return 1.0


class PaysAttendance(Gallery):
    """Pays for every turn."""

    @override
    def step(self, action: str) -> Any:
        observation, reward, *rest = super().step(action)
        return observation, reward + 0.25, *rest


class SolvedBySilence(Gallery):
    """Scores an episode without an answer as solved."""

    @override
    def task_score(self) -> float:
        return 1.0 if self.log.answer is None else super().task_score()


FLAWS: list[tuple[str, type[VisEnv], str]] = [
    ("check_deterministic", WallClock, r"in one instance twice. At \[0\]\.observation\['text'\]"),
    ("check_deterministic", LastBit, r"\.reward: expected float"),
    ("check_differs_across_seeds", OneEpisode, "different episodes of 12 seeds, saw one"),
    ("check_shares_no_memory", SharesState, r"fresh array .* one of \(4, 6, 3\)"),
    ("check_shares_no_memory", ReusesBuffer, "fresh array"),
    ("check_shares_no_memory", Writable, "to be read-only"),
    ("check_shares_no_memory", Feedback, r"Overwriting a result.*max_tokens: expected int 4"),
    ("check_survives_hostile_text", RaisesOnNul, r"'NUL': expected no exception, saw ValueError"),
    ("check_survives_any_text", RaisesOnRareLetter, "expected no exception, saw ValueError"),
    ("check_survives_hostile_text", Endless, "expected the end within 4 turns, saw none"),
    ("check_survives_hostile_text", StepsOn, "expected EpisodeOverError"),
    ("check_survives_hostile_text", NumpyReward, "finite float as reward, saw .*float64"),
    ("check_survives_hostile_text", NumpyFlag, "expected a bool as flag, saw .*bool"),
    ("check_survives_hostile_text", NanReward, "finite float as reward, saw .* nan"),
    ("check_survives_hostile_text", ListOfImages, "expected an observation in Dict"),
    ("check_survives_hostile_text", EchoesMarkers, "'image marker': expected 0 image markers"),
    ("check_survives_hostile_text", Fragile, "expected no abort, saw 'search: bad query'"),
    ("check_survives_huge_calls", RepeatsArguments, "at most 2000 characters, saw 4"),
    ("check_survives_huge_calls", ConvertsNumbers, "expected no exception, saw OverflowError"),
    ("check_pickles_mid_episode", ForgetsItsTurn, "A pickle after 1 turns must go on identically"),
    ("check_pickles_mid_episode", ForgetsItsGenerator, "A pickle after 0 turns"),
    ("check_rebuilds_from_json", Gallery, "Expected a spec that JSON can hold, saw Callable"),
    ("check_oracle_gets_the_top_reward", WrongOracle, "Expected the outcome 1 .* saw 0.0, seed"),
    ("check_oracle_gets_the_top_reward", SilentOracle, "to end seed 0, saw 'turns'"),
    ("check_oracle_keeps_to_the_request", CarefreeOracle, "to begin with '<think>', saw '<tool>"),
    ("check_oracle_keeps_to_the_request", UnmatchedOracle, r"to match .* saw 'again</think><tool>"),
    (
        "check_random_turns_rarely_reach_the_top",
        Generous,
        "by chance in fewer than half the episodes, saw it in",
    ),
    ("check_empty_turns_earn_little", PaysAttendance, "reward 1 of empty turns, saw 1 on average"),
    ("check_empty_turns_earn_little", SolvedBySilence, "of empty turns, saw 1.0, seed 0"),
]


@pytest.mark.parametrize(
    ("check", "flawed", "message"),
    FLAWS,
    ids=[f"{check}-{env.__name__}" for check, env, _ in FLAWS],
)
def test_flaw_is_found(check: str, flawed: type[VisEnv], message: str) -> None:
    env_id = register(f"visenv-testing/{flawed.__name__}Flawed-v0", flawed)
    with pytest.raises(AssertionError, match=re.compile(message, re.DOTALL)):
        NAMED[check](partial(gym.make, env_id, disable_env_checker=True))


def test_unpicklable_environment_is_found() -> None:
    env_id = register("visenv-testing/Unpicklable-v0", Unpicklable)
    # The message is the one of Python, which has other words and another class in each version.
    with pytest.raises((AttributeError, pickle.PicklingError), match="local object"):
        NAMED["check_pickles_mid_episode"](partial(gym.make, env_id))


def test_warnings_of_check_env_are_found() -> None:
    """Check that a warning fails: Gymnasium warns of a NaN reward, and goes on."""
    env_id = register("visenv-testing/NanReward-v0", NanReward)
    with pytest.raises(UserWarning, match="NaN"):
        NAMED["check_conforms"](partial(gym.make, env_id, disable_env_checker=True))


def test_reward_above_the_oracle_is_found() -> None:
    """Check that the oracle's reward of 0.5 is not taken for the top reward, which is 1.0."""

    def make() -> gym.Env[Observation, str]:
        terms = (
            RewardTerm("correct", 1.0, of_log(_correct)),
            RewardTerm("any", -0.5, of_log(_generous_terms)),
        )
        return RewardWrapper(Gallery(), terms)

    with pytest.raises(AssertionError, match=r"Expected the top reward 1 of the oracle, saw 0\.5"):
        NAMED["check_oracle_gets_the_top_reward"](make)


def test_environment_that_is_no_visenv_is_named() -> None:
    with pytest.raises(AssertionError, match="an environment that extends VisEnv, got Env"):
        NAMED["check_survives_hostile_text"](gym.Env)


# ----------------------------------------------------- comparisons


@pytest.mark.parametrize(
    ("left", "right", "place"),
    [
        (0.0, -0.0, ""),
        (1.0, 1, ""),
        (True, 1, ""),
        (np.float64(1), 1.0, ""),
        ([1.0], (1.0,), ""),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, r"\['a'\]\[1\]\['b'\]"),
        ({"a": 1}, {"a": 1, "b": 2}, ""),
        (TurnRequest("x"), TurnRequest("y"), r"\.prefill"),
        (np.zeros(2, np.uint8), np.zeros(2, np.int8), ""),
        (np.zeros((2, 1)), np.zeros((1, 2)), ""),
        (np.zeros(2), np.array([0, 5e-324]), ""),
    ],
)
def test_slightest_difference_is_named(left: object, right: object, place: str) -> None:
    with pytest.raises(AssertionError, match=f"^Equal. At {place}: expected .*, saw .*"):
        assert_same(facts(left), facts(right), "Equal.")
    assert_same(facts(left), facts(left), "Equal.")


def test_equal_values_are_equal_and_nan_is_itself() -> None:
    assert facts({"a": float("nan")}) == facts({"a": float("nan")})
    black = np.zeros((2, 2, 3), np.uint8)
    assert facts(Image.from_pixels(black)) == facts(Image.from_pixels(black.copy()))


def test_long_difference_is_cut() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_same(facts("a" * 10_000), facts("b" * 10_000), "Equal.")
    assert len(str(caught.value)) < 700
