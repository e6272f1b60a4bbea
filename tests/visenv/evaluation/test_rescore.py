"""Tests rescoring of saved episodes: the same reward, new rewards, and samples that do not fit."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import PIL.Image
import pytest
from typing_extensions import override

import visenv  # noqa: F401 - registers the ids
from tests.checksums import without_checksums
from tests.environments import IDS
from visenv.episodes import read_episodes, write_episodes
from visenv.errors import ConfigurationError, DataError, ServiceError, UntrustedNameError
from visenv.evaluation.rescore import Rescorer
from visenv.policies.oracle import OraclePolicy
from visenv.policies.random import RandomPolicy
from visenv.rewards import RewardContext, RewardTerm, RewardWrapper, of_log
from visenv.rollout import Env, EpisodeSpec, play
from visenv.scorers import Generate, JsonScore, Judge, Scorer
from visenv.testing import toy
from visenv.types import Episode, EventLog, Scored

CHILD = """
import sys
from visenv.episodes import read_episodes
from visenv.evaluation.rescore import Rescorer
rescorer = Rescorer()
for episode in read_episodes(sys.argv[1]):
    again = rescorer.rescore(episode)
    print(*(turn.reward.hex() for turn in again.turns))
"""


def played(env: Env, seed: int = 0, policy: Any = None) -> Episode:
    return asyncio.run(play(env, policy or OraclePolicy(), EpisodeSpec(seed)))


def paid(episode: Episode) -> list[str]:
    return [turn.reward.hex() for turn in episode.turns]


def saved(tmp_path: Path, *episodes: Episode) -> list[Episode]:
    write_episodes(tmp_path / "episodes.jsonl", episodes)
    return list(read_episodes(tmp_path / "episodes.jsonl"))


@pytest.fixture(scope="module")
def rescored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[Episode], str]]:
    """Return episodes of every id, and what one new process prints about those of each id."""
    folder = tmp_path_factory.mktemp("rescored")
    episodes: dict[str, list[Episode]] = {}
    for env_id in IDS:
        env = gym.make(env_id, preset="tiny")
        players = (OraclePolicy(), RandomPolicy())
        episodes[env_id] = [played(env, seed, policy) for policy in players for seed in (1, 2)]
        env.close()
    write_episodes(folder / "episodes.jsonl", [each for env_id in IDS for each in episodes[env_id]])
    command = [sys.executable, "-c", CHILD, str(folder / "episodes.jsonl")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = iter(printed.splitlines())
    told = {env_id: [next(lines) for _ in episodes[env_id]] for env_id in IDS}
    return {env_id: (episodes[env_id], "\n".join(told[env_id])) for env_id in IDS}


@pytest.mark.slow
@pytest.mark.parametrize("env_id", IDS)
def test_rescore_reproduces_the_reward_in_a_new_process(
    env_id: str, rescored: dict[str, tuple[list[Episode], str]]
) -> None:
    episodes, printed = rescored[env_id]
    assert [line.split() for line in printed.splitlines()] == [paid(each) for each in episodes]


def judge_reply(request: Generate) -> dict[str, str]:
    """Score the answers of one digit 0.25 and others 0.75."""
    answer = request.messages[-1].plain().rpartition("Answer: ")[2]
    return {"text": f'{{"score": {0.25 if len(answer) == 1 else 0.75}}}'}


JUDGE = Judge(
    Scorer("rules", function=f"{__name__}:judge_reply"), "Answer: {answer}", JsonScore("score")
)


async def judged(context: RewardContext) -> float | None:
    answer = context.log.answer
    return context.skip("no answer") if answer is None else await JUDGE.ask(answer=answer)


class Judged(RewardWrapper):
    """Pays the score of the judge; `factor` makes specs differ."""

    def __init__(self, env: Env, factor: float = 1.0) -> None:
        super().__init__(env, [RewardTerm("judged", factor, judged)])


@pytest.fixture(autouse=True)
def judge_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])


def paid_by(log: EventLog, sample: Any, factor: float = 1.0) -> float:
    return factor * float(log.answer in sample.answers)


def lowest(terms: Mapping[str, float | None]) -> float:
    return min(value for value in terms.values() if value is not None)


def test_functions_of_reward_terms_are_saved_as_names(tmp_path: Path) -> None:
    terms = [
        RewardTerm("judged", 2.0, judged, "The judge."),
        RewardTerm("right", 1.0, of_log(partial(paid_by, factor=0.5))),
    ]
    env = RewardWrapper(gym.make(toy.register()), terms, combine=lowest)
    (episode,) = saved(tmp_path, played(env))
    assert f"{__name__}:judged" in episode.env_spec
    trusted = [judged, paid_by, lowest]
    again = Rescorer(trust=trusted).rescore(episode)
    assert (again.reward, again.terms) == (episode.reward, episode.terms)
    for left_out in trusted:
        some = [each for each in trusted if each is not left_out]
        with pytest.raises(UntrustedNameError, match="names the function of a reward term"):
            Rescorer(trust=some).rescore(episode)


def test_sample_with_another_question_is_refused(tmp_path: Path) -> None:
    (episode,) = saved(tmp_path, played(gym.make(toy.register())))
    told = (
        r"the world has changed since the episode was played, or another version of a package "
        r"draws it \(its question is now 'Add .*', and was 'Subtract them.'\), so .* can still be "
        "read and viewed"
    )
    with pytest.raises(DataError, match=told):
        Rescorer().rescore(replace(episode, question="Subtract them."))


def test_function_without_a_name_is_explained(tmp_path: Path) -> None:
    env = RewardWrapper(gym.make(toy.register()), [RewardTerm("one", 1.0, lambda _: 1.0)])
    (episode,) = saved(tmp_path, played(env))
    assert episode.env_spec == ""
    with pytest.raises(ConfigurationError, match="a function that is not at the top of a module"):
        Rescorer(trust=True).rescore(episode)


def test_rescore_takes_verdicts_from_the_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = Judged(gym.make(toy.register()), factor=2.0)
    (episode,) = saved(tmp_path, played(env))
    verdicts = [event for event in episode.events if isinstance(event, Scored)]
    assert [each.term for each in verdicts] == ["judged"]

    def unreachable(_: object) -> str:
        raise AssertionError("the judge was asked")

    monkeypatch.setattr(sys.modules[__name__], "judge_reply", unreachable)
    JUDGE.scorer.close()
    again = Rescorer(trust=[Judged]).rescore(episode)
    assert paid(again) == paid(episode)
    assert again.events == episode.events


def test_rescore_refuses_a_missing_verdict_unless_it_may_ask(tmp_path: Path) -> None:
    env = Judged(gym.make(toy.register()))
    (episode,) = saved(tmp_path, played(env))
    last = episode.turns[-1]
    events = tuple(each for each in last.events if not isinstance(each, Scored))
    without = replace(episode, turns=(*episode.turns[:-1], replace(last, events=events)))
    with pytest.raises(ServiceError, match="has no verdict"):
        Rescorer(trust=[Judged]).rescore(without)
    asking = Rescorer(ask_missing=True, trust=[Judged])
    assert paid(asking.rescore(without)) == paid(episode)


def test_rescore_notes_why_a_term_does_not_apply(tmp_path: Path) -> None:
    env = Judged(gym.make(toy.register(), turns=1))
    (episode,) = saved(tmp_path, played(env))
    assert (episode.terms, episode.term_notes) == ({"judged": None}, {"judged": "no answer"})
    again = Rescorer(trust=[Judged]).rescore(episode)
    assert (again.terms, again.term_notes) == (episode.terms, episode.term_notes)


def test_rescore_computes_another_reward(tmp_path: Path) -> None:
    env = gym.make("visenv/ZoomVQA-v0", preset="tiny")
    (episode,) = saved(tmp_path, played(env))
    assert episode.reward == pytest.approx(2.1)
    outcome = Rescorer({"reward": "outcome"}).rescore(episode)
    assert (outcome.reward, outcome.terms) == (1.0, {})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"media": {"image_0": "0" * 64}}, "image_0 differs"),
        ({"answers": ("forty",)}, "ground truth differ"),
        ({"sample_id": "scene-0"}, "not in this data source"),
    ],
)
def test_rescore_refuses_another_sample(
    change: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    env = gym.make("visenv/ZoomVQA-v0", preset="tiny")
    (episode,) = saved(tmp_path, played(env))
    with pytest.raises(DataError, match=problem):
        Rescorer().rescore(replace(episode, **change))


def write_document(folder: Path, text: str) -> None:
    from reportlab.pdfgen.canvas import Canvas

    folder.mkdir(exist_ok=True)
    canvas = Canvas(str(folder / "a.pdf"), pagesize=(200, 300), invariant=True)
    canvas.drawString(20, 20, text)
    canvas.save()


@pytest.mark.component("pypdfium2", "reportlab")
def test_rescore_refuses_a_document_with_other_content(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write_document(folder, "It is red.")
    row = {"id": 1, "document": "a", "question": "What is it?", "evidence_pages": [1]}
    answers = {"answer": "red", "wrong_answers": ["blue"]}
    (folder / "questions.jsonl").write_text(json.dumps(row | answers))
    env = gym.make("visenv/ArmDoc-v0", data=f"pdf:{folder}")
    (episode,) = saved(tmp_path, played(env))
    assert set(episode.media) == {"document"}
    assert paid(Rescorer().rescore(episode)) == paid(episode)
    write_document(folder, "It is blue.")
    with pytest.raises(DataError, match="document differs from that"):
        Rescorer().rescore(episode)


def test_rescore_refuses_an_episode_without_spec(tmp_path: Path) -> None:
    (episode,) = saved(tmp_path, played(gym.make(toy.register())))
    with pytest.raises(ConfigurationError, match="does not hold the spec"):
        Rescorer().rescore(replace(episode, env_spec=""))


def test_rescore_refuses_a_file_of_another_version(tmp_path: Path) -> None:
    write_episodes(tmp_path / "episodes.jsonl", [played(gym.make(toy.register()))])
    text = (tmp_path / "episodes.jsonl").read_text(encoding="utf-8")
    text = without_checksums(text)
    assert '"format":4' in text
    (tmp_path / "old.jsonl").write_text(text.replace('"format":4', '"format":1'), encoding="utf-8")
    with pytest.raises(
        DataError, match="format 1, and this version of visenv reads the formats 2, 3, 4"
    ):
        list(read_episodes(tmp_path / "old.jsonl"))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": "visenv/ZoomVQA-v99"}, "is visenv/ZoomVQA-v99, which this version of visenv does"),
        ({"entry_point": "visenv.gone:make"}, "names the environment 'visenv.gone:make'"),
        ({"entry_point": "visenv.envs.zoom_vqa:gone"}, "names the environment.*gone'"),
        ({"kwargs": {"gone": 1}}, "no option of visenv/ZoomVQA-v0 called 'gone'"),
        (
            {"additional_wrappers": [{"name": "W", "entry_point": "gone:W", "kwargs": {}}]},
            "names the wrapper 'gone:W'",
        ),
        ({"additional_wrappers": None}, "another version.*TypeError"),
    ],
    ids=["id", "module", "function", "option", "wrapper", "type"],
)
def test_rescore_refuses_the_spec_of_another_version(change: dict[str, Any], problem: str) -> None:
    episode = played(gym.make("visenv/ZoomVQA-v0", preset="tiny"))
    spec = json.dumps(json.loads(episode.env_spec) | change)
    with pytest.raises(ConfigurationError, match=problem):
        Rescorer().rescore(replace(episode, env_spec=spec))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"id": 4}', "[" * 100_000])
def test_rescore_refuses_a_spec_that_is_none(text: str) -> None:
    episode = played(gym.make(toy.register()))
    with pytest.raises(ConfigurationError, match=r"of the episode|The episode of"):
        Rescorer().rescore(replace(episode, env_spec=text))


@pytest.mark.slow
def test_rescore_refuses_an_image_file_that_was_changed(tmp_path: Path) -> None:
    """Check that changed media are refused, in a new process: this one keeps sources in memory."""
    photo = tmp_path / "data" / "direct_attributes" / "sa_1.png"
    photo.parent.mkdir(parents=True)
    PIL.Image.new("RGB", (100, 80), (9, 9, 9)).save(photo)
    row = {
        "image": "direct_attributes/sa_1.png",
        "text": "What color?\n(A) red\n(B) grey\nAnswer with a letter.",
        "category": "direct_attributes",
        "label": "B",
        "question_id": 0,
    }
    (tmp_path / "data" / "test_questions.jsonl").write_text(json.dumps(row) + "\n")
    env = gym.make("visenv/ZoomVQA-v0", data=f"vstar:{tmp_path / 'data'}")
    (episode,) = saved(tmp_path, played(env, policy=RandomPolicy()))

    def rescored() -> tuple[str, str]:
        command = [sys.executable, "-c", CHILD, str(tmp_path / "episodes.jsonl")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip(), done.stderr

    assert rescored() == (" ".join(paid(episode)), "")
    pixels = PIL.Image.open(photo)
    pixels.putpixel((7, 7), (9, 9, 10))
    pixels.save(photo)
    printed, problem = rescored()
    assert printed == ""
    assert "DataError" in problem
    assert "image_0 differs from that in the episode." in problem
    photo.unlink()
    printed, problem = rescored()
    assert printed == ""
    assert "sa_1.png" in problem.splitlines()[-1]


def test_rescore_refuses_an_episode_of_another_version_of_its_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = gym.make(toy.register())
    (first,) = saved(tmp_path, played(env))
    source = type(env.unwrapped.source)  # type: ignore[attr-defined]
    monkeypatch.setattr(source, "world_version", 2, raising=False)
    (second,) = saved(tmp_path, played(gym.make(toy.register())))
    assert (first.world_version, second.world_version) == (1, 2)
    assert paid(Rescorer().rescore(second)) == paid(second)
    told = (
        r"the world has changed since the episode was played \(it was version 1, and is version 2\)"
    )
    with pytest.raises(DataError, match=told):
        Rescorer().rescore(first)
    monkeypatch.undo()
    assert paid(Rescorer().rescore(first)) == paid(first)


def test_rescore_computes_the_reward_of_an_episode_that_a_wrapper_ended(tmp_path: Path) -> None:
    env = gym.make(toy.register(), max_episode_steps=1)
    (episode,) = saved(tmp_path, played(env))
    assert (episode.status, episode.reason) == ("truncated", "wrapper")
    assert paid(Rescorer().rescore(episode)) == paid(episode) == [(0.2).hex()]


class Halved(gym.RewardWrapper[Any, Any], gym.utils.RecordConstructorArgs):
    """Halves every reward."""

    def __init__(self, env: Env) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)

    @override
    def reward(self, reward: Any) -> float:
        return float(reward) / 2


def test_rescore_repeats_reward_wrappers(tmp_path: Path) -> None:
    (episode,) = saved(tmp_path, played(Halved(gym.make(toy.register()))))
    assert episode.reward == 0.5
    assert paid(Rescorer(trust=[Halved]).rescore(episode)) == paid(episode)


@pytest.mark.parametrize("seed", [-1, -(2**70)])
def test_rescore_refuses_a_negative_seed(seed: int, tmp_path: Path) -> None:
    (episode,) = saved(tmp_path, played(gym.make(toy.register())))
    with pytest.raises(DataError, match="a seed must be at least 0"):
        Rescorer().rescore(replace(episode, seed=seed))
