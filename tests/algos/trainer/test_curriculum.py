"""Curricula: each stage has its own settings and reference, and a kill anywhere changes nothing."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import visenv  # noqa: F401 - registers the environments
from tests.algos import toy
from tests.algos.runs import timeless
from tests.programs import run_python
from visenv.algos.policy_gradient import GRPO
from visenv.algos.trainer import Optimisation, Rollouts, Saving, Trainer, TrainerConfig
from visenv.algos.trainer.curriculum import Curriculum, Stage
from visenv.errors import ConfigurationError, RunError
from visenv.registration import load

pytestmark = pytest.mark.component("torch", "tensorboard")

MAGS_RL = {
    # Appendix, "Training Implementation Details": steps, learning rate, temperature, weight of KL.
    "stage1": (300, 2e-6, 0.09, 0.04),
    "stage2": (225, 5e-7, 1.0, 0.03),
}
"""Mags-RL's two stages; both with 64 episodes in a step, in groups of 16."""


def _mags_rl(make_env: Callable[[], Any]) -> list[Stage]:
    return [
        Stage(
            name,
            make_env,
            GRPO(kl_weight=kl_weight),
            TrainerConfig(
                steps,
                rollouts=Rollouts(groups=4, group_size=16, temperature=temperature, max_tokens=3),
                optimisation=Optimisation(learning_rate=learning_rate),
            ),
        )
        for name, (steps, learning_rate, temperature, kl_weight) in MAGS_RL.items()
    ]


def _shortened(stage: Stage, steps: int, learning_rate: float) -> Stage:
    """The stage in few steps that change something; all else stays as it was."""
    optimisation = replace(stage.config.optimisation, learning_rate=learning_rate)
    return replace(stage, config=replace(stage.config, steps=steps, optimisation=optimisation))


class _Recording:
    """A collector's sampling settings, as the policy is asked with them."""

    def __init__(self) -> None:
        self.temperatures: list[float] = []
        temperatures = self.temperatures

        class Policy(toy.ToyPolicy):
            async def respond(self, session: Any, request: Any, sampling: Any) -> Any:
                temperatures.append(sampling.temperature)
                return await super().respond(session, request, sampling)

        self.policy = Policy()


def test_mags_rl_s_stages_run_with_their_own_numbers(tmp_path: Path) -> None:
    recording = _Recording()
    published = _mags_rl(toy.Echo)
    stages = [replace(each, config=replace(each.config, steps=2)) for each in published]
    curriculum = Curriculum(recording.policy, stages, folder=tmp_path / "run")
    curriculum.train()
    written = (tmp_path / "run" / "stage2" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["stage"] for line in written] == ["stage2", "stage2"]
    rows = curriculum.metrics()
    assert [(row["stage"], row["step"]) for row in rows] == [
        ("stage1", 1),
        ("stage1", 2),
        ("stage2", 3),
        ("stage2", 4),
    ]
    assert [row["learning_rate"] for row in rows] == [2e-6, 2e-6, 5e-7, 5e-7]
    played = 2 * 64 * 2  # steps, episodes, turns
    assert recording.temperatures == [0.09] * played + [1.0] * played
    assert [stage.algorithm.kl_weight for stage in curriculum.stages] == [0.04, 0.03]  # type: ignore[attr-defined]
    assert [stage.config.steps for stage in published] == [300, 225]


def test_a_stage_s_reference_is_the_policy_as_it_began(tmp_path: Path) -> None:
    stages = [_shortened(stage, 6, learning_rate=0.1) for stage in _mags_rl(toy.Echo)]
    curriculum = Curriculum(toy.ToyPolicy(), stages, folder=tmp_path / "run")
    curriculum.train()
    divergence = [row["kl"] for row in curriculum.metrics()]
    # Measured before each step's update: 0 where a stage begins, as policy and reference are one.
    # At the end of the first the policy was far from the one it began with.
    assert divergence[0] == divergence[6] == 0
    assert min(divergence[5], divergence[11]) > 1e-3


