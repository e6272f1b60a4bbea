"""Tests ArftCoding as a whole with real programs: prompts, tools, repairs, refusals, metrics."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from visenv import registration
from visenv.envs.arft import make_coding
from visenv.envs.arft.coding.world import LABELS
from visenv.envs.arft.coding.world.sources import coding_truth
from visenv.envs.arft.presets import PRESETS
from visenv.errors import ConfigurationError, DataError, UnknownNameError
from visenv.sandbox import INPUT_IMAGE, OUTPUT_IMAGE
from visenv.types import Pixels, Sample, ToolCalled

Env = gym.Env[Any, str]
Broken = Callable[..., Sample]
Oracle = Callable[[Env], str]

ROTATE = "image = cv2.rotate(image, cv2.ROTATE_180)"
ANSWER = "<think>a</think><answer>yes</answer>"


def problem(*labels: str) -> str:
    return f"<think>a</think><problem>{{{', '.join(map(repr, labels))}}}</problem>"


def code(text: str) -> str:
    return f"<think>a</think><code>```python\n{text}\n```</code>"


def program(work: str) -> str:
    return code(
        f"import cv2\nimage = cv2.imread('{INPUT_IMAGE}')\n{work}\n"
        f"cv2.imwrite('{OUTPUT_IMAGE}', image)"
    )


def begin(sample: Sample, **options: Any) -> tuple[Env, dict[str, Any]]:
    env = make_coding(data=[sample], **options)
    observation, _ = env.reset(seed=0)
    return env, dict(observation)


def difference(one: Pixels, other: Pixels) -> float:
    """Return the mean absolute difference in levels."""
    assert one.shape == other.shape
    return float(np.abs(one.astype(int) - other).mean())


# ---------------------------------------------------------------------------- the oracle


@pytest.mark.parametrize(
    ("problems", "levels"),
    [
        (("rotation90",), 2),
        (("rotation180",), 2),
        (("dark",), 5),
        (("rotation90", "dark"), 5),
    ],
)
def test_oracle_restores_what_has_an_inverse(
    broken: Broken, clean: Broken, oracle: Oracle, problems: tuple[str, ...], levels: float
) -> None:
    """Check that the difference is at most the few levels lost by two JPEG files and rounding."""
    wanted = clean().images[0].pixels
    for seed in range(3):
        env, shown = begin(broken(*problems, seed=seed))
        before = shown["images"][0]
        assert before.shape != wanted.shape or difference(before, wanted) > 3 * levels
        env.step(oracle(env))
        observation, *_ = env.step(oracle(env))
        assert difference(observation["images"][0], wanted) < levels


def test_oracle_makes_noise_weaker(broken: Broken, clean: Broken, oracle: Oracle) -> None:
    wanted = clean().images[0].pixels
    env, shown = begin(broken("noise"))
    env.step(oracle(env))
    observation, *_ = env.step(oracle(env))
    assert difference(observation["images"][0], wanted) < 0.7 * difference(
        shown["images"][0], wanted
    )


def test_oracle_cuts_out_the_box(broken: Broken, oracle: Oracle) -> None:
    sample = broken("crop", width=400, height=200)
    left, top, right, bottom = sample.ground_truth.box
    env, _ = begin(sample)
    env.step(oracle(env))
    observation, *_ = env.step(oracle(env))
    cut = sample.images[0].pixels[
        top * 200 // 1000 : bottom * 200 // 1000, left * 400 // 1000 : right * 400 // 1000
    ]
    assert difference(observation["images"][0], cut) < 2


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("problems", [("none",), ("dark",), ("rotation180", "blur"), ("crop",)])
def test_oracle_earns_all_there_is(
    broken: Broken, oracle: Oracle, preset: str, problems: tuple[str, ...]
) -> None:
    env, _ = begin(broken(*problems, width=96, height=96), preset=preset)
    rewards: list[float] = []
    terminated = False
    while not terminated:
        _, reward, terminated, truncated, info = env.step(oracle(env))
        assert not truncated
        rewards.append(float(reward))
    assert sum(rewards) == pytest.approx(2.0)
    assert all(reward > 0 for reward in rewards), "every step is paid as it is taken"
    assert info["step"].metrics == {
        "accuracy": 1.0,
        "f1": 1.0,
        "named": 1.0,
        "wrote": float(problems != ("none",)),
    }


# ---------------------------------------------------------------------------- programs


def test_repairs_are_chained(broken: Broken, clean: Broken) -> None:
    env, _ = begin(broken("rotation180", "noise"))
    first, *_ = env.step(program("print(image.shape)\nimage = image[:, :60]"))
    assert first["images"][0].shape == (80, 60, 3)
    second, *_ = env.step(program("print(image.shape)\nimage = image[:40]"))
    assert "(80, 60, 3)" in second["text"]
    assert second["images"][0].shape == (40, 60, 3)


def test_programs_work_on_all_pixels_though_fewer_are_shown(broken: Broken) -> None:
    env, shown = begin(broken("rotation180", width=400, height=300), image_pixels=10_000)
    assert shown["images"][0].shape == (86, 115, 3)  # 10,000 px, 4:3
    assert "400 pixels wide and 300 high" in shown["text"]
    first, *_ = env.step(program(f"print(image.shape)\n{ROTATE}"))
    assert "(300, 400, 3)" in first["text"]
    assert first["images"][0].shape == (86, 115, 3)
    second, *_ = env.step(program("print(image.shape)\nimage = image[:50, :100]"))
    assert "(300, 400, 3)" in second["text"], "the next one finds all that was written"
    assert second["images"][0].shape == (50, 100, 3), "and a part of it is shown larger"


def test_traceback_is_shown_and_the_image_stays(broken: Broken) -> None:
    env, _ = begin(broken("rotation180"))
    observation, reward, *_, info = env.step(program("image = image.rotate(90)"))
    assert observation["images"] == ()
    assert "AttributeError: 'numpy.ndarray' object has no attribute 'rotate'" in observation["text"]
    assert 'File "<program>", line 3' in observation["text"]
    assert "No image was written" in observation["text"]
    called = info["step"].events[1]
    assert isinstance(called, ToolCalled)
    assert (called.ok, called.detail["status"], called.detail["written"]) == (True, "error", False)
    assert float(reward) == 0, "only a program that came to its end is paid"
    after, *_ = env.step(program("print(image.shape)"))
    assert after["images"][0].shape == (80, 120, 3)


def test_traceback_reveals_nothing_about_the_host(broken: Broken) -> None:
    env, _ = begin(broken("dark"))
    observation, *_ = env.step(code("import json\njson.loads('[')"))
    assert "JSONDecodeError" in observation["text"]
    here = Path(np.__file__).parents[1]
    for path in (str(Path(__file__).parents[3]), str(here), str(Path.home())):
        assert path not in observation["text"]


def test_program_that_writes_nothing_gets_a_message_and_no_older_image(broken: Broken) -> None:
    env, _ = begin(broken("dark"))
    env.step(program(ROTATE))
    for text in ("x = 1", "open('path_to_output_image.jpg', 'w').close()"):
        observation, *_, info = env.step(code(text))
        assert observation["images"] == ()
        assert f"No image was written to '{OUTPUT_IMAGE}'" in observation["text"]
        assert info["step"].events[1].detail["written"] is False
    env.reset(seed=1)
    observation, *_ = env.step(code("import os\nprint(sorted(os.listdir('.')))"))
    assert observation["images"] == (), "nor that of the episode before"
    assert OUTPUT_IMAGE not in observation["text"].split("No image")[0]


def test_output_before_an_error_is_shown_with_it(broken: Broken) -> None:
    env, _ = begin(broken("dark"))
    observation, *_ = env.step(program("pass").replace("\n```</code>", "\n1 / 0\n```</code>"))
    assert len(observation["images"]) == 1
    assert "ZeroDivisionError" in observation["text"]


def test_long_output_is_cut(broken: Broken) -> None:
    env, _ = begin(broken("dark"), tool_characters=300)
    observation, *_ = env.step(code("print('a' * 10_000)\n1 / 0"))
    assert len(observation["text"]) < 500
    assert "ZeroDivisionError" in observation["text"]


# ---------------------------------------------------------------------------- problems and turns


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (("dark", "rotation90"), "repairs this: dark, rotation90."),
        (("none",), "Nothing needs to be repaired."),
        (("crop",), "cuts out the part"),
    ],
)
def test_problem_turn_gets_an_instruction_and_no_verdict(
    broken: Broken, labels: tuple[str, ...], says: str
) -> None:
    texts = set()
    for truth in (("none",), ("rotation90", "dark")):
        env, _ = begin(broken(*truth))
        observation, *_ = env.step(problem(*labels))
        assert says in observation["text"]
        texts.add(observation["text"])
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("turn", "says"),
    [
        (problem("darc"), "There is no problem called 'darc'. Labels: rotation90"),
        (problem(), "labels"),
        (problem("x" * 5000), "There is no problem"),
        ("<think>a</think><problem>dark</problem>", "set of quoted labels"),
        ("<think>a</think><code>x", "<code> is not closed"),
        ("hello", "one <problem>…</problem>, one <code>…</code> or one <answer>"),
    ],
)
def test_turn_that_is_malformed_gets_a_message_and_the_episode_continues(
    broken: Broken, turn: str, says: str
) -> None:
    env, _ = begin(broken("dark"))
    observation, reward, terminated, truncated, _ = env.step(turn)
    assert says in observation["text"]
    assert "Error: " in observation["text"]
    assert len(observation["text"]) < 800
    assert (reward, terminated, truncated) == (0.0, False, False)


def test_last_turn_has_no_tools_and_is_announced(broken: Broken) -> None:
    env, _ = begin(broken("dark"), turns=2)
    observation, *_ = env.step(problem("dark"))
    assert "This is your last turn" in observation["text"]
    observation, reward, terminated, truncated, info = env.step(program(ROTATE))
    assert (reward, terminated, truncated, info["truncated_by"]) == (0.0, False, True, "turns")
    assert not info["step"].events[1].ok


def test_metrics_without_an_answer(broken: Broken) -> None:
    env, _ = begin(broken("dark", "blur"), turns=2)
    env.step(problem("dark"))
    *_, info = env.step("hm")
    assert info["step"].metrics == {"accuracy": 0.0, "f1": 0.0, "named": 0.0, "wrote": 0.0}
    assert info["step"].terms == {"steps": pytest.approx(0.1), "format": pytest.approx(0.2)}


def test_reports_are_grouped_by_split_and_problem(broken: Broken) -> None:
    env, _ = begin(broken("rotation90", "dark"))
    base: Any = env.unwrapped
    assert base.sample.ground_truth.labels == {"split": "hard", "problem": "rotation90+dark"}


# ---------------------------------------------------------------------------- prompts


def test_full_prompt_names_the_files_the_labels_and_the_form(broken: Broken) -> None:
    env = make_coding(data=[broken("dark")])
    observation, info = env.reset(seed=0)
    text = observation["text"]
    for part in (INPUT_IMAGE, OUTPUT_IMAGE, "<think>", "<information>", *map(repr, LABELS)):
        assert part in text
    assert text.count("<image>") == 1
    assert [message.role for message in info["step"].messages] == ["system", "user"]
    assert info["step"].request.stop == ("</problem>", "</code>", "</answer>")


def test_crop_is_asked_for_without_its_box(broken: Broken) -> None:
    _, shown = begin(broken("crop"))
    assert not re.search(r"\d+, *\d+, *\d+, *\d+", shown["text"])


def test_tiny_preset_has_minimal_texts(oracle: Oracle) -> None:
    env = make_coding(preset="tiny")
    texts: dict[str, set[str]] = {"opening": set(), "turn": set()}
    for seed in range(30):
        observation, _ = env.reset(seed=seed)
        texts["opening"].add(observation["text"])
        assert [image.shape for image in observation["images"]] == [(96, 96, 3)]
        terminated = False
        while not terminated:
            turn = oracle(env)
            texts["turn"].add(turn)
            _, _, terminated, *_ = env.step(turn)
    assert texts["opening"] == {
        "<image>\nWhat colour is the upper band of the flag?",
        "<image>\nWhat colour is the lower band of the flag?",
        "<image>\nWhat colours are the bands of the flag, upper first?",
    }
    assert len(texts["turn"]) <= 3 + 6 + 6 + 30, (
        "labels, programs (a half turn, factors 2 to 6), colours and pairs of them"
    )
    assert max(map(len, texts["turn"])) < 160


# ---------------------------------------------------------------------------- options


def test_problems_are_chosen_by_name() -> None:
    env = make_coding(problems=["dark", "rotation180"], preset="tiny")
    kinds = set()
    for seed in range(12):
        env.reset(seed=seed)
        kinds.add(env.unwrapped.sample.kind)  # type: ignore[attr-defined]
    assert kinds == {"dark", "rotation180"}


def test_built_samples_are_played_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean: Callable[..., Sample], oracle: Oracle
) -> None:
    from visenv.envs.arft.coding.curation.distort import Distort, plan_lines
    from visenv.envs.arft.coding.world import DistortedRows

    rows = DistortedRows([clean()], {("dark",): 1})
    lines = plan_lines({("dark",): 1}, 0)
    Distort(tmp_path, source=rows).run(lines, tmp_path / "rows.jsonl")
    monkeypatch.setitem(
        registration.DATA, "mat_coding", "visenv.envs.arft.datasets.mat_coding:MatCoding"
    )
    env = make_coding(data=f"mat_coding:{tmp_path}")
    env.reset(options={"index": 0})
    assert sum(float(env.step(oracle(env))[1]) for _ in range(3)) == pytest.approx(2.0)
    with pytest.raises(ConfigurationError, match="already distorted"):
        make_coding(data=f"mat_coding:{tmp_path}", problems=["dark"])


def test_rows_of_another_data_set_are_distorted_the_same_every_time(
    monkeypatch: pytest.MonkeyPatch, clean: Callable[..., Sample]
) -> None:
    from visenv.envs.arft.coding import make as coding

    class Rows(list[Sample]):
        problems = ("one row is missing",)

    rows = Rows([clean()] * 12)
    monkeypatch.setattr(coding, "open_data", lambda text, schema: rows)
    first = make_coding(data="textvqa:x", seed=4).unwrapped
    second = make_coding(data="textvqa:x", seed=4).unwrapped
    other = make_coding(data="textvqa:x", seed=5).unwrapped
    kinds = [[env.source[place].kind for place in range(12)] for env in (first, second, other)]  # type: ignore[attr-defined]
    assert kinds[0] == kinds[1] != kinds[2]
    assert first.source.problems == ("one row is missing",)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"preset": "tinny"}, UnknownNameError, "tiny"),
        ({"reward": "f2"}, UnknownNameError, "f1"),
        ({"compat": "arm"}, UnknownNameError, "arft"),
        ({"prompt": "breif"}, UnknownNameError, "brief"),
        ({"world": "tini"}, UnknownNameError, "tiny"),
        ({"turn": 3}, UnknownNameError, "turns"),
        ({"turns": 1}, ConfigurationError, "turns must be at least 2"),
        ({"turns": 2.5}, ConfigurationError, "whole number"),
        ({"image_pixels": 0}, ConfigurationError, "whole number"),
        ({"problems": ["drak"]}, UnknownNameError, "dark"),
        ({"problems": []}, ConfigurationError, "at least one"),
        ({"problems": ["none+dark"]}, ConfigurationError, "alone"),
        ({"data": "texvqa:/nowhere"}, UnknownNameError, "textvqa"),
        ({"data": [], "problems": ["dark"]}, ConfigurationError, "already distorted"),
        ({"render_mode": "humane"}, ConfigurationError, "render_mode"),
    ],
)
def test_options_that_are_invalid_name_the_valid_ones(
    options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=re.escape(says)):
        make_coding(**options)


def test_sample_needs_an_image_an_answer_and_its_problems(clean: Callable[..., Sample]) -> None:
    with pytest.raises(ConfigurationError, match="needs samples with the ground truth CodingTruth"):
        begin(clean())
    image, dark = clean().images, coding_truth(("dark",), ())
    with pytest.raises(DataError, match="0 images and 1 answers"):
        begin(Sample("s", "?", (), ("a",), "", dark))
    with pytest.raises(DataError, match="1 images and 0 answers"):
        begin(Sample("s", "?", image, (), "", dark))


@pytest.mark.parametrize(
    ("reward", "paid"),
    # The only turn is an answer with one correct word in four: F1 is 2·1 / (1 + 4) = 0.4. In a
    # sample of two steps, the answer weighs 2/3, for its accuracy and for its form.
    [("f1", 2 / 3 * (0.4 + 1)), ("em", 2 / 3 * (0 + 1)), ("outcome", 0.4)],
)
def test_reward_is_chosen_by_name(broken: Broken, reward: str, paid: float) -> None:
    env, _ = begin(broken("none"), reward=reward)
    _, given, *_ = env.step("<think>a</think><answer>yes it is so</answer>")
    assert given == pytest.approx(paid)
