"""Tests policies that try to earn rewards without looking at the images or without grounding."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401  (registers the ids)
from tests.environments import few
from visenv.envs.argos.env.base import conclusion
from visenv.envs.argos.prompts import opening
from visenv.envs.argos.world.draw import TINTS
from visenv.envs.argos.world.images import ImageWorld
from visenv.envs.argos.world.plots import PLOTS
from visenv.envs.argos.world.presets import IMAGE_KINDS, IMAGES, VIDEO_KINDS, VIDEOS
from visenv.envs.argos.world.questions import QUESTIONS
from visenv.envs.argos.world.things import FrameSize, names, owners
from visenv.envs.argos.world.videos import VideoWorld
from visenv.types import Image, Sample

OF_IMAGES = [(False, kind) for kind in IMAGE_KINDS]
OF_VIDEOS = [(True, kind) for kind in VIDEO_KINDS]


def asked(video: bool, kind: str, number: int, seed: int) -> list[Any]:
    """Return questions with answers and options, without any rendering."""
    return [each for each, _ in asked_with_frames(video, kind, number, seed)]


def asked_with_frames(video: bool, kind: str, number: int, seed: int) -> list[tuple[Any, int]]:
    rng = np.random.default_rng(seed)
    if not video:
        return [(QUESTIONS[kind](rng, IMAGES["default"]), 1) for _ in range(number)]
    preset = VIDEOS["default"]
    frames = rng.integers(preset.frames[0], preset.frames[1] + 1, number)
    return [(PLOTS[kind](rng, preset, int(each)), int(each)) for each in frames]


class Reader:
    """Predicts an option by its text and position, with naive Bayes over the words of a message.

    For example, it may learn that a question never asks for the color that it names, or that a long
    video has other answers than a short one.
    """

    def __init__(self) -> None:
        self._words: defaultdict[tuple[str, str], float] = defaultdict(lambda: 0.5)
        self._prior: defaultdict[str, float] = defaultdict(float)
        self._constant: set[str] = set()

    def learn(self, examples: list[tuple[Any, str]]) -> None:
        said = [set(message.split()) for _, message in examples]
        # words that are in every message carry no information
        self._constant = set.intersection(*said)
        for (each, _), words in zip(examples, said, strict=True):
            for key in _forms(each, each.answer):
                self._prior[key] += 1
                for word in words - self._constant:
                    self._words[key, word] += 1

    def accuracy(self, examples: list[tuple[Any, str]]) -> float:
        right = [bool(self._best(*each) == each[0].answer) for each in examples]
        return sum(right) / len(right)

    def _best(self, each: Any, message: str) -> str:
        words = set(message.split()) - self._constant

        def plausible(option: str) -> float:
            total = 0.0
            for key in _forms(each, option):
                prior = self._prior[key]
                total += math.log(prior + 1)
                total += sum(math.log(self._words[key, word] / (prior + 2)) for word in words)
            return total

        return str(max(each.options, key=plausible))


def shown_text(video: bool, each: Any, frames: int) -> str:
    """Return the text of the first message of an episode; its images are blank."""
    preset = (VIDEOS if video else IMAGES)["default"]
    blank = Image.from_pixels(np.zeros((preset.height, preset.width, 3), np.uint8))
    times = [preset.step * frame for frame in range(frames)] if video else []
    (message,) = opening("grounded", "pixels", each.question, (), (blank,) * frames, times)
    return " ".join(part for part in message.parts if isinstance(part, str))


def test_text_that_is_read_is_the_text_that_is_shown() -> None:
    for name in ("ArgosImage", "ArgosVideo"):
        env = gym.make(f"visenv/{name}-v0")
        observation, _ = env.reset(seed=3)
        sample = env.unwrapped.sample  # type: ignore[attr-defined]
        shown = shown_text(name == "ArgosVideo", sample, len(sample.images))
        assert shown.split()[-20:] == observation["text"].split()[-20:]
        assert set(shown.split()) <= set(observation["text"].split())


@pytest.mark.slow
@pytest.mark.parametrize(("video", "kind"), few([*OF_IMAGES, *OF_VIDEOS], 1), ids=str)
def test_learned_text_only_model_stays_at_chance(video: bool, kind: str) -> None:
    train, test = (
        [
            (each, shown_text(video, each, frames))
            for each, frames in asked_with_frames(video, kind, 1200, seed)
        ]
        for seed in (1, 2)
    )
    reader = Reader()
    reader.learn(train)
    chance = sum(1 / len(each.options) for each, _ in test) / len(test)
    assert reader.accuracy(test) <= chance + 0.05
    # The same model learns a word that reveals the position of the answer.
    leaking = [
        [(each, f"{text} hint-{each.options.index(each.answer)}") for each, text in examples]
        for examples in (train, test)
    ]
    reader = Reader()
    reader.learn(leaking[0])
    assert reader.accuracy(leaking[1]) >= 0.9


def _forms(each: Any, option: str) -> tuple[str, str]:
    return option, f"place {each.options.index(option)}"


@pytest.mark.slow
@pytest.mark.parametrize(("video", "kind"), few(OF_IMAGES, 1) + few(OF_VIDEOS, 1), ids=str)
def test_constant_answer_stays_at_chance(video: bool, kind: str) -> None:
    samples = asked(video, kind, 1500, 3)
    for key in (lambda each: each.answer, lambda each: each.options.index(each.answer)):
        share = Counter(map(key, samples)).most_common(1)[0][1] / len(samples)
        assert share <= 1 / min(len(each.options) for each in samples) + 0.05


@pytest.mark.slow
def test_count_of_things_does_not_reveal_whether_one_is_absent() -> None:
    scenes: defaultdict[str, Counter[Any]] = defaultdict(Counter)
    for each in asked(False, "absent", 1200, 4):
        *_, color, shape = each.question.rstrip("?").split()
        colored = sum(thing.color == color for thing in each.things)
        shaped = sum(thing.shape == shape for thing in each.things)
        scenes[each.answer][len(each.things), colored, shaped] += 1
        there = any(thing.name == f"{color} {shape}" for thing in each.things)
        assert there == (each.answer == "yes")
    assert scenes["yes"].keys() == scenes["no"].keys() == {(3, 1, 1)}


@pytest.mark.parametrize("kind", few(IMAGE_KINDS, 2))
def test_constant_pixel_rarely_hits_what_the_question_is_about(kind: str) -> None:
    """Count hits of any target; a policy would also have to guess its label."""
    preset = IMAGES["default"]
    extent, number = FrameSize(preset.width, preset.height), 400
    hits = np.zeros((preset.height // 8, preset.width // 8))
    for each in asked(False, kind, number, 6):
        shown = owners(each.things, extent)[4::8, 4::8]
        named = [
            place
            for place, thing in enumerate(each.things)
            if any(names(target, thing) for target in each.targets)
        ]
        hits += np.isin(shown, named)
    assert hits.max() / number <= 0.1 + 0.03  # the largest of many shares has an error of .03


def test_size_does_not_reveal_the_material_in_question() -> None:
    for each in asked(False, "material", 300, 5):
        assert len({thing.size for thing in each.things}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("world", few([ImageWorld, VideoWorld], 1))
def test_tint_reveals_the_answer_in_training_alone(world: Any) -> None:
    kind = "color" if world is ImageWorld else "change"
    shares = {}
    for split in ("train", "ood"):
        made = world("tiny", kinds=(kind,), split=split, frames=(8, 8))
        samples = [made.sample(np.random.default_rng(seed)) for seed in range(200)]
        hits = [_tint_of(sample) == _place(sample) for sample in samples]
        shares[split] = sum(hits) / len(hits)
    chance = 1 / len(TINTS)
    assert shares["train"] == pytest.approx(0.9 + 0.1 * chance, abs=0.065)
    assert shares["ood"] == pytest.approx(chance, abs=0.08)  # three standard deviations


def _tint_of(sample: Sample) -> int:
    pixels = sample.images[0].pixels[sample.ground_truth.owners(0) == -1]
    mean = pixels.astype(float).mean(axis=0)
    distances = [np.abs((mean - mean.mean()) - (np.array(t) - np.mean(t))).sum() for t in TINTS]
    return int(np.argmin(distances))


def _place(sample: Sample) -> int:
    return int(sample.ground_truth.options.index(sample.answers[0]))


# -------------------------------------------------------------- policies that exploit one term each


def paid(turn_of: Any, seeds: int = 24, name: str = "ArgosImage", **options: Any) -> float:
    env = gym.make(f"visenv/{name}-v0", **options)
    rewards = []
    for seed in range(seeds):
        env.reset(seed=seed)
        rewards.append(float(env.step(turn_of(env.unwrapped))[1]))
    return float(np.mean(rewards))


def _turn(thought: str, answer: str) -> str:
    return f"<think>{thought}</think><answer>{answer}</answer>"


def test_points_everywhere_earn_less_than_one_good_point() -> None:
    grid = [(x, y) for x in range(20, 440, 60) for y in range(20, 330, 50)]

    def spray(base: Any) -> str:
        tags = "".join(f'<point x="{x}" y="{y}">{base.truth.targets[0]}</point>' for x, y in grid)
        return _turn(tags, base.sample.answers[0])

    assert paid(spray) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "kinds"),
    [
        ("thing", list(IMAGE_KINDS)),
        ("large", list(IMAGE_KINDS)),
        ("bar", ["chart"]),
        ("the large plain bars", ["chart"]),
        ("region", ["map"]),
        ("a region of that map", ["map"]),
        ("country", ["map"]),
    ],
)
def test_vague_labels_are_no_labels(label: str, kinds: list[str]) -> None:
    def vague(base: Any) -> str:
        number = base.truth.named(0, base.truth.targets[0])[0]
        tag = base.point(0, number).tag
        name = base.truth.frames[0][number].name
        return _turn(tag.replace(name, label), base.sample.answers[0])

    assert paid(vague, kinds=kinds) == pytest.approx(1 / 3, abs=0.01)


@pytest.mark.parametrize(("apart", "spatial"), [(0, 1 / 2), (1, 5 / 6)])
def test_right_point_counts_once_and_its_neighbors_count_too(apart: int, spatial: float) -> None:
    """Check that the mean over points counts a neighboring pixel as a new point (docs/argos.md)."""

    def repeat(base: Any) -> str:
        thing = base.truth.frames[0][base.truth.named(0, base.truth.targets[0])[0]]
        rows, columns = np.nonzero(base.truth.owners(0) == base.truth.frames[0].index(thing))
        row = int(np.bincount(rows).argmax())  # the widest row of the thing
        first = int(columns[rows == row].min()) + 4
        tags = "".join(
            f'<point x="{first + apart * number}" y="{row}">{thing.name}</point>'
            for number in range(5)
        )
        return _turn(f'{tags}<point x="0" y="0">{thing.name}</point>', base.sample.answers[0])

    earned = paid(repeat, kinds=["color"], reward="no_reasoning")
    assert earned == pytest.approx((1 + spatial) / 2)


def test_trace_that_states_its_answer_scores_high_unless_it_is_hidden() -> None:
    """Check the documented weakness of eq. 5, and that `mask_answer` removes it."""

    def states(base: Any) -> str:
        answer = base.sample.answers[0]
        return _turn(f"The {base.truth.targets[0]} is {answer}.", answer)

    options: dict[str, Any] = {"kinds": ["color"], "reward": "no_grounding"}
    assert paid(states, **options) == pytest.approx(1.0)
    assert paid(states, mask_answer=True, **options) == pytest.approx(0.5, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("letter", [False, True], ids=["text", "letter"])
@pytest.mark.parametrize("kind", few(IMAGE_KINDS, 3))
def test_honest_play_earns_more_under_the_mask_than_a_bare_statement(
    kind: str, letter: bool
) -> None:
    def answer_of(base: Any) -> str:
        place = base.truth.options.index(base.sample.answers[0])
        return "ABCDEF"[place] if letter else base.sample.answers[0]

    def honest(base: Any) -> str:
        return _turn(base.oracle_turn().thought, answer_of(base))

    def liar(base: Any) -> str:
        return _turn(f"{conclusion(base.truth)} So {answer_of(base)}.", answer_of(base))

    options: dict[str, Any] = {"kinds": [kind], "mask_answer": True, "seeds": 8}
    assert paid(honest, **options) > paid(liar, **options) + 0.3
    if kind != "absent":  # "I see a red ball" implies "yes" in other words, which are not masked
        assert paid(liar, **options) == pytest.approx(1 / 3, abs=0.01)
    if kind == "count":  # the points alone support the number
        assert paid(honest, reward="no_grounding", **options) == pytest.approx(1.0)


def test_leaving_out_points_increases_the_reward_only_in_the_ablation() -> None:
    def ungrounded(base: Any) -> str:
        answer = base.sample.answers[0]
        return _turn(f"The {base.truth.targets[0]} is {answer}.", answer)

    assert paid(ungrounded, kinds=["color"]) == pytest.approx(2 / 3)
    assert paid(ungrounded, kinds=["color"], empty="skip") == pytest.approx(1.0)


def test_empty_reasoning_does_not_leave_out_its_term() -> None:
    def silent(base: Any) -> str:
        return _turn("", base.sample.answers[0])

    assert paid(silent) == pytest.approx(1 / 3)
    assert paid(silent, reward="no_grounding") == pytest.approx(0.5)


@pytest.mark.slow
def test_span_over_the_full_video_is_no_span() -> None:
    def whole(base: Any) -> str:
        event = base.truth.events[0]
        frames = len(base.sample.images)
        return _turn(f"From frame 1 to frame {frames}, {event.sentence}.", base.sample.answers[0])

    options: dict[str, Any] = {"kinds": ["change", "meeting"], "reward": "no_reasoning"}
    assert paid(whole, name="ArgosVideo", **options) < 0.65


NOTES = {
    "whole": "From frame 1 to frame {last}, the {name} stays visible.",
    "first": "In frame 1, the {name} stays visible.",
    "middle": "In frame {middle}, the {name} stays visible.",
    "one": "From frame {middle} to frame {middle}, the {name} stays visible.",
}


@pytest.mark.slow
@pytest.mark.parametrize("note", NOTES)
@pytest.mark.parametrize("kind", few(VIDEO_KINDS, 2))
def test_visible_event_earns_little_by_the_text_alone(kind: str, note: str) -> None:
    """Check all objects of the video, and take the one with the largest reward.

    Some questions about durations refer to the event that an object is visible, so that a guessed
    span can be right.
    """

    def grounding(seed: int) -> float:
        env = gym.make("visenv/ArgosVideo-v0", kinds=[kind], reward="no_reasoning")
        earned: list[float] = []
        env.reset(seed=seed)
        base: Any = env.unwrapped
        names = {thing.name for frame in base.truth.frames for thing in frame}
        for name in sorted(names):
            env.reset(seed=seed)
            last = len(base.sample.images)
            said = NOTES[note].format(last=last, middle=(last + 1) // 2, name=name)
            *_, info = env.step(_turn(said, base.sample.answers[0]))
            earned.append(info["step"].terms["temporal"])
        return max(earned)

    most = 0.5 if (kind, note) == ("duration", "whole") else 0.0
    assert np.mean([grounding(seed) for seed in range(8)]) <= most


@pytest.mark.slow
def test_naming_all_events_at_once_names_none() -> None:
    def all_at_once(base: Any) -> str:
        event = base.truth.events[0]
        first, last = event.first + 1, event.last + 1
        said = f"From frame {first} to frame {last}, {event.sentence}, enters, leaves and stays."
        return _turn(said, base.sample.answers[0])

    options: dict[str, Any] = {"kinds": ["order", "meeting", "change"], "reward": "no_reasoning"}
    assert paid(all_at_once, name="ArgosVideo", **options) == pytest.approx(0.5)
