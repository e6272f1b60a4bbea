"""Tests the package in examples/plugin, installed by pip, with every command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environments import few
from visenv.episodes import read_episodes
from visenv.types import Episode

ROOT = Path(__file__).parents[2]
ENV = "cards/Cards-v0"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of packages in which the plugin is installed, with its entry points."""
    folder = tmp_path_factory.mktemp("site")
    project = folder.with_name("project")
    shutil.copytree(ROOT / "examples/plugin", project)  # nothing is built inside the repository
    words = ["install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [sys.executable, "-m", "pip", *words, "--target", folder, project],
        check=True,
        capture_output=True,
        text=True,
    )
    return folder


class Runner:
    """Runs Python where the plugin is installed."""

    def __init__(self, site: Path, folder: Path) -> None:
        self.folder = folder
        self._env = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "COLUMNS": "200"}

    def python(self, *words: str | Path, said: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env=self._env,
            input=said,
            capture_output=True,
            text=True,
            check=False,
        )

    def visenv(self, *words: str, said: str = "", status: int = 0) -> str:
        program = "import sys; from visenv.cli import main; sys.exit(main())"
        done = self.python("-c", program, *words, said=said)
        assert done.returncode == status, done.stderr
        return done.stderr if status else done.stdout

    def episodes(self, folder: str) -> list[Episode]:
        return list(read_episodes(self.folder / folder / "episodes.jsonl"))


@pytest.fixture
def runner(site: Path, tmp_path: Path) -> Runner:
    return Runner(site, tmp_path)


def test_plugin_is_listed_with_its_package(runner: Runner) -> None:
    lines = runner.visenv("list").splitlines()
    (listed,) = [line for line in lines if ENV in line]
    assert listed.split() == [ENV, "package", "visenv-cards"]
    for name in ("card-counter", "opo", "decks", "cards"):
        assert any(f"{name} (package visenv-cards)" in line for line in lines)


def test_plugin_has_a_card(runner: Runner) -> None:
    card = runner.visenv("card", ENV)
    assert "Turn over one card" in card
    assert " • reward: " in card


@pytest.mark.parametrize("name", few([ENV, f"visenv_cards:{ENV}", "visenv_cards.env:make"], 1))
def test_plugin_is_played_by_a_person(name: str, runner: Runner) -> None:
    turns = " look </think><tool>\nname: turn_over\nnumber: 1\n</tool>\n\n it is </think>"
    turns += "<answer>no color</answer>\n\n"
    said = runner.visenv("play", name, "--no-show", said=turns)
    assert "reward 0.200" in said  # a card was turned over, but the answer is wrong
    assert (runner.folder / "play" / "image_2.png").exists()


def test_plugin_is_validated(runner: Runner) -> None:
    report = json.loads(runner.visenv("validate", ENV, "--hostile", "20", "--json"))
    assert report["environment"] == ENV
    assert [check["name"] for check in report["checks"] if not check["passed"]] == []
    assert report["top_reward"] == report["mean_reward"]["oracle"] == 1.0
    assert report["mean_reward"]["empty"] == 0.0
    assert 0.0 < report["mean_reward"]["random"] < 0.5
    assert report["hostile_texts"] > 20
    assert report["steps_per_second"] > 0


def test_plugin_policy_rolls_out_and_the_episodes_are_viewed_and_rescored(runner: Runner) -> None:
    mistakes = ["--policy", "card-counter", "--policy-option", "mistakes=0.9"]
    runner.visenv("rollout", ENV, *mistakes, "--groups", "12", "--out", "played")
    episodes = runner.episodes("played")
    assert {episode.env_id for episode in episodes} == {ENV}
    # 0.2 for turning a card over, and 0.8 for the right color, which a guess finds by chance.
    assert {round(episode.reward, 9) for episode in episodes} == {0.2, 1.0}
    assert "equal: 12" in runner.visenv("rescore", "played/episodes.jsonl")
    runner.visenv("view", "--no-open", "played")
    assert "turn_over" in (runner.folder / "played" / "report.html").read_text()


@pytest.mark.parametrize("data", few(["decks", "visenv_cards.data:Decks"], 1))
def test_plugin_data_set_is_evaluated(data: str, runner: Runner) -> None:
    rows = [{"cards": ["red", "blue", "red", "green"], "asked": asked} for asked in (2, 4, 5)]
    (runner.folder / "deals").mkdir()
    text = "\n".join(map(json.dumps, rows))
    (runner.folder / "deals" / "decks.jsonl").write_text(text)
    options = ["--policy", "card-counter", "--data", f"{data}:deals", "--out", "scores"]
    said = runner.visenv("eval", ENV, *options)
    assert "decks.jsonl:3: asked must be a number from 1 to 4, got 5" in said
    episodes = runner.episodes("scores")
    assert [(each.sample_id, each.answers) for each in episodes] == [
        ("deck-1", ("blue",)),
        ("deck-2", ("green",)),
    ]
    assert [each.reward for each in episodes] == [1.0, 1.0]


