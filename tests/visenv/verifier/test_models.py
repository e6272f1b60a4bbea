"""Tests the teachers that use scorers, with tiny models of real architectures."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import PIL.Image
import pytest

from tests.tiny_models import tiny_model
from tests.visenv.verifier.tiny_teachers import tiny_grounding_dino, tiny_owlv2, tiny_sam2
from visenv.errors import ConfigurationError, ServiceError
from visenv.grammar.points import FrameNote, Point, SpanNote, TraceReferences
from visenv.registration import load
from visenv.scorers import Detect, HitMasks, JsonScore, Judge, LogProbs, ReplyError, Scorer
from visenv.scorers.backends.detector import as_query
from visenv.scorers.backends.segmenter import SegmenterBackend
from visenv.types import Image, Message, Sample
from visenv.verifier import (
    Extractor,
    FrameReference,
    Referred,
    Teachers,
    point_scores,
    read_extraction,
)
from visenv.verifier.models import (
    ModelDescriptionJudge,
    ModelDetector,
    ModelReasoner,
    ModelSegmenter,
    read_pointing,
)
from visenv.verifier.selector import read_functions

REAL = pytest.mark.component("torch", "transformers")


def picture(seed: int, width: int = 80, height: int = 60) -> Image:
    rng = np.random.default_rng(seed)
    return Image.from_pixels(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Scorer:
    folder = tiny_grounding_dino(tmp_path_factory.mktemp("detector"))
    return Scorer("detector", model=str(folder), threshold=0.1, text_threshold=0.0)


@pytest.fixture(scope="module")
def segmenter(tmp_path_factory: pytest.TempPathFactory) -> Scorer:
    return Scorer("segmenter", model=str(tiny_sam2(tmp_path_factory.mktemp("segmenter"))))


def ask(scorer: Scorer, request: Any) -> Any:
    return scorer.submit(request).result().value


# ------------------------------------------------------------------------------ real components


@REAL
def test_detector_returns_boxes_inside_the_image(detector: Scorer) -> None:
    boxes = ask(detector, Detect(picture(0), "red cube"))
    assert boxes
    for left, top, right, bottom, score in boxes:
        assert 0 <= left < right <= 80
        assert 0 <= top < bottom <= 60
        assert 0 <= score <= 1
    assert [box[4] for box in boxes] == sorted((box[4] for box in boxes), reverse=True)


@REAL
def test_detector_gives_in_a_batch_what_it_gives_alone(detector: Scorer) -> None:
    requests = [Detect(picture(seed), label) for seed in (1, 2) for label in ("ball", "red cube")]
    together = [future.result().value for future in [detector.submit(each) for each in requests]]
    backend = type_of(detector)(**detector_options(detector))
    backend.load()
    for request, boxes in zip(requests, together, strict=True):
        np.testing.assert_allclose(backend.compute([request])[0], boxes, atol=0.02)


@REAL
def test_owlv2_is_a_detector_too(tmp_path: Path) -> None:
    scorer = Scorer("detector", model=str(tiny_owlv2(tmp_path / "owl")), threshold=0.0)
    futures = [scorer.submit(Detect(picture(1), phrase)) for phrase in ("red cube", "a ball")]
    for future in futures:
        boxes = future.result().value
        # The square of 80 x 80 pixels has 16 patches; the lowest row of them is outside the image.
        assert 12 <= len(boxes) <= 16
        assert all(0 <= box[0] < box[2] <= 80 and 0 <= box[1] < box[3] <= 60 for box in boxes)


@REAL
@pytest.mark.parametrize("tiny", [tiny_owlv2, tiny_grounding_dino])
def test_label_that_is_too_long_for_the_detector_is_cut(tmp_path: Path, tiny: Any) -> None:
    scorer = Scorer("detector", model=str(tiny(tmp_path / "model")), threshold=0.0)
    long = "red cube " * 100
    (found, same) = (
        scorer.submit(Detect(picture(1), phrase)).result().value
        for phrase in (long, f"{long} and more")
    )
    assert len(found) > 0
    assert found == same  # the text after the limit has no effect


def type_of(scorer: Scorer) -> Any:
    return load("scorer", scorer.backend)


def detector_options(scorer: Scorer) -> dict[str, Any]:
    return {name: scorer.options[name] for name in ("model", "threshold", "text_threshold")}


@REAL
def test_segmenter_takes_the_union_of_masks_and_embeds_an_image_once(segmenter: Scorer) -> None:
    backend = SegmenterBackend(segmenter.options["model"])
    backend.load()
    embedded: list[str] = []
    inner = backend._model.get_image_embeddings

    def counted(pixels: Any) -> Any:
        embedded.append("once")
        return inner(pixels)

    backend._model.get_image_embeddings = counted
    image, boxes = picture(3), ((5.0, 5.0, 40.0, 30.0), (30.0, 10.0, 60.0, 50.0))
    places = tuple((x + 0.5, y + 0.5) for y in range(0, 60, 6) for x in range(0, 80, 8))
    union = backend.compute([HitMasks(image, boxes, places)])[0]
    single = [backend.compute([HitMasks(image, (box,), places)])[0] for box in boxes]
    assert union == [one or other for one, other in zip(*single, strict=True)]
    assert len(embedded) == 1
    assert backend.compute([HitMasks(image, (), places)])[0] == [False] * len(places)
    assert len(backend.compute([HitMasks(image, ((9.0, 9.0),), places)])[0]) == len(places)


class PictureProcessor:
    """Calls a processor with a PIL image, whose channels cannot be mistaken."""

    def __init__(self, processor: Any, image: Image) -> None:
        self._processor = processor
        self._picture = PIL.Image.fromarray(image.pixels)

    def __call__(self, **given: Any) -> Any:
        return self._processor(**given | {"images": [self._picture]})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._processor, name)


CENTERS = tuple((x + 0.5, y + 0.5) for y in range(3) for x in range(40))
"""The centers of the pixels of an image of 40 x 3 pixels."""


@REAL
@pytest.mark.parametrize(
    ("name", "build", "options", "width", "ask_about"),
    [
        # With 40 pixels, it would have fewer patches than queries.
        ("detector", tiny_grounding_dino, {"threshold": 0.0}, 12, lambda it: Detect(it, "ball")),
        (
            "segmenter",
            tiny_sam2,
            {},
            40,
            lambda it: HitMasks(it, ((5.0, 0.0, 30.0, 2.0),), CENTERS),
        ),
        ("transformers", tiny_model, {}, 40, lambda it: LogProbs((Message("user", (it,)),), "yes")),
    ],
    ids=["grounding_dino", "sam2", "qwen3_vl"],
)
def test_low_images_are_not_read_as_channels(
    name: str, build: Any, options: dict[str, Any], width: int, ask_about: Any, tmp_path: Path
) -> None:
    image = picture(6, width, 3)
    values = []
    for wrap in (lambda processor, _: processor, PictureProcessor):
        backend = load("scorer", name)(str(build(tmp_path / "model")), **options)
        backend.load()
        backend._processor = wrap(backend._processor, image)
        values.append(backend.compute([ask_about(image)])[0])
    np.testing.assert_allclose(np.float64(values[0]), np.float64(values[1]), atol=1e-6)


@REAL
def test_points_are_scored_by_real_teachers(detector: Scorer, segmenter: Scorer) -> None:
    sample = Sample("s", "?", (picture(4),), ("a",))
    best, second, *_ = ask(detector, Detect(sample.images[0], "red cube"))
    # The masks of a tiny model are random, so the union of all would be the whole image.
    options = detector_options(detector) | {"threshold": (best[4] + second[4]) / 2}
    teachers = Teachers(ModelDetector(Scorer("detector", **options)), ModelSegmenter(segmenter))
    places = [(x + 0.5, y + 0.5) for x in range(0, 80, 10) for y in range(0, 60, 10)]
    points = [(0, Point(*place, "red cube")) for place in places]
    outside = (0, Point(80.5, 0.5, "red cube"))
    hits = ask(segmenter, HitMasks(sample.images[0], (tuple(best[:4]),), tuple(places)))
    assert 0 < sum(hits) < len(hits)
    scores = asyncio.run(point_scores(sample, [*points, outside], teachers))
    assert scores == [*map(float, hits), 0.0]


@REAL
def test_reasoner_is_the_teacher_forced_probability(tmp_path: Path) -> None:
    tiny_model(tmp_path / "model")
    scorer = Scorer("transformers", model=str(tmp_path / "model"))
    prompt = "{question} {reasoning}"
    sample = Sample("s", "what color ?", (picture(5, 96, 96),), ("red",))
    found = asyncio.run(ModelReasoner(scorer, prompt).log_probabilities(sample, "so", "red"))
    message = Message("user", (*sample.images, 'what color ? "so"'))
    assert found == ask(scorer, LogProbs((message,), "red"))
    assert all(value < 0 and math.isfinite(value) for value in found)


@REAL
def test_environment_is_scored_by_real_teachers(detector: Scorer, segmenter: Scorer) -> None:
    lines = {
        "detector": f"detector:{detector.options['model']}?threshold=0.1&text_threshold=0.0",
        "segmenter": f"segmenter:{segmenter.options['model']}",
    }
    env = gym.make("visenv/ArgosImage-v0", preset="tiny", teachers=lines, on_abort="raise")
    env.reset(seed=0)
    base: Any = env.unwrapped
    *_, info = env.step(base.grammar.compose(base.oracle_turn()))
    terms, events = info["step"].terms, info["step"].events
    (point,) = next(each for each in events if isinstance(each, Referred)).points
    boxes = asyncio.run(ModelDetector(detector).boxes(FrameReference(base.sample), point.label))
    place = (point.x, point.y)
    (hit,) = ask(segmenter, HitMasks(base.sample.images[0], tuple(boxes), (place,)))
    assert terms == {"accuracy": 1.0, "spatial": float(hit), "temporal": None, "reasoning": None}
    assert [event.scorer.split(":")[0] for event in events[-2:]] == ["detector", "segmenter"]


@pytest.mark.parametrize("name", ["detector", "segmenter"])
def test_model_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    image = picture(0)
    request = Detect(image, "a") if name == "detector" else HitMasks(image, ((1.0, 1.0),), ())
    with pytest.raises(ConfigurationError, match="missing"):
        Scorer(name, model=str(tmp_path / "missing")).submit(request).result()


# ------------------------------------------------------------------------------- broken teachers


def dies(request: Any) -> Any:
    raise RuntimeError("out of memory")


def says_nan(request: Any) -> Any:
    return [[math.nan, 0, 1, 1, 1]] if isinstance(request, Detect) else [math.nan]


def finds_900(request: Any) -> Any:
    if isinstance(request, Detect):
        return [[float(n % 30), 0.0, float(n % 30 + 1), 60.0, 0.5] for n in range(900)]
    return [any(box[0] <= x < box[2] for box in request.prompts) for x, _ in request.points]


@pytest.mark.parametrize("name", ["dies", "says_nan"])
def test_broken_teacher_aborts_the_episode(name: str) -> None:
    line = f"rules:{__name__}:{name}"
    env = gym.make(
        "visenv/ArgosImage-v0", preset="tiny", teachers={"detector": line, "segmenter": line}
    )
    env.reset(seed=0)
    base: Any = env.unwrapped
    _, reward, _, truncated, info = env.step(base.grammar.compose(base.oracle_turn()))
    assert reward == 0.0
    assert truncated
    assert info["step"].failure is not None


def finds_all(request: Any) -> Any:
    if isinstance(request, Detect):
        return [
            [0.0, 0.0, 80.0, 60.0, 0.9],
            [0.0, 0.0, 80.0, 53.0, 0.8],
            [-9.0, 9.0, 4.0, 20.0, 0.7],
        ]
    return [True] * len(request.points)


@pytest.mark.parametrize("label", ["", ".", " - ? ", "red green blue ball cube cone diamond"])
def test_vague_labels_have_no_boxes(label: str) -> None:
    seen = FrameReference(Sample("s", "?", (picture(0),), ("a",)))
    scorer = Scorer("rules", function=f"{__name__}:finds_all")
    assert asyncio.run(ModelDetector(scorer).boxes(seen, label)) == []
    assert asyncio.run(ModelDetector(scorer).boxes(seen, "red ball"))


def test_boxes_around_most_of_the_image_do_not_count() -> None:
    seen = FrameReference(Sample("s", "?", (picture(0),), ("a",)))
    scorer = Scorer("rules", function=f"{__name__}:finds_all")
    most = [(0.0, 0.0, 80.0, 53.0), (-9.0, 9.0, 4.0, 20.0)]  # 88 % of the image, and a small one
    assert asyncio.run(ModelDetector(scorer).boxes(seen, "cup")) == most
    assert asyncio.run(ModelDetector(scorer, largest_box=0.5).boxes(seen, "cup")) == most[1:]
    assert len(asyncio.run(ModelDetector(scorer, largest_box=1.0).boxes(seen, "cup"))) == 3
    assert asyncio.run(ModelDetector(scorer, most_words=1).boxes(seen, "a cup")) == []


def points_badly(request: Any) -> Any:
    if isinstance(request, HitMasks):
        return [True] * len(request.points)
    return [[1.0, 1.0, 9.0, 9.0, 0.9]] if isinstance(request, Detect) else ["no text"]


@pytest.mark.parametrize("name", ["dies", "says_nan", "points_badly"])
@pytest.mark.parametrize(("teacher", "kind"), [("pointing_model", "chart"), ("reasoner", "color")])
def test_broken_pointing_model_or_reasoner_aborts_the_episode(
    name: str, teacher: str, kind: str
) -> None:
    good, bad = (f"rules:{__name__}:{each}" for each in ("finds_all", name))
    lines = {"detector": good, "segmenter": good, teacher: bad}
    env = gym.make("visenv/ArgosImage-v0", kinds=[kind], teachers=lines)
    env.reset(seed=0)
    base: Any = env.unwrapped
    _, reward, _, truncated, info = env.step(base.grammar.compose(base.oracle_turn()))
    assert (reward, truncated) == (0.0, True)
    assert info["step"].failure is not None


def is_certain(request: Any) -> Any:
    return [0, -1]


def test_reasoner_may_be_certain() -> None:
    """Check the log-probability 0.0, which a server writes as the JSON number 0."""
    reasoner = ModelReasoner(Scorer("rules", function=f"{__name__}:is_certain"), "{question}")
    sample = Sample("s", "?", (picture(0),), ("a",))
    assert asyncio.run(reasoner.log_probabilities(sample, "so", "a")) == [0.0, -1.0]


def test_boxes_are_one_union() -> None:
    scorer = Scorer("rules", function=f"{__name__}:finds_900")
    teachers = Teachers(ModelDetector(scorer), ModelSegmenter(scorer))
    sample = Sample("s", "?", (picture(0),), ("a",))
    points = [(0, Point(3.5, 9, "a")), (0, Point(40, 9, "a"))]
    assert asyncio.run(point_scores(sample, points, teachers)) == [1.0, 0.0]


# ---------------------------------------------------------------------------------- replies


@pytest.mark.parametrize(
    ("phrase", "query"),
    [
        ("A chest of drawers", "a chest of drawers."),
        ("Mr. Fox.", "mr fox."),
        ("  red\n cube ", "red cube."),
        ("", "."),
    ],
)
def test_query_is_one_lower_case_phrase_with_a_full_stop(phrase: str, query: str) -> None:
    assert as_query(phrase) == query


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ('<point x="50.0" y="25.5" alt="cup">cup</point>', [(100, 25.5)]),
        ('<points x1="10" y1="20" x2="30" y2="40" alt="a">a</points>', [(20, 20), (60, 40)]),
        ('<point x="101" y="5">cup</point>', []),
        ('[{"point_2d": [120, 40], "label": "cup"}]', [(120, 40)]),
        ('[{"point_2d": [320, 40], "label": "cup"}]', []),
        ('```json\n[{"point": [12, 40]}]\n```', [(12, 40)]),
        ("There is none.", []),
        ('<point x="NaN" y="5">', []),
        ('<point x="1" y="2">a</point>, <point x="3" y="4">b</point>', [(2, 2), (6, 4)]),
        ('<point x="1">a</point> <point y="4">b</point>', []),
        ('<point x="-1" y="4">b</point>', []),
    ],
)
def test_pointing_replies_are_read(text: str, places: list[tuple[float, float]]) -> None:
    found = read_pointing(text, (200, 100))
    np.testing.assert_allclose(np.array(found), np.array(places))


def test_pointing_replies_may_be_relative() -> None:
    text = '[{"point_2d": [500, 250], "label": "cup"}, {"point_2d": [1001, 0], "label": "cup"}]'
    assert read_pointing(text, (200, 100), "relative1000") == [(100, 25)]
    molmo = '<point x="50" y="25" alt="cup">cup</point>'
    assert read_pointing(molmo, (200, 100), "relative1000") == [(100, 25)]


def reply(request: Any) -> Any:
    text = "".join(part for part in request.messages[-1].parts if isinstance(part, str))
    return {"text": '{"score": 1}' if "rain" in text else '{"score": 0}', "finish_reason": "stop"}


def test_descriptions_are_judged_on_their_frames() -> None:
    scorer = Scorer("rules", function=f"{__name__}:reply")
    score = JsonScore(values=(0.0, 1.0))
    judge = ModelDescriptionJudge(
        Judge(scorer, "{image} {description}", score),
        Judge(scorer, "{frames} {description}", score),
    )
    sample = Sample("s", "?", (picture(0), picture(1)), ("a",))
    assert asyncio.run(judge.frame_is(FrameReference(sample, 1), "rain")) is True
    assert asyncio.run(judge.span_is(sample, 0, 1, "sun")) is False


EXTRACTED = {
    "spatiotemporal": [
        {"frame": 2, "time": 0.5, "object": "cup", "x": "12", "y": "3"},
        {"frame": 2, "time": 0.5, "object": "cup", "x": "12", "y": "3"},
        {"frame": None, "time": None, "object": "cup", "x": "left", "y": "3"},
    ],
    "frame_level_temporal": [{"frame": 3, "time": None, "description": "it rains"}],
    "segment_level_temporal": [
        {"start_frame": 1, "end_frame": None, "start_time": None, "end_time": None,
         "description": "it snows"},
        {"start_frame": 1, "end_frame": 2, "start_time": None, "end_time": None,
         "description": "made up"},
    ],
}  # fmt: skip


def extract(request: Any) -> Any:
    return {"text": json.dumps(EXTRACTED), "finish_reason": "stop"}


def test_extraction_drops_duplicates_and_what_is_no_part_of_the_trace() -> None:
    judge: Judge[TraceReferences] = Judge(
        Scorer("rules", function=f"{__name__}:extract"), "{trace}", read_extraction
    )
    found = asyncio.run(Extractor(judge).extract("In frame 3 it rains; from frame 1 on it snows."))
    assert found.points == (Point(12, 3, "cup", 2, 0.5),)
    assert found.frames == (FrameNote(3, None, "it rains"),)
    assert found.spans == (SpanNote(1, None, None, None, "it snows"),)
    assert found.dropped == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"spatiotemporal": 3}', "[" * 10_000, "null"])
def test_extraction_refuses_other_replies(text: str) -> None:
    with pytest.raises(ReplyError):
        read_extraction(text)


def chooses(request: Any) -> Any:
    return {"text": '["equivalence"]', "finish_reason": "stop"}


def test_model_may_leave_out_the_reasoning_but_not_the_grounding() -> None:
    env = gym.make("visenv/ArgosImage-v0", preset="tiny", selector=f"rules:{__name__}:chooses")
    env.reset(seed=0)
    base: Any = env.unwrapped
    *_, info = env.step(f"<think></think><answer>{base.sample.answers[0]}</answer>")
    selected = next(each for each in info["step"].events if type(each).__name__ == "Selected")
    assert selected.functions == ("exact", "spatial")
    assert selected.by == f"rules:{__name__}:chooses"
    assert info["step"].terms["spatial"] == 0.0
    assert info["step"].terms["reasoning"] is None
    assert info["step"].reward == 0.5


@pytest.mark.parametrize("text", ["", "[1]", '["magic"]', "reasoning"])
def test_functions_are_read_strictly(text: str) -> None:
    with pytest.raises(ReplyError):
        read_functions(text)


def test_detector_with_an_invalid_reply_is_refused() -> None:
    scorer = Scorer("rules", function=f"{__name__}:extract")
    with pytest.raises(ServiceError):
        asyncio.run(
            ModelDetector(scorer).boxes(
                FrameReference(Sample("s", "?", (picture(0),), ("a",))), "cup"
            )
        )
