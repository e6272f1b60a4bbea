"""Tests trackers: the metrics of the file, and example episodes with their images."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.algos import toy
from visenv.algos.policy_gradient import GRPO
from visenv.algos.trainer import HeldOut, RolloutConfig, SavingConfig, Trainer, TrainerConfig
from visenv.algos.trainer.trackers import check_trackers, image_strip, transcript
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.types import Episode, Image, Message, Turn

CONFIG = TrainerConfig(
    steps=3,
    rollouts=RolloutConfig(prompts_per_step=2, num_generations=2, max_tokens=3),
    saving=SavingConfig(episodes_every=2),
)
HELD_OUT = HeldOut({"echo": toy.Echo}, {"echo": "reward"}, episodes=2, max_tokens=3, every=2)


@pytest.mark.component("torch", "tensorboard")
def test_tensorboard_has_the_numbers_of_the_file_and_example_episodes(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    trainer = Trainer(toy.ToyPolicy(), GRPO(), CONFIG, folder=tmp_path, held_out=HELD_OUT)
    trainer.train(toy.Echo)
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    written = [(event.step, event.value) for event in board.Scalars("reward")]
    assert written == [(row["step"], pytest.approx(row["reward"])) for row in rows]
    assert [event.step for event in board.Scalars("eval/echo/greedy/reward")] == [2, 3]
    assert {*board.Tags()["images"]} == {"examples/train_images", "examples/eval/echo_images"}
    assert [event.step for event in board.Images("examples/train_images")] == [2, 3]
    assert "examples/train/text_summary" in board.Tags()["tensors"]


@pytest.mark.component("torch", "tensorboard")
def test_tensorboard_forgets_the_steps_after_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.summary.writer import event_file_writer

    from visenv.algos.trainer.trackers import Trackers

    # TensorBoard reads its files in the order of their names. The names end with these numbers, so
    # that the second file would be read first if both had the same second.
    monkeypatch.setattr(event_file_writer, "_global_uid", event_file_writer.AtomicCounter(9))
    for first, values in ((0, [0.1, 0.2, 0.3]), (1, [0.7])):
        trackers = Trackers(["tensorboard"], tmp_path, first)
        for step, value in enumerate(values, first + 1):
            trackers.log(step, {"reward": value})
        trackers.close()
    names = [path.name for path in (tmp_path / "tensorboard").iterdir()]
    assert sorted(names, key=lambda name: int(name.rpartition(".")[2])) == sorted(names), names
    board = EventAccumulator(str(tmp_path / "tensorboard"), purge_orphaned_data=True)
    board.Reload()
    assert [(event.step, round(event.value, 6)) for event in board.Scalars("reward")] == [
        (1, 0.1),
        (2, 0.7),
    ]


def an_episode() -> Episode:
    wide = Image.from_pixels(np.full((10, 40, 3), 200, np.uint8))
    tall = Image.from_pixels(np.full((100, 25, 3), 10, np.uint8))
    turns = (
        Turn((Message("user", ("<b>look</b>\nhere", wide)),), "a **turn**", 0.0, (), "stop"),
        Turn((Message("user", (tall,)),), "done", 1.5, (), "stop"),
    )
    told = ("e-v0", "sample-7", "kind", 0, 0, 0, turns, "terminated")
    return Episode(*told, terms={"right": 1.5, "left_out": None})  # type: ignore[arg-type]


def test_transcript_shows_every_text_as_it_is() -> None:
    text = transcript(an_episode())
    assert text.startswith("**e-v0** `sample-7`")
    assert "    <b>look</b>\n    here<image>" in text
    assert "    a **turn**" in text
    assert text.endswith("**reward 1.500** right 1.5")


@pytest.mark.component("opencv")
def test_images_stand_side_by_side_at_one_height() -> None:
    strip = image_strip(an_episode())
    assert strip is not None
    assert strip.shape == (192, 40 * 192 // 10 + 25 * 192 // 100, 3)
    assert (strip[:, : 40 * 19] == 200).all()
    assert (strip[:, -40:] == 10).all()


def test_misspelled_tracker_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="tensorboard"):
        check_trackers(["tensorbord"])


def test_tracker_without_its_package_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("visenv.algos.trainer.trackers.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match="pip install wandb"):
        check_trackers(["wandb"])
