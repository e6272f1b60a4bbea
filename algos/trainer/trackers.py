"""Logs to TensorBoard, Weights & Biases, Trackio and MLflow by the trackers of accelerate.

A tracker that fails during a run is reported once and receives no more values. It does not end the
run, because ``metrics.jsonl`` contains all metrics.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from accelerate import PartialState
from accelerate.tracking import (
    GeneralTracker,
    MLflowTracker,
    TensorBoardTracker,
    TrackioTracker,
    WandBTracker,
)

from visenv.decoding.files import read_text
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.files import check_no_links_in, write_text
from visenv.private_names import check_private_names
from visenv.types import Episode, Pixels, all_images

from .metrics import METRICS
from .private_names import TRACKER_NAMES

PROJECT = "visenv"
"""The name of the project (MLflow: experiment) of all runs."""

_IMAGE_HEIGHT = 192
"""Height of the images of example episodes, in pixels."""

_MOST_ID_BYTES = 1000

_ID = re.compile(r"[\w-]+")
"""The form of the id of a run."""

_TENSORBOARD_THREAD = "tensorboard.summary.writer.event_file_writer"
"""The module of the thread that writes TensorBoard's file."""

_EVENTS = re.compile(r"events\.out\.tfevents\.(\d+)\.")
"""The beginning of the name of a file of TensorBoard, with the time in seconds."""


def _tensorboard(folder: Path, step: int) -> GeneralTracker:
    check_no_links_in(folder / "tensorboard")
    _wait_for_a_later_name(folder / "tensorboard")
    return TensorBoardTracker("tensorboard", logging_dir=folder, purge_step=step + 1)


def _wait_for_a_later_name(folder: Path) -> None:
    """Wait, for at most a second, until the name of a new file sorts after those in the folder.

    TensorBoard reads its files in the order of their names, which contain the time in whole
    seconds. A run that continues within a second could otherwise write a file that is read before
    the values that it replaces.
    """
    seconds = [int(name[1]) for path in folder.glob("*") if (name := _EVENTS.match(path.name))]
    earliest = max(seconds, default=-1) + 1
    while 0 < (left := earliest - time.time()) <= 1:
        time.sleep(left)


def _wandb(folder: Path, step: int) -> GeneralTracker:
    name, identity = _run_name(folder), _run_id(folder)
    return WandBTracker(PROJECT, name=name, id=identity, dir=str(folder), resume="allow")


def _trackio(folder: Path, step: int) -> GeneralTracker:
    name = f"{_run_name(folder)}-{_run_id(folder)[:8]}"  # Trackio identifies a run by its name
    return TrackioTracker(PROJECT, name=name, resume="allow")


def _mlflow(folder: Path, step: int) -> GeneralTracker:
    if known := _saved_id(folder / "mlflow_run_id"):
        return MLflowTracker(PROJECT, run_id=known)
    return MLflowTracker(PROJECT, run_name=_run_name(folder))


TRACKERS: dict[str, Callable[[Path, int], GeneralTracker]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "trackio": _trackio,
    "mlflow": _mlflow,
}
"""Functions by name that create a tracker from the folder of a run and the number of its steps."""


def check_trackers(names: Sequence[str]) -> None:
    """Check that each tracker is known and that its package is installed.

    Raises:
        UnknownNameError: If there is no such tracker. The message suggests a name.
        ConfigurationError: If the package of a tracker is not installed.
    """
    check_private_names(TRACKER_NAMES)
    for name in names:
        if name not in TRACKERS:
            raise UnknownNameError("tracker", name, TRACKERS)
        if find_spec(name) is None:
            raise ConfigurationError(f"The tracker {name!r} needs a package: pip install {name}.")


