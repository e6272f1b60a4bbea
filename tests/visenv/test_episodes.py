"""Tests episodes on disk: read episodes equal the written ones, and errors name broken parts."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from tests.checksums import without_checksums
from visenv.env import EpisodeLimits, VisEnv
from visenv.episodes import append_episode, read_episodes, write_episodes
from visenv.errors import DataError, EpisodeError, ImageError
from visenv.grammar import KeyValueGrammar
from visenv.policies.scripted import ScriptedPolicy
from visenv.records import UnknownRecord, event_to_json
from visenv.rollout import Collector, Executor, InlineExecutor, ProcessExecutor
from visenv.testing import toy
from visenv.tools import Store, Tool, ToolResult
from visenv.types import (
    Aborted,
    Answered,
    CallSkipped,
    Episode,
    Event,
    Failure,
    Image,
    ImageSpan,
    Malformed,
    Message,
    PlaceholderRun,
    QuestionTruth,
    Scored,
    Segment,
    Status,
    ToolCalled,
    Truncated,
    Turn,
    TurnRequest,
    TurnSpan,
    TurnTaken,
    UnknownEvent,
    Video,
    VideoSpan,
)
from visenv.types.failure import FailureSource

# -------------------------------------------------------------------------- any possible episode

# With surrogates, alone and in pairs, since the bytes of a policy may decode to any text.
texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=12)
numbers = st.floats(allow_nan=False, width=64)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, json_values, max_size=3)
foreign_fields = objects.map(
    lambda fields: {key: fields[key] for key in fields.keys() - {"event", "turn"}}
)
turn_numbers = st.integers(0, 9)
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(TurnTaken, turn_numbers, texts, st.none() | texts),
    st.builds(
        ToolCalled,
        turn_numbers,
        texts,
        objects,
        st.booleans(),
        texts,
        st.lists(texts, max_size=2).map(tuple),
        objects,
        st.integers(0, 9),
    ),
    st.builds(Malformed, turn_numbers, texts, texts),
    st.builds(Answered, turn_numbers, texts),
    st.builds(Truncated, turn_numbers, texts),
    st.builds(Aborted, turn_numbers, texts, texts),
    st.builds(CallSkipped, turn_numbers, texts, objects, texts),
    st.builds(Scored, turn_numbers, texts, texts, texts, texts, json_values),
    st.builds(UnknownEvent, turn_numbers, texts.map("Foreign{}".format), foreign_fields),
)
failures = st.builds(
    Failure, st.sampled_from(get_args(FailureSource)), texts, texts, traceback=texts
)
PICTURES = tuple(
    Image.from_pixels(np.random.default_rng(seed).integers(0, 256, (3, 5, 3), np.uint8))
    for seed in range(3)
)
videos = st.builds(
    lambda frames, times: Video(tuple(frames[: len(times)]), tuple(sorted(times))),
    st.lists(st.sampled_from(PICTURES), min_size=2, max_size=2),
    st.sets(st.floats(0, 1e6), min_size=1, max_size=2),
)
messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant"]),
    st.lists(texts | st.sampled_from(PICTURES) | videos, max_size=3).map(tuple),
)
truths = st.none() | st.one_of(
    st.builds(UnknownRecord, texts.map("Foreign{}".format), objects),
    st.builds(QuestionTruth, options=st.lists(texts, max_size=2).map(tuple), document=texts),
)
requests = st.builds(
    TurnRequest,
    texts,
    st.lists(texts, max_size=2).map(tuple),
    st.none() | texts,
    st.none() | st.integers(1, 99),
    st.sampled_from(["append", "replace"]),
)
turns = st.builds(
    Turn,
    st.lists(messages, max_size=2).map(tuple),
    texts,
    numbers,
    st.lists(events, max_size=3).map(tuple),
    st.sampled_from(["stop", "length", "abort"]),
    requests,
    st.lists(videos, max_size=1).map(tuple),
    advantage=st.none() | numbers,
)


@st.composite
def segments_of(draw: st.DrawFn, turn_count: int, shown: list[str], filmed: list[str]) -> Segment:
    """Return a segment with all turns, each after an image, a video or an environment token."""
    tokens: list[int] = []
    logprobs: list[float] = []
    turn_spans, image_spans, video_spans = [], [], []
    for turn in range(turn_count):
        with_image: bool = draw(st.booleans())
        with_video: bool = draw(st.booleans())
        if shown and with_image:
            sha256 = draw(st.sampled_from(shown))
            runs: list[PlaceholderRun] = []
            for length in draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)):
                runs.append(PlaceholderRun(len(tokens), length))
                tokens += [*[0] * length, 7]  # rows of an image have a token between them
            image_spans.append(ImageSpan(sha256, tuple(runs), 0, draw(st.integers(1, 99))))
        elif filmed and with_video:
            sha256, seconds = draw(st.sampled_from(filmed)), draw(st.floats(0, 9))
            first_step = draw(st.integers(0, 9))
            place = len(tokens)
            video_spans.append(VideoSpan(place, 3, sha256, (3, 2, 2), 1, seconds, first_step))
            tokens += [1, 1, 1]
        else:
            tokens.append(draw(st.integers(2, 2**31 - 1)))
        logprobs += [0.0] * (len(tokens) - len(logprobs))
        sampled = draw(st.lists(st.floats(max_value=0, width=32) | st.just(math.nan), max_size=4))
        regex = draw(st.none() | texts)
        turn_spans.append(TurnSpan(turn, len(tokens), len(tokens) + len(sampled), "stop", regex))
        tokens += [draw(st.integers(2, 2**31 - 1)) for _ in sampled]
        logprobs += sampled
    mask = np.zeros(len(tokens), np.bool_)
    for span in turn_spans:
        mask[span.start : span.end] = True
    return Segment(
        np.array(tokens, np.int32),
        mask,
        np.array(logprobs, np.float32),
        np.where(mask, draw(st.integers(0, 2**31 - 1)), 0).astype(np.int32),
        tuple(turn_spans),
        tuple(image_spans),
        (0, 1),
        draw(st.floats(0, 2)),
        draw(texts),
        tuple(video_spans),
    )


@st.composite
def episodes(draw: st.DrawFn) -> Episode:
    status: Status = draw(st.sampled_from(("terminated", "truncated", "aborted")))
    taken = tuple(draw(st.lists(turns, max_size=3)))
    if status == "aborted":
        taken = tuple(replace(turn, reward=0.0) for turn in taken)
    shown = [i.sha256 for turn in taken for message in turn.messages for i in message.images]
    filmed = [v.sha256 for turn in taken for message in turn.messages for v in message.videos]
    tokens = draw(st.booleans()) and bool(taken)
    return Episode(
        env_id=draw(texts),
        sample_id=draw(texts),
        kind=draw(texts),
        seed=draw(st.integers(-(2**70), 2**70)),
        group=draw(turn_numbers),
        member=draw(turn_numbers),
        turns=taken,
        status=status,
        reason=draw(st.text(min_size=1, max_size=5)) if status == "truncated" else "",
        failure=draw(failures) if status == "aborted" else None,
        closing=tuple(draw(st.lists(messages, max_size=1))),
        segments=(draw(segments_of(len(taken), shown, filmed)),) if tokens else (),
        terms=draw(st.dictionaries(texts, numbers | st.none(), max_size=2)),
        term_notes=draw(st.dictionaries(texts, texts, max_size=2)),
        metrics=draw(st.dictionaries(texts, numbers, max_size=2)),
        question=draw(texts),
        answers=tuple(draw(st.lists(texts, max_size=2))),
        ground_truth=draw(truths),
        media=draw(st.dictionaries(texts, texts, max_size=2)),
        env_spec=draw(texts),
        index=draw(st.none() | st.integers(0, 2**40)),
        term_weights=draw(st.dictionaries(texts, numbers, max_size=2)),
        world_version=draw(st.integers(1, 9)),
    )


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(written=st.lists(episodes(), max_size=3))
def test_episodes_as_read_equal_those_written(
    tmp_path_factory: pytest.TempPathFactory, written: list[Episode]
) -> None:
    path = tmp_path_factory.mktemp("episodes") / "some.jsonl"
    write_episodes(path, written)
    assert list(read_episodes(path)) == written


def test_arrays_come_back_to_the_bit(tmp_path: Path) -> None:
    nan = np.array([0x7FC00001, 0x80000000], np.uint32).view(np.float32)  # NaN with payload, -0.0
    tokens = np.array([2**31 - 1, 1, 2], np.int32)
    segment = Segment(
        tokens,
        np.array([False, True, True]),
        np.concatenate([np.zeros(1, np.float32), nan]),
        np.array([0, 7, 8], np.int32),
        (TurnSpan(0, 1, 3, "length"),),
        (),
        (9,),
        0.7,
        "p",
    )
    turn = Turn((), "red", 0.1 + 0.2, (), "length")
    episode = Episode("e-v0", "s", "", 2**63 - 1, 0, 0, (turn,), "terminated", segments=(segment,))
    write_episodes(tmp_path / "e.jsonl", [episode])
    (read,) = read_episodes(tmp_path / "e.jsonl")
    for name in ("token_ids", "loss_mask", "logprobs", "policy_version"):
        before, after = getattr(segment, name), getattr(read.segments[0], name)
        assert (before.dtype, before.tobytes()) == (after.dtype, after.tobytes())
    assert read.reward == 0.30000000000000004
    assert read.seed == 2**63 - 1


def test_turns_saved_without_a_constraint_have_none(tmp_path: Path) -> None:
    """Read an older episode: its constraints were not saved, its tokens chosen among all tokens."""
    empty = np.zeros(0, np.int32)
    arrays = (empty, np.zeros(0, np.bool_), np.zeros(0, np.float32), empty)
    segment = Segment(*arrays, (TurnSpan(0, 0, 0, "stop", "a+"),), (), (9,), 1.0, "p")
    turn = Turn((), "red", 0.0, (), "stop")
    episode = Episode("e-v0", "s", "", 0, 0, 0, (turn,), "terminated", segments=(segment,))
    path = tmp_path / "e.jsonl"
    write_episodes(path, [episode])
    assert next(read_episodes(path)).segments[0].turns[0].regex == "a+"
    record = json.loads(path.read_text())
    record["segments"][0]["turns"] = [[0, 0, 0, "stop"]]
    path.write_text(json.dumps(record) + "\n")
    assert next(read_episodes(path)).segments[0].turns == (TurnSpan(0, 0, 0, "stop", None),)


def test_real_episodes_come_back(tmp_path: Path) -> None:
    from visenv.registration import load

    written = Collector(toy.make, load("policy", "oracle")()).groups([1, 2], size=2)
    flat = [episode for group in written for episode in group]
    write_episodes(tmp_path / "new" / "deep" / "e.jsonl", flat)
    assert list(read_episodes(tmp_path / "new" / "deep" / "e.jsonl")) == flat
    assert any(isinstance(event, ToolCalled) for event in flat[0].events)


# ------------------------------------------------------------------------------------- texts


def _taking(*taken: TurnTaken, text: str) -> Episode:
    turn = Turn((), text, 0.0, taken, "stop")
    return Episode("e-v0", "s", "", 0, 0, 0, (turn,), "terminated")


def test_text_of_a_turn_is_saved_once(tmp_path: Path) -> None:
    text, thought = '<think>It is "7", ä.</think><answer>7</answer>', 'It is "7", ä.'
    episode = _taking(TurnTaken(0, text, thought), text=text)
    write_episodes(tmp_path / "e.jsonl", [episode])
    line = (tmp_path / "e.jsonl").read_text(encoding="utf-8")
    assert line.count(json.dumps(thought, ensure_ascii=False)[1:-1]) == 1
    (event,) = json.loads(line)["turns"][0]["events"]
    assert event == {"event": "TurnTaken", "turn": 0, "thought": [7, 20]}
    assert list(read_episodes(tmp_path / "e.jsonl")) == [episode]


@pytest.mark.parametrize("text", ["", "aab", "b\U0001f600\ud83d\ude00a\ud83d"])
@pytest.mark.parametrize("taken", ["", "xaab", "b\U0001f600\ud83d\ude00a\ud83d"])
@pytest.mark.parametrize("thought", [None, "", "a", "aab", "zz", "\ud83d\ude00a", "\ud83d"])
def test_texts_and_thoughts_come_back(
    text: str, taken: str, thought: str | None, tmp_path: Path
) -> None:
    """Check events whose text is not that of the turn, and thoughts that are no part of it."""
    episode = _taking(TurnTaken(0, taken, thought), TurnTaken(0, text, thought), text=text)
    write_episodes(tmp_path / "e.jsonl", [episode])
    assert list(read_episodes(tmp_path / "e.jsonl")) == [episode]


@pytest.mark.parametrize(
    "thought",
    [[-1, 2], [2, 1], [0, 4], [4, 4], [0], [], [0, 1, 2], ["0", 1], [0.0, 1], 3, {"start": 0}],
)
def test_thought_at_an_impossible_place_is_refused(thought: Any, tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    write_episodes(path, [_taking(TurnTaken(0, "abc", "b"), text="abc")])
    record = json.loads(path.read_text())
    assert record["turns"][0]["events"][0]["thought"] == [1, 2]
    record["turns"][0]["events"][0]["thought"] = thought
    path.write_text(json.dumps(record) + "\n")
    with pytest.raises(DataError, match="line 1 holds no episode"):
        list(read_episodes(path))


def test_file_may_have_lines_of_several_formats(tmp_path: Path) -> None:
    """Check a run that an earlier version began and this version resumed."""
    path = tmp_path / "e.jsonl"
    episode = _taking(TurnTaken(0, "abc", "b"), text="abc")
    write_episodes(path, [episode])
    present = path.read_text()
    record = json.loads(present)
    record["format"] = 3
    record["turns"][0]["events"] = [event_to_json(event) for event in episode.events]
    assert record["turns"][0]["events"][0]["text"] == "abc"
    path.write_text(json.dumps(record) + "\n" + present)
    assert list(read_episodes(path)) == [episode, episode]


class Film(Tool[toy.AddArguments]):
    """Shows a video of two frames, and records a third one for viewers."""

    name = "add"
    description = "Shows a video."
    arguments = toy.AddArguments

    @override
    def call(self, arguments: toy.AddArguments, store: Store) -> ToolResult:
        seen = Video(PICTURES[:2], (0.0, 0.5))
        return ToolResult(("a film", seen), hidden_frames=(Video(PICTURES[2:], (7.0,)),))


@pytest.mark.parametrize("executor", [InlineExecutor, ProcessExecutor])
def test_videos_that_a_tool_returned_come_back(
    executor: Callable[[], Executor], tmp_path: Path
) -> None:
    policy = ScriptedPolicy(["<tool>\nname: add\namount: 1\n</tool>", "<answer>1</answer>"])
    collector = Collector(film, policy, executor=executor())
    ((played,),) = collector.groups([1], size=1)
    write_episodes(tmp_path / "e.jsonl", [played])
    (read,) = read_episodes(tmp_path / "e.jsonl")
    assert read == played
    assert read.turns[1].messages[-1].videos == (Video(PICTURES[:2], (0.0, 0.5)),)
    assert [turn.hidden_frames for turn in read.turns] == [(Video(PICTURES[2:], (7.0,)),), ()]


def film() -> VisEnv:
    return toy.Adder(
        source=toy.Sums(), grammar=KeyValueGrammar(), tools=[Film()], limits=EpisodeLimits(turns=2)
    )


def _shows(*images: Image) -> Episode:
    turn = Turn((Message("user", images),), "?", 0.0, (), "stop")
    return Episode("e-v0", "s", "", 0, 0, 0, (turn,), "terminated")


# ---------------------------------------------------------------------------------- images


def test_image_is_stored_once_and_shared(tmp_path: Path) -> None:
    twin = Image.from_pixels(np.array(PICTURES[0].pixels))
    write_episodes(tmp_path / "a.jsonl", [_shows(PICTURES[0]), _shows(twin, PICTURES[1])])
    write_episodes(tmp_path / "b.jsonl", [_shows(PICTURES[0])])
    stored = sorted(path.name for path in (tmp_path / "images").iterdir())
    assert stored == sorted(f"{image.sha256}.png" for image in PICTURES[:2])
    first, second = read_episodes(tmp_path / "a.jsonl")
    assert first.images[0] is second.images[0]


def test_missing_image_is_named(tmp_path: Path) -> None:
    write_episodes(tmp_path / "a.jsonl", [_shows(PICTURES[0])])
    (tmp_path / "images" / f"{PICTURES[0].sha256}.png").unlink()
    with pytest.raises(DataError, match=rf"a\.jsonl, line 1 .*no image file.*{PICTURES[0].sha256}"):
        list(read_episodes(tmp_path / "a.jsonl"))


def test_changed_image_is_noticed(tmp_path: Path) -> None:
    write_episodes(tmp_path / "a.jsonl", [_shows(PICTURES[0])])
    (tmp_path / "images" / f"{PICTURES[0].sha256}.png").write_bytes(PICTURES[1].png())
    with pytest.raises(DataError, match="are not those it was saved with"):
        list(read_episodes(tmp_path / "a.jsonl"))


def test_read_episodes_without_a_check_of_pixels_opens_no_image(tmp_path: Path) -> None:
    write_episodes(tmp_path / "a.jsonl", [_shows(PICTURES[0])])
    (tmp_path / "images" / f"{PICTURES[0].sha256}.png").write_bytes(b"no image")
    (episode,) = read_episodes(tmp_path / "a.jsonl", check_pixels=False)
    assert [image.sha256 for image in episode.images] == [PICTURES[0].sha256]


def test_read_episodes_without_a_check_of_pixels_finds_a_missing_image_on_use(
    tmp_path: Path,
) -> None:
    write_episodes(tmp_path / "a.jsonl", [_shows(PICTURES[0])])
    (tmp_path / "images" / f"{PICTURES[0].sha256}.png").unlink()
    (episode,) = read_episodes(tmp_path / "a.jsonl", check_pixels=False)
    with pytest.raises(ImageError, match="There is no image file"):
        _ = episode.images[0].pixels


@pytest.mark.attack("files: a name in a file stays below its folder")
@pytest.mark.parametrize("name", ["../../secret", "../other.html?x", "images/x", "A" * 64, "0"])
def test_image_is_named_by_its_hash_and_nothing_else(name: str, tmp_path: Path) -> None:
    PIL.Image.new("RGB", (2, 2)).save(tmp_path / "secret.png")
    (tmp_path / "run").mkdir()
    write_episodes(tmp_path / "run" / "a.jsonl", [_shows(PICTURES[0])])
    text = without_checksums((tmp_path / "run" / "a.jsonl").read_text())
    changed = text.replace(PICTURES[0].sha256, name)
    (tmp_path / "run" / "a.jsonl").write_text(changed)
    for check_pixels in (True, False):
        with pytest.raises(DataError, match="an image is named by its SHA-256"):
            list(read_episodes(tmp_path / "run" / "a.jsonl", check_pixels=check_pixels))


@pytest.mark.attack("files: a name in a file stays below its folder")
def test_image_that_is_a_link_to_another_folder_is_not_read(tmp_path: Path) -> None:
    image = PICTURES[0]
    (tmp_path / "private.png").write_bytes(image.png())
    write_episodes(tmp_path / "run" / "a.jsonl", [_shows(image)])
    saved = tmp_path / "run" / "images" / f"{image.sha256}.png"
    saved.unlink()
    saved.symlink_to(tmp_path / "private.png")
    with pytest.raises(DataError, match="is a link to a place outside"):
        list(read_episodes(tmp_path / "run" / "a.jsonl"))


# ------------------------------------------------------------------------------ broken files


def _lines(tmp_path: Path) -> tuple[Path, list[bytes]]:
    path = tmp_path / "a.jsonl"
    write_episodes(path, [_shows(PICTURES[0]), _shows(PICTURES[1]), _shows(PICTURES[2])])
    return path, path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"format": 1}',
        b'{"format": 2}',
        b'{"format": 3}',
        b'{"format": 4}',
        b'{"format": 5}',
    ],
)
def test_broken_line_is_named_and_those_before_it_are_read(tmp_path: Path, broken: bytes) -> None:
    path, lines = _lines(tmp_path)
    path.write_bytes(lines[0] + broken + b"\n" + lines[2])
    reader = read_episodes(path)
    assert next(reader).images == (PICTURES[0],)
    with pytest.raises(DataError, match=r"a\.jsonl, line 2 holds no episode"):
        next(reader)


@pytest.mark.parametrize("writes_all", [True, False])
def test_changed_letter_of_a_line_is_noticed(tmp_path: Path, writes_all: bool) -> None:
    path = tmp_path / "a.jsonl"
    if writes_all:
        write_episodes(path, [_shows(PICTURES[0])])
    else:
        append_episode(path, _shows(PICTURES[0]))
    text = path.read_text()
    assert list(read_episodes(path)) == [_shows(PICTURES[0])]
    assert "terminated" in text
    path.write_text(text.replace("terminated", "truncated"))
    with pytest.raises(DataError, match="its text differs from its checksum"):
        list(read_episodes(path))


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in a JSON document."""
    inside: Any = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    return [path, *(p for key, each in inside for p in _paths(each, (*path, key)))]


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_changed_line_gives_an_episode_or_a_named_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("changed") / "a.jsonl"
    write_episodes(path, [data.draw(episodes())])
    record = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    *parents, last = data.draw(st.sampled_from(_paths(record)[1:]))
    place = record
    for key in parents:
        place = place[key]
    if data.draw(st.booleans()):
        del place[last]
    else:
        place[last] = data.draw(json_values)
    path.write_bytes(json.dumps(record).encode())
    said = ""
    try:
        read = list(read_episodes(path))
    except DataError as error:
        said = str(error)
    assert "a.jsonl, line 1 holds no episode" in said or len(read) == 1


