"""Defines the options of ``simulator="habitat"``, and creates its worlds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from visenv.errors import ConfigurationError, DataError
from visenv.simulators.settings import HostLimits, SimulatorSpec

from ...presets import EmbodiedOptions, EmbodiedPreset
from ...world.render.renderer import ANTIALIASING
from .player import TARGET, HabitatRunner
from .published import REPLICA_TARGET, ReplicaRunner

_DATASET_FILES = ("../dataset/configs/dataset.yaml", "dataset/configs/dataset.yaml", "dataset.yaml")


class HabitatOptions(NamedTuple):
    """Holds the options of habitat-lab.

    Attributes:
        assets: The folder ``data`` of habitat-sim.
        interpreter: The Python with habitat-lab, ``""`` for the default interpreter of the
        simulators.
        host_limits: Fields of `HostLimits` to change.
    """

    assets: str
    interpreter: str
    host_limits: dict[str, Any]

    def house(self, preset: EmbodiedPreset, options: EmbodiedOptions) -> HabitatRunner:
        """Return habitat-lab over House. It is started by the first reset.

        Raises:
            ConfigurationError: If an option cannot be used.
        """
        if self.assets:
            raise ConfigurationError(
                f"assets is an option of published tasks, got {self.assets!r:.80} for House: omit "
                "it."
            )
        side = _side(preset, options)
        samples = ANTIALIASING if preset.smoothing == "msaa" else 0
        return HabitatRunner(self._spec(TARGET, {"side": side, "samples": samples}), side)

    def replica_cad(
        self, folder: Path, preset: EmbodiedPreset, options: EmbodiedOptions
    ) -> ReplicaRunner:
        """Return habitat-lab over habitat-sim with ReplicaCAD.

        Args:
            folder: The folder of the published tasks.
            preset: The settings of the frames.
            options: The options, which determine whether frames are shown.

        Raises:
            ConfigurationError: If an option cannot be used.
            DataError: If EmbodiedBench's list of categories and receptacles is missing.
        """
        if options.boxes:
            raise ConfigurationError(
                "boxes=True is possible for tasks of House only, because the ids of habitat-sim "
                "are not read: set boxes=False."
            )
        if options.n_shots and options.examples is None:
            raise ConfigurationError(
                "The planner cannot write examples for published tasks; name a file by examples=…"
            )
        files = [folder / each for each in _DATASET_FILES]
        file = next((each.resolve() for each in files if each.is_file()), None)
        if file is None:
            raise DataError(
                f"{folder}: EmbodiedBench's dataset.yaml (eb_habitat/dataset/configs), which names "
                "categories and receptacles, must be in the folder or in its original place."
            )
        side = _side(preset, options)
        given = {"side": side, "assets": self.assets, "dataset": str(file)}
        return ReplicaRunner(self._spec(REPLICA_TARGET, given), side)

    def _spec(self, target: str, options: dict[str, Any]) -> SimulatorSpec:
        limits = HostLimits.with_changes(self.host_limits)
        return SimulatorSpec.of(target, options, interpreter=self.interpreter, limits=limits)


def _side(preset: EmbodiedPreset, options: EmbodiedOptions) -> int:
    """Return the side of a frame in pixels, 0 if no frame is drawn."""
    return 0 if options.blind or options.language_only else preset.side
