"""Provides a callback for a recipe."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from visenv.algos.trainer import Callback, TrainerState


class Recorder(Callback):
    """Records which phases begin."""

    calls: ClassVar[list[str]] = []

    @override
    def on_train_begin(self, state: TrainerState) -> None:
        self.calls.append(f"begin {state.folder.name}")