HUGE = 10**400
"""An integer that is too large for a float; Python's JSON reads it as any other integer."""


@pytest.mark.parametrize(
    ("place", "value"),
    [
        *((("turns", 0, "reward"), value) for value in (HUGE, "1", None)),
        *((("turns", 0, name), HUGE) for name in ("sampling_seconds", "env_seconds", "advantage")),
        (("turns", 0, "sampling_seconds"), "x"),
        (("turns", 0, "finish_reason"), 5),
        *(((name, "vqa"), "x") for name in ("terms", "metrics", "term_weights")),
        *(((name, "vqa"), HUGE) for name in ("terms", "metrics", "term_weights")),
        *(((name, "vqa"), [1.0]) for name in ("terms", "metrics", "term_weights")),
        *(((name,), value) for name in ("group", "member", "index") for value in (HUGE, 2**63)),
        (("answers",), [5]),
        (("world_version",), "1"),
        (("term_notes",), {"vqa": 5}),
    ],
)
def test_read_episodes_names_a_value_that_is_no_number_or_too_large(
    tmp_path: Path, place: tuple[Any, ...], value: Any
) -> None:
    path = tmp_path / "a.jsonl"
    write_episodes(path, [_shows(PICTURES[0])])
    record = json.loads(path.read_text())
    *parents, last = place
    inside = record
    for key in parents:
        inside = inside[key]
    inside[last] = value
    path.write_text(json.dumps(record) + "\n")
    with pytest.raises(DataError, match=r"a\.jsonl, line 1 holds no episode"):
        list(read_episodes(path))


