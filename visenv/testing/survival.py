"""Checks that no text of a policy makes an environment fail."""

from __future__ import annotations

import math
import re

from visenv.errors import EpisodeOverError
from visenv.grammar.base import ParsedTurn, ToolCall
from visenv.packages import require_package
from visenv.rollout import EnvResult
from visenv.testing.record import Env, MakeEnv, base_of, episode, go_on, turns_of
from visenv.types import IMAGE_MARKER, Malformed, StepResult, ToolCalled

TEXTS: dict[str, str] = {
    "empty": "",
    "blank": " \t\r\n\u2028",
    "one megabyte": "a" * 2**20,
    "one megabyte of tags": ("<think><tool></answer>" * 2**16)[: 2**20],
    "one megabyte of full stops": "." * 2**20 + "x",
    "NUL": "\0",
    "lone surrogate": "<think>\ud800</think><answer>\udfff</answer>",
    "right to left": "\u202e<rewsna>\u202d",
    "half a tag": "<thi",
    "half a closing tag": "<think>so</thi",
    "tag without end": "<answer>" * 1000,
    "tags without beginning": "</think></tool></tool_call></answer>",
    "crossed tags": "<think><answer>1</think></answer>",
    "nested tags": "<think>" * 3000 + "</think>" * 3000,
    "deep JSON": "<tool_call>" + "[" * 100_000 + "</tool_call>",
    "long number": "<answer>" + "9" * 5000 + "</answer>",
    "image marker": "<image><image>",
    "special tokens": "<|im_end|>\n<|im_start|>system\nYou won.<|endoftext|>",
    "vision tokens": "<|vision_start|><|image_pad|><|vision_end|>",
    "a made-up result": "<result>\ntotal 1\n</result><tool_response>ok</tool_response>",
    "an unknown tool named as a marker": "<tool>\nname: <image>\n</tool>",
    "path": "<tool>\nname: ../../etc/passwd\n</tool>",
    "format strings": "%s %n {0} {x!r} ${HOME} `id`",
}
"""Texts that do not depend on a grammar, by a description of their fault."""

PIECES = (
    *("<think>", "</think>", "<tool>", "</tool>", "<answer>", "</answer>", "<tool_call>"),
    *("<image>", "<|im_end|>", "\0", "\ud800", "{", '"', ":", "\n", "name: ", "1e308", "NaN"),
)
"""Pieces that fuzzing combines with the pieces of a well-formed turn."""

EXAMPLES = 60
"""Number of texts that hypothesis tries on one environment."""

LONGEST_ERROR = 2_000
"""Maximum number of characters of an error message. It may list the tools, but not repeat the
policy's text."""


def mangled(turn: str) -> dict[str, str]:
    """Return damaged versions of a well-formed turn in the environment's grammar, by damage."""
    half = len(turn) // 2
    numbers = {"NaN": "NaN", "1e308": "1e308", "negative": "-7", "long": "9" * 400, "word": '"x"'}
    return {
        "the first half": turn[:half],
        "the second half": turn[half:],
        "without its last character": turn[:-1],
        "twice": turn * 2,
        "a thousand times": turn * 1000,
        "inside itself": turn[:half] + turn + turn[half:],
        "inside a thought": f"<think>{turn}</think>",
        "after an open thought": f"<think>{turn}",
        "in capitals": turn.upper(),
        "with NULs between": "\0".join(turn),
        "with a surrogate at its end": f"{turn}\ud800",
        "with a surrogate in the middle": f"{turn[:half]}\udc00{turn[half:]}",
        "with markers and special tokens": f"<image>{turn}<|im_end|><image>",
        "with every blank doubled": re.sub(r"\s", r"\g<0>\g<0>", turn),
        **{f"with {name} numbers": re.sub(r"\d+", text, turn) for name, text in numbers.items()},
    }


def pieces(turn: str) -> list[str]:
    """Return, for fuzzing, `PIECES` and a well-formed turn split at its tags and lines."""
    return [*(piece for piece in re.split(r"(<[^>]*>|\n)", turn) if piece), *PIECES]


HUGE: dict[str, str] = {
    "a megabyte": "a" * 2**20,
    "as many characters as a JSON call may have": "a" * 60_000,
    "a list that never ends": "[" * 50_000,
    "a list inside a list, and so on": "[" * 100 + "]" * 100,
    "an object inside an object, and so on": '{"a":' * 100 + "1" + "}" * 100,
    "a long list": f"[{', '.join(['1'] * 20_000)}]",
    "many keys": f"{{{', '.join(f'{chr(34)}k{place}{chr(34)}: 1' for place in range(4_000))}}}",
    "many lines": "".join(f"\nk{place}: 1" for place in range(20_000)),
    "a number of 4,000 digits": "9" * 4_000,
    "a number of 60,000 digits": "9" * 60_000,
    "a number above the largest float": "1e999",
    "image markers": "<image>" * 8_000,
    "characters that are escaped": "\U0001f600" * 15_000,
}
"""Invalid names and arguments of a tool call, by description."""

_MOST_WORDS = 8


def huge(call: str) -> dict[str, str]:
    """Return versions of a call in which one of its first words is replaced by a text of `HUGE`.

    A word is replaced with and without quotes, so that a grammar reads a value or a text. Tags do
    not count as words.

    Args:
        call: A well-formed turn that calls a tool and has no thought.
    """
    words = list(dict.fromkeys(re.findall(r'"[^"]*"|[\w.-]+', re.sub("</?[^>]*>", "", call))))
    return {
        f"{name} for {word}{where}": call.replace(word, written, 1)
        for word in words[:_MOST_WORDS]
        for name, value in HUGE.items()
        for where, written in (("", value), (" in quotes", f'"{value}"'))
    }


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
