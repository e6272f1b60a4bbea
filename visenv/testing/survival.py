"""Checks that no text of a policy makes an environment fail."""

from __future__ import annotations

import math

from visenv.errors import EpisodeOverError
from visenv.grammar.base import ParsedTurn, ToolCall
from visenv.packages import require_package
from visenv.rollout import EnvResult
from visenv.testing.hostile import TEXTS, huge, mangled, pieces
from visenv.testing.record import Env, MakeEnv, base_of, episode, go_on, turns_of
from visenv.types import IMAGE_MARKER, Malformed, StepResult, ToolCalled

EXAMPLES = 60
"""Number of texts that hypothesis tries on one environment."""

LONGEST_ERROR = 2_000
"""Maximum number of characters of an error message. It may list the tools, but not repeat the
policy's text."""


def require_hypothesis() -> None:
    """Check that the package that generates hostile texts is installed.

    Raises:
        ConfigurationError: If the package is missing; the message names the extra.
    """
    require_package("Checking an environment", "hypothesis")


def hostile_texts(env: Env) -> dict[str, str]:
    """Return by name the hostile texts of the corpus, and damaged turns of the oracle."""
    spoilt = {
        f"turn {place} {name}": text
        for place, turn in enumerate(turns_of(env, "oracle", seed=1))
        for name, text in mangled(turn).items()
    }
    return TEXTS | spoilt


def check_survives_hostile_text(make_env: MakeEnv) -> None:
    """Check that `step` survives every text of the corpus, and that every episode ends."""
    env = make_env()
    for name, text in hostile_texts(env).items():
        _say_only(env, text, f"The text {name!r}")


def check_survives_any_text(make_env: MakeEnv, examples: int = EXAMPLES) -> None:
    """Check the same for texts that hypothesis makes from any characters and damaged turns."""
    require_hypothesis()
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    env = make_env()
    parts = pieces("".join(turns_of(env, "oracle", seed=1)))
    anything = st.text(st.characters(exclude_categories=()))
    built = st.lists(st.sampled_from(parts) | anything).map("".join)

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,  # writes nothing to the current folder
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(anything | built)
    def say(text: str) -> None:
        _say_only(env, text, f"The text {text!r}")

    say()


def check_survives_huge_calls(make_env: MakeEnv) -> None:
    """Check that `step` survives huge names, arguments and numbers, and does not repeat them."""
    env = make_env()
    env.reset(seed=1)
    sample = base_of(env).sample
    for call in _example_calls(env):
        for name, text in huge(call).items():
            env.reset(seed=1, options={"sample": sample})
            _check_errors(env, text, f"The call {call!r} with {name:.200}")


def _example_calls(env: Env) -> list[str]:
    """Return an example call, without a thought, of one tool for each model of arguments."""
    base = base_of(env)
    tools = {tool.arguments: tool for tool in base.tools.values()}
    return [
        base.grammar.compose(
            ParsedTurn(calls=(ToolCall(tool.name, tool.example().model_dump(mode="json")),))
        )
        for tool in tools.values()
    ]


def _check_errors(env: Env, text: str, what: str) -> None:
    try:
        (step,) = go_on(env, [text])
    except Exception as error:
        raise AssertionError(f"{what}: expected no exception, saw {error!r:.200}.") from error
    _check_step(env, step, what)
    for event in step.info["step"].events:
        told = ""
        if isinstance(event, Malformed):
            told = event.message
        elif isinstance(event, ToolCalled) and not event.ok:
            told = event.reason
        assert len(told) <= LONGEST_ERROR, (
            f"{what}: expected an error of at most {LONGEST_ERROR} characters, saw {len(told)}: "
            f"{told[:200]}…"
        )


def _say_only(env: Env, text: str, what: str) -> None:
    """Send one text at every turn of an episode, with the current sample of the environment."""
    limit = base_of(env).limits.turns
    steps: list[EnvResult] = []
    try:
        for step in episode(env, [text] * limit, seed=1, sample=base_of(env).sample):
            _check_step(env, step, what)
            steps.append(step)
    except Exception as error:
        if isinstance(error, AssertionError):
            raise
        raise AssertionError(f"{what}: expected no exception, saw {error!r}.") from error
    assert steps[-1].over, f"{what}: expected the end within {limit} turns, saw none."
    try:
        env.step(text)
    except EpisodeOverError:
        return
    raise AssertionError(f"{what}: expected EpisodeOverError from a step after the end, saw none.")


def _check_step(env: Env, step: EnvResult, what: str) -> None:
    assert env.observation_space.contains(step.observation), (
        f"{what}: expected an observation in {env.observation_space}, saw {step.observation!r}."
    )
    markers = step.observation["text"].count(IMAGE_MARKER)
    images = len(step.observation["images"])
    assert markers == images, f"{what}: expected {images} image markers, saw {markers}."
    reward = step.reward
    finite = type(reward) is float and math.isfinite(reward)
    assert finite, f"{what}: expected a finite float as reward, saw {type(reward)} {reward!r}."
    for flag in (step.terminated, step.truncated):
        assert type(flag) is bool, f"{what}: expected a bool as flag, saw {type(flag)}."
    assert not (step.terminated and step.truncated), f"{what}: expected one end, saw both."
    record = step.info["step"]
    assert isinstance(record, StepResult), f"{what}: expected a StepResult, saw {record!r}."
    assert (record.request is None) == step.over, (
        f"{what}: expected a TurnRequest until the end, saw {record.request!r} with "
        f"over={step.over}."
    )
    assert not step.info["aborted"], f"{what}: expected no abort, saw {step.info['aborted']!r}."