def test_read_episodes_adds_large_rewards_up_to_a_float(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_episodes(path, [_shows(PICTURES[0])])
    record = json.loads(path.read_text())
    record["turns"] = [record["turns"][0] | {"reward": 10**308}] * 2
    path.write_text(json.dumps(record) + "\n")
    (episode,) = read_episodes(path)
    assert episode.reward == math.inf  # 2 * 10**308 is too large for a float


def test_files_without_the_fields_that_were_added_are_still_read(tmp_path: Path) -> None:
    turn = Turn((), "?", 1.0, (), "stop", sampling_seconds=2.5, env_seconds=0.5, advantage=-0.25)
    episode = Episode(
        *("e-v0", "s", "", 7, 0, 0, (turn,), "terminated"),
        term_weights={"vqa": 2.0},
        world_version=3,
    )
    path = tmp_path / "a.jsonl"
    write_episodes(path, [episode])
    (now,) = read_episodes(path)
    assert (now.term_weights, now.world_version) == ({"vqa": 2.0}, 3)
    facts = ("sampling_seconds", "env_seconds", "advantage")
    assert [getattr(now.turns[0], name) for name in facts] == [2.5, 0.5, -0.25]
    record = json.loads(path.read_text())
    del record["term_weights"], record["world_version"]
    for name in facts:
        del record["turns"][0][name]
    path.write_text(json.dumps(record) + "\n")
    (old,) = read_episodes(path)
    assert (old.term_weights, old.world_version) == ({}, 1)
    assert [getattr(old.turns[0], name) for name in facts] == [None] * 3


def test_times_do_not_count_when_episodes_are_compared() -> None:
    turn = Turn((), "?", 1.0, (), "stop", sampling_seconds=2.5)
    assert turn == replace(turn, sampling_seconds=9.0, env_seconds=1.0)
    assert turn != replace(turn, advantage=1.0)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file of episodes .*typo\.jsonl"):
        list(read_episodes(tmp_path / "typo.jsonl"))


def test_value_that_json_lacks_is_refused_and_the_old_file_stays(tmp_path: Path) -> None:
    path, lines = _lines(tmp_path)
    turn = Turn((), "?", 0.0, (), "stop")
    truth = UnknownRecord("Truth", {"box": np.int64(3)})
    bad = Episode("e-v0", "s", "", 7, 0, 0, (turn,), "terminated", ground_truth=truth)
    with pytest.raises(EpisodeError, match=r"e-v0 s \(seed 7\) cannot be written.*int64"):
        write_episodes(path, [_shows(PICTURES[0]), bad])
    assert path.read_bytes().splitlines(keepends=True) == lines
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.jsonl", "images"]


def test_episodes_read_without_messages_are_those_without_messages(tmp_path: Path) -> None:
    import gymnasium as gym

    from visenv.testing.record import played

    whole = played(gym.make("visenv/ZoomVQA-v0", preset="tiny"), "oracle", 0)
    write_episodes(tmp_path / "episodes.jsonl", [whole])
    (light,) = read_episodes(tmp_path / "episodes.jsonl", messages=False)
    assert light == whole.without_messages()
    assert not light.images
    assert (light.events, light.reward, light.metrics) == (
        whole.events,
        whole.reward,
        whole.metrics,
    )
    for image in (tmp_path / "images").iterdir():
        image.unlink()  # the images of these episodes are never opened
    assert list(read_episodes(tmp_path / "episodes.jsonl", messages=False)) == [light]


# ----------------------------------------------------------------------------------- full disk

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from visenv.episodes import append_episode, read_episodes, write_episodes

folder, how = Path(sys.argv[1]), sys.argv[2]
(small,) = read_episodes(folder / "small.jsonl")
(large,) = read_episodes(folder / sys.argv[3])
# Writing beyond this size fails, as on a full disk.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
path = folder / "out" / "e.jsonl"
try:
    if how == "append":
        append_episode(path, large)
    else:
        write_episodes(path, [small, large])
except OSError as error:
    print(type(error).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
append_episode(path, small)
"""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["text", "image"])
@pytest.mark.parametrize("how", ["append", "write"])
def test_full_disk_leaves_the_file_as_it_was(how: str, what: str, tmp_path: Path) -> None:
    """Check that a text or image that is too large for the disk leaves the file unchanged."""
    small = _shows(PICTURES[0])
    noise = np.random.default_rng(0).integers(0, 256, (300, 300, 3), np.uint8)
    large = {
        "text": replace(small, question="x" * 300_000),
        "image": _shows(Image.from_pixels(noise)),
    }[what]
    path = tmp_path / "out" / "e.jsonl"
    write_episodes(path, [small])
    write_episodes(tmp_path / "small.jsonl", [small])
    write_episodes(tmp_path / "large.jsonl", [large])
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path), how, "large.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "DiskError\n", "")
    assert list(read_episodes(path)) == [small, small]  # after the error, another episode fits
    assert [each.name for each in path.parent.iterdir() if each.is_file()] == ["e.jsonl"]
    names = [each.name for each in (path.parent / "images").iterdir()]
    assert names == [f"{PICTURES[0].sha256}.png"]