def test_stages_play_different_scenes_and_the_first_those_of_a_plain_run(tmp_path: Path) -> None:
    seen: dict[str, set[int]] = {"first": set(), "second": set(), "plain": set()}

    def make_env(name: str) -> Callable[[], Any]:
        return lambda: toy.Echo(on_reset=seen[name].add)

    stages = [
        replace(_shortened(_mags_rl(make_env(name))[0], 2, 0.0), name=name)
        for name in ("first", "second")
    ]
    Curriculum(toy.ToyPolicy(), stages, folder=tmp_path / "run").train()
    config = stages[0].config
    trainer = Trainer(toy.ToyPolicy(), stages[0].algorithm, config, folder=tmp_path / "plain")
    trainer.train(make_env("plain"))
    assert len(seen["first"]) == len(seen["second"]) == 8  # 2 steps of 4 groups
    assert not seen["first"] & seen["second"]
    assert seen["plain"] == seen["first"]


# ------------------------------------------------------------------------- a kill anywhere

THREE = TrainerConfig(
    steps=3,
    rollouts=Rollouts(groups=3, group_size=4, max_tokens=3),
    optimisation=Optimisation(learning_rate=0.02, schedule="cosine", warmup_steps=1),
    saving=Saving(checkpoint_every=2, episodes_every=1),
)


def _stages(make_env: Callable[[], Any]) -> list[Stage]:
    return [
        Stage("one", make_env, GRPO(kl_weight=0.1), THREE),
        Stage("two", make_env, GRPO(kl_weight=0.2, clip_high=0.3), replace(THREE, steps=4)),
    ]


_KILLED = """
import os, signal, sys
from tests.algos import toy
from visenv.algos.policy_gradient import GRPO
from visenv.algos.trainer import Optimisation, Rollouts, Saving, Selection, TrainerConfig
from visenv.algos.trainer.curriculum import Curriculum, Stage

resets, last = [], int(sys.argv[2])
def on_reset(seed):
    resets.append(seed)
    if len(resets) == last:
        os.kill(os.getpid(), signal.SIGKILL)

one, two = (eval(word) for word in sys.argv[3:5])
make_env = lambda: toy.Echo(on_reset=on_reset)
stages = [
    Stage("one", make_env, GRPO(kl_weight=0.1), one),
    Stage("two", make_env, GRPO(kl_weight=0.2, clip_high=0.3), two),
]
Curriculum(toy.ToyPolicy(dropout=0.3), stages, folder=sys.argv[1]).train()
"""


def _kill_after(folder: Path, resets: int) -> None:
    """Run until that many episodes have begun; a step has 12."""
    configs = [repr(stage.config) for stage in _stages(toy.Echo)]
    arguments = [str(folder), str(resets), *configs]
    done = run_python("-c", _KILLED, *arguments)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.fixture
def straight(tmp_path: Path) -> Any:
    """The two stages without a break: the policy and the curriculum."""
    policy = toy.ToyPolicy(dropout=0.3)
    curriculum = Curriculum(policy, _stages(toy.Echo), folder=tmp_path / "straight")
    curriculum.train()
    return policy, curriculum


@pytest.mark.parametrize(
    ("resets", "held"),
    [
        pytest.param(2 * 12 + 5, ["one"], id="inside the first stage"),
        pytest.param(3 * 12 + 1, ["one", "two"], id="in the first moment of the second"),
        pytest.param(6 * 12 + 5, ["one", "two"], id="inside the second"),
    ],
)
def test_a_killed_curriculum_goes_on_to_the_bit(
    tmp_path: Path, straight: Any, resets: int, held: list[str]
) -> None:
    policy, whole = straight
    folder = tmp_path / "killed"
    _kill_after(folder, resets)
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == held
    resumed = toy.ToyPolicy(dropout=0.3)
    curriculum = Curriculum(resumed, _stages(toy.Echo), folder=folder, resume=True)
    curriculum.train()
    assert resumed.weights() == policy.weights()
    assert resumed.version == policy.version
    assert timeless(curriculum.metrics()) == timeless(whole.metrics())


