"""Measures whether a magnifier helps in MagsZoom's degraded scenes, with a reader from outside.

    python benchmarks/degraded.py
    python benchmarks/degraded.py --material photographs
    python benchmarks/degraded.py --magnifiers none lanczos smfanet:<file>

The reader (`benchmarks.sign_reader`) is trained once, before any magnifier is used, on clean crops
at the size of a magnifier's output: signs as they were rendered, before the scene was averaged
down, blurred, noisy and compressed. It then reads the signs of other scenes in the output of each
magnifier.

first     share of signs that this reader names
second    the same for a reader that was trained on the output of this magnifier
reward    mean reward of a player in the environment, and the accuracy of its answers. The player
          encloses each sign that decides the answer exactly, reads the crops with the first reader,
          and answers by its readings. Mean, and each of three first readers

``view`` is the sign in the image as the policy sees it before it asks for a crop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
import tyro

import visenv  # noqa: F401 - registers the environments
from benchmarks.sign_reader import VALUES, SignReader, train
from visenv.envs.mags import prompts
from visenv.envs.mags.ground_truth import MagsTruth
from visenv.envs.mags.magnifier.magnify import open_magnifier
from visenv.envs.mags.presets import PRESETS
from visenv.envs.mags.world import MagsWorld
from visenv.evaluation.held_out import places
from visenv.images import Window, fit
from visenv.types import Image, Pixels

SCALE = 4
SIGNS = 8
"""Number of signs in the scenes from which crops are cut, more than in scenes of the preset."""

SCENES_SEED, TEST_SEED = 0xC41D, 0xC41E


@dataclass(frozen=True)
class Options:
    """Measure magnifiers in degraded scenes.

    Attributes:
        magnifiers: The magnifiers; ``"view"`` is the image as the policy sees it.
        second: The magnifiers for which a second reader is trained.
        material: The material of the scenes from which crops are cut.
        scenes: Number of scenes of 8 signs on which a reader is trained.
        tests: Number of scenes of 8 signs that are read.
        episodes: Number of episodes of the player; 0 leaves it out.
        readers: Number of first readers, with different seeds, that play.
    """

    magnifiers: tuple[str, ...] = ("view", "none", "resize", "lanczos", "small", "small-deblur")
    second: tuple[str, ...] = ("view", "lanczos", "small-deblur")
    material: str = "textures"
    scenes: int = 400
    tests: int = 150
    episodes: int = 200
    readers: int = 3


class SeenSign(NamedTuple):
    """Holds a sign of a degraded scene.

    Attributes:
        image: The native image.
        window: The sign in native pixels.
        clean: The sign as rendered.
        kind: ``"object"`` or ``"number"``.
        value: The detail on the sign.
    """

    image: Image
    window: Window
    clean: Pixels
    kind: str
    value: str


def signs_of(material: str, seed: int, count: int) -> Iterator[SeenSign]:
    """Yield the signs of scenes."""
    world = MagsWorld("degraded", material=material, signs=(SIGNS, SIGNS), kinds=("attribute",))
    for number in range(count):
        sample, rendered = world.pair(np.random.default_rng([seed, number]))
        for sign in sample.truth_as(MagsTruth).signs:
            window = Window(*(int(edge) for edge in sign.box))
            rows = slice(SCALE * window.top, SCALE * window.bottom)
            columns = slice(SCALE * window.left, SCALE * window.right)
            clean = rendered[rows, columns].copy()
            yield SeenSign(sample.images[0], window, clean, kind_of(sign.answer), sign.answer)


def kind_of(value: str) -> str:
    return "number" if value.isdigit() else "object"


def crops(name: str, signs: Sequence[SeenSign]) -> list[Pixels]:
    """Return the signs as a magnifier shows them."""
    if name == "view":
        return [_in_view(sign) for sign in signs]
    magnifier = open_magnifier(name)
    most = PRESETS["degraded"].crop_pixels

    async def all_of_them() -> list[Pixels]:
        shown = [await magnifier.enlarge(sign.image, sign.window, most) for sign in signs]
        return [image.pixels for image in shown]

    return asyncio.run(all_of_them())


def _in_view(sign: SeenSign) -> Pixels:
    side = MagsWorld("degraded").scenes.view_side
    view = fit(sign.image, side * side, side).pixels
    unit = sign.image.size[0] // side
    left, top, right, bottom = (edge // unit for edge in sign.window)
    return np.ascontiguousarray(view[top:bottom, left:right])


def share_read(reader: SignReader, shown: Sequence[Pixels], signs: Sequence[SeenSign]) -> float:
    """Return the share of signs that a reader names."""
    read = reader.read(shown, [sign.kind for sign in signs])
    return float(np.mean([text == sign.value for text, sign in zip(read, signs, strict=True)]))


def shares(reader: SignReader, shown: Sequence[Pixels], signs: Sequence[SeenSign]) -> str:
    """Return the share of all signs, of objects and of numbers that a reader names, in percent."""
    parts = []
    for kinds in (("object", "number"), ("object",), ("number",)):
        kept = [place for place, sign in enumerate(signs) if sign.kind in kinds]
        share = share_read(reader, [shown[k] for k in kept], [signs[k] for k in kept])
        parts.append(f"{100 * share:.1f}")
    return " / ".join(parts)


# ------------------------------------------------------------------------------------ the player


def play(
    env: gym.Env[Any, Any], readers: Sequence[SignReader], seed: int
) -> list[tuple[float, float]]:
    """Return the reward and the accuracy of an episode for each reader."""
    results = []
    base: Any = env.unwrapped
    for reader in readers:
        env.reset(seed=seed)
        sample, unit = base.sample, base.sample.images[0].size[0] // base.preset.view_side
        boxes = sample.truth_as(MagsTruth).evidence_boxes
        shown = [[int(edge) // unit for edge in box] for box in boxes]
        first = f"<think>{prompts.thought('stage2')}<zoom>{shown}</zoom></think>"
        observation, reward, *_ = env.step(first)
        kind = kind_of(sample.truth_as(MagsTruth).signs[0].answer)
        read = reader.read(list(observation["images"]), [kind] * len(boxes))
        answer = answer_of(sample.question, sample.kind, read, boxes)
        second = f"<rethink>{prompts.second_thought('stage2')}</rethink><answer>{answer}</answer>"
        _, last, _, _, info = env.step(second)
        results.append((float(reward) + float(last), info["step"].metrics["accuracy"]))
    return results


def answer_of(question: str, kind: str, read: Sequence[str], boxes: Sequence[Any]) -> str:
    """Return the answer to a question that follows from the readings of the signs."""
    if kind == "attribute":
        return read[0]
    named = [word for word in question.rstrip("?").split() if word in VALUES]
    if kind == "counting":
        return str(list(read).count(named[0]))
    if not {*named} <= {*read}:
        return "no"
    one, other = (boxes[list(read).index(value)] for value in named)
    axis = 0 if "left" in question else 1
    return "yes" if one[axis] < other[axis] else "no"


def report_players(options: Options, readers: Sequence[SignReader]) -> None:
    names = [name for name in options.magnifiers if name != "view"]
    scenes = "degraded" if options.material == "textures" else f"degraded-{options.material}"
    envs = {
        name: gym.make("visenv/MagsZoom-v0", preset="degraded", scenes=scenes, magnifier=name)
        for name in names
    }
    results: dict[str, list[list[tuple[float, float]]]] = {name: [] for name in names}
    for spec in places(envs[names[0]], options.episodes):
        for name, env in envs.items():
            results[name].append(play(env, readers, spec.seed))
    print("\n| magnifier | reward: mean (readers) | accuracy: mean (readers) |\n|---|--:|--:|")
    for name in names:
        means = np.array(results[name]).mean(0)  # [readers, 2]
        told = [
            f"{column.mean():.3f} ({', '.join(f'{value:.3f}' for value in column)})"
            for column in means.T
        ]
        print(f"| {name} | {told[0]} | {told[1]} |", flush=True)


def main(options: Options) -> None:
    torch.set_num_threads(1)
    training = [*signs_of(options.material, SCENES_SEED, options.scenes)]
    values = [sign.value for sign in training]
    clean = [sign.clean for sign in training]
    first = train(clean, values)
    tests = [*signs_of(options.material, TEST_SEED, options.tests)]
    print(f"{len(training)} signs for training, {len(tests)} signs read: all / objects / numbers")
    print("\n| magnifier | first reader |\n|---|--:|")
    print(f"| clean crops | {shares(first, [sign.clean for sign in tests], tests)} |", flush=True)
    shown = {name: crops(name, tests) for name in options.magnifiers}
    for name in options.magnifiers:
        print(f"| {name} | {shares(first, shown[name], tests)} |", flush=True)
    if options.episodes:
        more = [train(clean, values, seed) for seed in range(1, options.readers)]
        report_players(options, [first, *more])
    print("\n| magnifier | second reader |\n|---|--:|")
    for name in options.second:
        second = train(crops(name, training), values)
        print(f"| {name} | {shares(second, shown[name], tests)} |", flush=True)


if __name__ == "__main__":
    main(tyro.cli(Options))
