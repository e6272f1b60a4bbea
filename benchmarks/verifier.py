# ruff: noqa: E402 - threads and path must be set before the imports
"""Compares the verifier with teachers that are called once per response, and measures its speed.

1. CPU time of 64 responses in 8 groups with 4 points each, scored by a tiny Grounding DINO and a
   tiny SAM 2, which both sides have loaded before. The peer calls the same two models once for each
   response, with all of its labels in one batch, as a reward function of TRL does.
2. Verifications in a second of CPU time with exact teachers, rendering not counted.
3. One megabyte of point tags, parsed.
4. 32 frames of a video as they are shown, against OpenCV that decodes and resizes them.
5. 128 environments with the teachers of part 1: models loaded, and memory that each adds.

`env_memory.py ArgosImage-v0` and `env_memory.py ArgosVideo-v0` measure the memory over many
episodes.

    python benchmarks/verifier.py
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

import cv2
import gymnasium as gym
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.memory import memory_mib
from tests.visenv.verifier.tiny_teachers import tiny_grounding_dino, tiny_sam2
from visenv.data.video_file import open_video
from visenv.envs.argos import ImageWorld
from visenv.grammar.points import Point, read_references
from visenv.images import fit
from visenv.scorers import Detect, HitMasks, Scorer
from visenv.scorers.backends.detector import DetectorBackend
from visenv.scorers.backends.segmenter import SegmenterBackend
from visenv.types import Image, Sample
from visenv.verifier import Referred, Teachers, Verifier, oracle_teachers
from visenv.verifier.models import ModelDetector, ModelSegmenter
from visenv.verifier.teachers import run_local

GROUPS, MEMBERS, POINTS, REPEATS = 8, 8, 4, 3
LABELS = ("red ball", "green cube", "blue cone", "red cube", "green ball", "orange diamond")

Response = tuple[Sample, Referred]
Folders = tuple[Path, Path]


def responses() -> list[Response]:
    """Return 64 responses; each points to 4 of 6 things, at different places."""
    world, rng = ImageWorld("default", kinds=("count",)), np.random.default_rng(0)
    made: list[Response] = []
    for _ in range(GROUPS):
        sample = world.sample(rng)
        for _ in range(MEMBERS):
            labels = rng.permutation(LABELS)[:POINTS]
            places = rng.uniform((0, 0), (448, 336), (POINTS, 2))
            points = tuple(
                Point(float(x), float(y), str(label))
                for (x, y), label in zip(places, labels, strict=True)
            )
            made.append((sample, Referred(0, points, reasoning="so")))
    return made


def open_scorers(folders: Folders) -> tuple[Scorer, Scorer]:
    """Return a detector and a segmenter that have loaded their models and cached nothing."""
    detector = Scorer("detector", model=str(folders[0]), threshold=0.1, text_threshold=0.0)
    segmenter = Scorer("segmenter", model=str(folders[1]))
    blank = Image.from_pixels(np.zeros((32, 32, 3), np.uint8))
    detector.submit(Detect(blank, "nothing")).result()
    segmenter.submit(HitMasks(blank, ((4.0, 4.0, 8.0, 8.0),), ((5.0, 5.0),))).result()
    return detector, segmenter


def shared(made: list[Response], detector: Scorer, segmenter: Scorer) -> list[float]:
    """Score all responses at once through scorers."""
    verifier = Verifier(
        Teachers(ModelDetector(detector), ModelSegmenter(segmenter)), ("accuracy", "spatial")
    )

    async def everything() -> list[Any]:
        return await asyncio.gather(
            *(verifier.verify(sample, said, sample.answers[0]) for sample, said in made)
        )

    found = asyncio.run(everything())
    return [float(each.terms["spatial"] or 0.0) for each in found]


def load_backends(folders: Folders) -> tuple[DetectorBackend, SegmenterBackend]:
    """Return the two models, loaded, without the scorers around them."""
    detector = DetectorBackend(str(folders[0]), threshold=0.1, text_threshold=0.0)
    segmenter = SegmenterBackend(str(folders[1]))
    detector.load()
    segmenter.load()
    return detector, segmenter


def once_each(
    made: list[Response], detector: DetectorBackend, segmenter: SegmenterBackend
) -> list[float]:
    """Call the models once for each response."""
    scores = []
    for sample, said in made:
        image = sample.images[0]
        boxes = detector.compute([Detect(image, point.label) for point in said.points])
        segmenter._embeddings.clear()  # noqa: SLF001  the baseline has no cache
        segmenter._masks.clear()  # noqa: SLF001
        hits = segmenter.compute(
            [
                HitMasks(image, tuple(tuple(box[:4]) for box in found), ((point.x, point.y),))
                for found, point in zip(boxes, said.points, strict=True)
            ]
        )
        scores.append(statistics.fmean(hit[0] for hit in hits))
    return scores


def timed(run: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> Any:
    start = clock()
    result = run()
    return clock() - start, result


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        folders = tiny_grounding_dino(root / "dino"), tiny_sam2(root / "sam")
        made = responses()
        peers = load_backends(folders)
        once_each(made[:2], *peers)  # warm-up
        ratios = []
        for _ in range(REPEATS):
            scorers = open_scorers(folders)
            ours, first = timed(partial(shared, made, *scorers), time.process_time)
            peer, second = timed(partial(once_each, made, *peers), time.process_time)
            for scorer in scorers:
                scorer.close()
            agree = statistics.fmean(abs(a - b) < 1e-9 for a, b in zip(first, second, strict=True))
            ratios.append(peer / ours)
            print(f"64 responses: {ours:.2f} s; once each {peer:.2f} s; equal scores {agree:.0%}")
        print(f"  ratio {statistics.median(ratios):.2f} (target 4)\n")
        _exact()
        _parsing()
        _frames(root / "video.avi")
        _sharing(folders)


def _exact() -> None:
    env: Any = gym.make("visenv/ArgosImage-v0").unwrapped
    cases = []
    for seed in range(64):
        env.reset(seed=seed)
        *_, info = env.step(env.grammar.compose(env.oracle_turn()))
        referred = next(each for each in info["step"].events if isinstance(each, Referred))
        cases.append((env.sample, referred, env.sample.answers[0]))
    verifier = Verifier(oracle_teachers())
    seconds, _ = timed(
        lambda: [run_local(verifier.verify(*case)) for _ in range(20) for case in cases],
        time.process_time,
    )
    print(f"exact teachers: {20 * len(cases) / seconds:,.0f} verifications/s (target 1,000)")


def _parsing() -> None:
    tag = '<point x="{}" y="{}" alt="cup">cup</point> '
    text = "".join(tag.format(number % 997, number % 613) for number in range(24_000))[: 1 << 20]
    for video in (False, True):
        parse = partial(read_references, text, video=video)
        seconds = min(timed(parse, time.process_time)[0] for _ in range(5))
        print(f"1 MB of tags, video={video}: {1000 * seconds:.0f} ms (target 200)")


def _frames(path: Path) -> None:
    rng = np.random.default_rng(0)
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10.0, (640, 480))
    for _ in range(64):
        small = rng.integers(0, 256, (48, 64, 3), np.uint8)
        writer.write(cv2.resize(small, (640, 480)))
    writer.release()

    def ours() -> list[Any]:
        return [fit(frame, 320 * 240).pixels for frame in open_video(path)[0]]

    def plain() -> list[Any]:
        capture, wanted = cv2.VideoCapture(str(path)), {round(n * 63 / 31) for n in range(32)}
        shown = []
        for number in range(64):
            if number not in wanted:
                capture.grab()
                continue
            _, pixels = capture.read()
            small = cv2.resize(pixels, (320, 240), interpolation=cv2.INTER_AREA)
            shown.append(cv2.cvtColor(small, cv2.COLOR_BGR2RGB))
        return shown

    clock = time.process_time
    ratio = statistics.median(timed(ours, clock)[0] / timed(plain, clock)[0] for _ in range(7))
    print(f"32 frames: {ratio:.2f} times OpenCV (target 1.2)")


def _sharing(folders: Folders) -> None:
    lines = {
        "detector": f"detector:{folders[0]}?threshold=0.1&text_threshold=0.0",
        "segmenter": f"segmenter:{folders[1]}",
    }
    loads: list[str] = []
    for backend in (DetectorBackend, SegmenterBackend):
        load = partialmethod(_counted, backend._load, loads.append)  # noqa: SLF001
        backend._load = load  # type: ignore[method-assign,assignment]  # noqa: SLF001

    def play(count: int) -> list[Any]:
        envs = [gym.make("visenv/ArgosImage-v0", teachers=lines) for _ in range(count)]
        for seed, env in enumerate(envs):
            env.reset(seed=seed % 4)
            base: Any = env.unwrapped
            env.step(base.grammar.compose(base.oracle_turn()))
        return envs

    first = play(4)
    before = memory_mib()
    rest = play(124)
    added = (memory_mib() - before) / len(rest)
    print(f"{len(first + rest)} environments: {sorted(loads)} loaded; {added:.2f} MiB for each")


def _counted(self: Any, load: Callable[[Any], None], note: Callable[[str], None]) -> None:
    note(self.title)
    load(self)


if __name__ == "__main__":
    main()