def test_a_kill_between_two_stages(tmp_path: Path, straight: Any) -> None:
    class Killed(Exception):  # noqa: N818 - what ends a process is no error
        pass

    def die(stage: Stage) -> None:
        raise Killed(stage.name)

    first = Curriculum(toy.ToyPolicy(dropout=0.3), _stages(toy.Echo), folder=tmp_path / "run")
    with pytest.raises(Killed, match="one"):
        first.train(die)
    policy, whole = straight
    resumed, ended = toy.ToyPolicy(dropout=0.3), list[str]()
    curriculum = Curriculum(resumed, _stages(toy.Echo), folder=tmp_path / "run", resume=True)
    curriculum.train(lambda stage: ended.append(stage.name))
    assert ended == ["one", "two"]
    assert resumed.weights() == policy.weights()
    assert timeless(curriculum.metrics()) == timeless(whole.metrics())


def test_a_stage_may_be_added_to_one_that_has_ended(tmp_path: Path) -> None:
    one, two = _stages(toy.Echo)
    both, later = toy.ToyPolicy(), toy.ToyPolicy()
    Curriculum(both, [one, two], folder=tmp_path / "both").train()
    Curriculum(toy.ToyPolicy(), [one], folder=tmp_path / "later").train()
    Curriculum(later, [one, two], folder=tmp_path / "later", resume=True).train()
    assert later.weights() == both.weights()


# ----------------------------------------------------------------- what does not fit is refused


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "at least one stage"),
        (["one", "one"], "'one' 2 times"),
        (["one", "../two"], "plain folder name, got '../two'"),
        ([""], "plain folder name, got ''"),
    ],
)
def test_stages_have_different_plain_names(tmp_path: Path, names: list[str], said: str) -> None:
    stages = [Stage(name, toy.Echo, GRPO(), THREE) for name in names]
    with pytest.raises(ConfigurationError, match=said):
        Curriculum(toy.ToyPolicy(), stages, folder=tmp_path)


def test_other_stages_or_settings_are_not_resumed(tmp_path: Path) -> None:
    one, two = _stages(toy.Echo)
    folder = tmp_path / "run"
    with pytest.raises(RunError, match=r"no curriculum .*run to resume"):
        Curriculum(toy.ToyPolicy(), [one], folder=folder, resume=True)
    Curriculum(toy.ToyPolicy(), [one], folder=folder).train()
    with pytest.raises(RunError, match=r"holds a curriculum already.*--resume"):
        Curriculum(toy.ToyPolicy(), [one], folder=folder)
    for others in ([two, one], [two]):
        with pytest.raises(RunError, match=r"holds the stages \['one'\].* begin these: \['two'"):
            Curriculum(toy.ToyPolicy(), others, folder=folder, resume=True)
    changed = replace(one, algorithm=GRPO(kl_weight=0.7))
    with pytest.raises(RunError, match=r"kl_weight was 0\.1 and is 0\.7"):
        Curriculum(toy.ToyPolicy(), [changed, two], folder=folder, resume=True).train()


# ---------------------------------------------------------------------- ARM-Thinker, for real


@pytest.mark.component("transformers", "reportlab", "pypdfium2")
def test_arm_thinker_s_stages_change_the_reward(tmp_path: Path) -> None:
    model = load("model", "tiny-arm")(tmp_path / "model", seed=0)
    policy = load("policy", "transformers")(model, threads=1)
    config = TrainerConfig(1, rollouts=Rollouts(groups=1, group_size=2, max_tokens=8))
    stages = [
        Stage(
            reward,
            partial(gym.make, "visenv/ArmDoc-v0", preset="tiny", reward=reward),
            GRPO(),
            config,
        )
        for reward in ("stage1", "stage2")
    ]
    curriculum = Curriculum(policy, stages, folder=tmp_path / "run")
    curriculum.train()
    paid = [{name for name in row if name.startswith("terms/")} for row in curriculum.metrics()]
    # Equation 4 pays for form and for trying, equation 5 for being right too, most with a tool.
    assert paid[0] < paid[1]
    assert "terms/format" in paid[0]
    assert (tmp_path / "run" / "stage2" / "checkpoints" / "step_000001" / "policy").is_dir()