class Trackers:
    """Sends metrics and example episodes to trackers.

    Accounts, servers and modes are set by the environment variables of the trackers, for example
    ``WANDB_MODE=offline`` or ``MLFLOW_TRACKING_URI``.

    Args:
        names: Keys of `TRACKERS`.
        folder: The folder of the run; TensorBoard writes to its folder ``tensorboard/``.
        step: The number of steps that were taken; TensorBoard drops values of later steps.
        say: A function that prints a sentence about a tracker that failed.
    """

    def __init__(
        self, names: Sequence[str], folder: Path, step: int, say: Callable[[str], None] = print
    ) -> None:
        PartialState()  # accelerate's trackers ask it whether they are in the main process
        self._say = say
        self._trackers: dict[str, GeneralTracker] = {}
        self._hook = threading.excepthook
        threading.excepthook = self._thread_failed
        try:
            for name in names:
                self._start(name, folder, step)
        except BaseException:
            threading.excepthook = self._hook
            raise

    def _start(self, name: str, folder: Path, step: int) -> None:
        tracker = TRACKERS[name](folder, step)
        try:
            tracker.start()
        except OSError as error:
            if name != "tensorboard":  # the others fail because of their account or server
                raise
            self._failed(name, error)
            return
        self._trackers[name] = tracker
        if isinstance(tracker, MLflowTracker):
            write_text(folder / "mlflow_run_id", tracker.tracker.info.run_id)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Send the metrics of a step, counted from 1."""
        self._each(lambda tracker: tracker.log(dict(metrics), step=step))

    def log_example(self, step: int, name: str, episode: Episode) -> None:
        """Send one episode: its transcript and its images.

        Args:
            step: The step, counted from 1.
            name: The name of the example, such as ``"examples/train"``.
            episode: An episode with its messages.
        """
        text, picture = transcript(episode), image_strip(episode)
        self._each(lambda tracker: _log_example(tracker, step, name, text, picture))

    def close(self) -> None:
        """Close all trackers."""
        try:
            self._each(lambda tracker: tracker.finish())
        finally:
            threading.excepthook = self._hook

    def _each(self, send: Callable[[GeneralTracker], object]) -> None:
        """Call a function for each tracker, and leave out those that fail."""
        for name, tracker in list(self._trackers.items()):
            try:
                send(tracker)
            except Exception as error:  # noqa: BLE001 - packages of others raise any type
                del self._trackers[name]
                self._failed(name, error)

    def _failed(self, name: str, error: Exception) -> None:
        self._say(
            f"Warning: the tracker {name} failed and receives no more values of this run "
            f"({type(error).__name__}: {error}). {METRICS} contains all metrics."
        )

    def _thread_failed(self, failed: threading.ExceptHookArgs) -> None:
        """Hide the traceback of TensorBoard's thread, whose error the next call raises."""
        if type(failed.thread).__module__ != _TENSORBOARD_THREAD:
            self._hook(failed)


def _log_example(
    tracker: GeneralTracker, step: int, name: str, text: str, picture: Pixels | None
) -> None:
    if isinstance(tracker, MLflowTracker):  # its `log` takes numbers only
        from mlflow import MlflowClient

        client, run = MlflowClient(), tracker.tracker.info.run_id
        client.log_text(run, text, f"{name}/step_{step:06d}.md")
        if picture is not None:
            client.log_image(run, picture, f"{name}/step_{step:06d}.png")
        return
    tracker.log({name: text}, step=step)
    if picture is None or isinstance(tracker, TrackioTracker):
        return  # accelerate sends no images to Trackio
    options = {"dataformats": "NHWC"} if isinstance(tracker, TensorBoardTracker) else {}
    images: Any = tracker
    images.log_images({f"{name}_images": picture[None]}, step=step, **options)


def _run_name(folder: Path) -> str:
    """Return the names of the run's folder and of the three folders above it."""
    return "-".join(folder.resolve().parts[1:][-4:])


def _run_id(folder: Path) -> str:
    """Return the id of the run, which is drawn once and saved in its folder."""
    path = folder / "tracker_id"
    if not _saved_id(path):
        write_text(path, uuid4().hex)
    return _saved_id(path)


def _saved_id(path: Path) -> str:
    """Return the id in a file; ``""`` if there is no file, or it is empty or damaged."""
    if not path.exists():
        return ""
    try:
        found = read_text(path, _MOST_ID_BYTES).strip()
    except UnicodeDecodeError:
        return ""
    return found if _ID.fullmatch(found) else ""


# ---------------------------------------------------------------------- example episodes


def transcript(episode: Episode) -> str:
    """Return an episode as Markdown: messages, turns, and the reward with its terms."""
    parts = [f"**{episode.env_id}** `{episode.sample_id}`"]
    for turn in episode.turns:
        parts += [f"**{each.role}:**\n\n{_verbatim(each.plain())}" for each in turn.messages]
        parts.append(f"**policy:**\n\n{_verbatim(turn.text)}")
    terms = [f"{name} {value:.3g}" for name, value in episode.terms.items() if value is not None]
    parts.append(f"**reward {episode.reward:.3f}** {', '.join(terms)}")
    return "\n\n".join(parts)


def image_strip(episode: Episode) -> Pixels | None:
    """Return the images of an episode side by side, uint8 ``[192, width, 3]``, or None."""
    from visenv.opencv import cv2

    shown = all_images(message for turn in episode.turns for message in turn.messages)
    images = [image.pixels for image in shown]
    if not images:
        return None
    resized = [
        cv2.resize(each, (max(1, each.shape[1] * _IMAGE_HEIGHT // each.shape[0]), _IMAGE_HEIGHT))
        for each in images
    ]
    return np.concatenate(resized, axis=1).astype(np.uint8)


def _verbatim(text: str) -> str:
    """Return text as a code block of Markdown."""
    return "\n".join(f"    {line}" for line in text.splitlines())