def test_plugin_step_selects_deals_for_its_suite(runner: Runner) -> None:
    rows = [
        {"id": "two", "cards": ["red", "blue", "red", "red"], "asked": 2},
        {"id": "one", "cards": ["red", "red", "red", "red"], "asked": 1},
    ]
    (runner.folder / "decks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    said = runner.visenv("data", "colorful", "decks.jsonl", "--out", "kept/decks.jsonl")
    assert "dropped: too few colors" in said
    assert "1 rows in kept/decks.jsonl" in said
    said = runner.visenv("data", "colorful", "--help")
    assert "Minimum number of different colors." in said
    assert "  colorful " in runner.visenv("data", "--help")
    wrong = ["data", "colorful", "decks.jsonl", "--colors", "9", "--out", "o.jsonl"]
    assert runner.visenv(*wrong, status=1) == "visenv: colors must be from 1 to 4, got 9.\n"
    said = runner.visenv("suite", "cards", "--folder", "decks=kept", "--policy", "card-counter")
    assert said.splitlines()[0].endswith("Cards")
    assert [cell.split()[0] for cell in said.splitlines()[4].split("|")[1:5]] == [
        *("card-counter", "100.0", "100.0", "100.0")
    ]


OTHER_NAMES = """
import asyncio
from visenv.makers import make_policy
from visenv.registration import load, path_of
from visenv.scorers import Generate, Scorer
from visenv.types import Message

judge = Scorer.parse("colors")
request = Generate((Message("user", ("The card is Blue .",)),))
print(asyncio.run(judge.score(request)).value["text"])
direct = make_policy("direct", ["policy=card-counter", "prompts=cards"])
print(direct.prompts is load("baseline prompts", "cards"), "color" in direct.prompts.answer)
from visenv.algos.experiment import read_recipe, recipe_path
recipe = read_recipe(recipe_path("cards_tiny"))
print(recipe.name, recipe.environments["cards"].id)
"""


@pytest.mark.component("torch", "transformers")
def test_plugin_adds_a_scorer_texts_of_baselines_and_a_recipe(runner: Runner) -> None:
    done = runner.python("-c", OTHER_NAMES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["blue", "True True", "cards_tiny cards/Cards-v0"]


IN_PROCESSES = f"""
from visenv.makers import env_maker, make_policy
from visenv.rollout import Collector, ProcessExecutor
from visenv.types import Sampling

if __name__ == "__main__":
    for name in ("{ENV}", "visenv_cards.env:make"):
        collector = Collector(
            env_maker(name), make_policy("card-counter"), Sampling(), executor=ProcessExecutor(2)
        )
        print([episode.reward for group in collector.groups([1, 2]) for episode in group])
        collector.close()
"""


def test_plugin_plays_in_other_processes(runner: Runner) -> None:
    (runner.folder / "program.py").write_text(IN_PROCESSES)
    done = runner.python("program.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[1.0, 1.0]\n[1.0, 1.0]\n"


TRAIN = f"""
from pathlib import Path

import gymnasium as gym
import numpy as np
from visenv.algos.trainer import OptimizationConfig, RolloutConfig, Trainer, TrainerConfig
from visenv.makers import env_maker
from visenv.registration import load

make_cards = env_maker("{ENV}")
rng = np.random.default_rng(0)


class Noisy(gym.RewardWrapper):  # a model with random weights earns nothing to learn from
    def reward(self, reward):
        return reward + rng.random()


model = load("model", "tiny")(Path("model"), make_cards, episodes=8)
policy = load("policy", "transformers")(model, threads=1)
before = {{name: weight.clone() for name, weight in policy.network.model.state_dict().items()}}
rollouts = RolloutConfig(prompts_per_step=1, num_generations=2, max_tokens=8)
optimization = OptimizationConfig(learning_rate=1e-3)
config = TrainerConfig(steps=2, rollouts=rollouts, optimization=optimization)
Trainer(policy, load("algorithm", "opo")(), config, folder=Path("run")).train(
    lambda: Noisy(make_cards())
)
after = policy.network.model.state_dict()
print(sum(not np.array_equal(before[name], after[name]) for name in before))
"""


@pytest.mark.component("torch", "transformers", "accelerate")
def test_plugin_trains_with_its_algorithm(runner: Runner) -> None:
    (runner.folder / "program.py").write_text(TRAIN)
    done = runner.python("program.py")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) > 0
    runner.visenv("view", "--no-open", "run")


def test_plugin_that_raises_in_its_constructor_is_named(runner: Runner) -> None:
    options = ["--policy", "card-counter", "--policy-option", "mistakes=5"]
    said = runner.visenv("rollout", ENV, *options, status=1)
    assert said == (
        "visenv: The policy 'card-counter' of the package 'visenv-cards' cannot be made: "
        "ValueError: mistakes must be between 0 and 1, got 5 (policy.py, line 33)\n"
    )


def test_importing_visenv_and_using_its_names_reads_no_entry_points(runner: Runner) -> None:
    program = """
import gymnasium as gym, visenv
from visenv.plugins import installed
from visenv.registration import load
gym.make("visenv/ZoomVQA-v0", preset="tiny").reset(seed=0)
load("policy", "oracle"), load("data set", "vstar"), load("environment", "visenv/ZoomVQA-v0")
assert installed.cache_info().misses == 0
load("policy", "card-counter")
assert installed.cache_info().misses == 1
"""
    done = runner.python("-c", program)
    assert done.returncode == 0, done.stderr
