"""Opens, resets and closes the tools of an environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from typing import Any

from visenv.errors import ServiceError
from visenv.types import Sample

from .base import Store, Tool


class ToolLifecycle:
    """Opens the tools before the first episode, and resets them for each episode.

    A simulator or a connection that a tool has opened remains open between episodes. A tool that
    raised `ServiceError` is closed after its episode and opened again for the next one.
    """

    def __init__(self) -> None:
        self._open: dict[str, Tool[Any]] = {}
        self._begun: list[Tool[Any]] = []
        self._failed: set[str] = set()

    def begin_episode(self, tools: Mapping[str, Tool[Any]], sample: Sample, store: Store) -> None:
        """Reset the tools for an episode, and open those that are not open.

        Args:
            tools: The tools of the episode, by name; a control may have removed some.
            sample: The sample.
            store: The texts and images of the episode.

        Raises:
            ServiceError: If a tool cannot be prepared.
        """
        for name, tool in tools.items():
            if name not in self._open:
                tool.open()
                self._open[name] = tool
            try:
                tool.reset(sample, store)
            except ServiceError:
                self.mark_failed(name)
                raise
            self._begun.append(tool)

    def mark_failed(self, name: str) -> None:
        """Record that this tool raised `ServiceError`; `close_failed` closes it."""
        self._failed.add(name)

    def end_episode(self) -> None:
        """End the episode of the tools that `begin_episode` has reset; they remain open."""
        while self._begun:
            self._begun.pop(0).end_episode()

    def close_failed(self) -> None:
        """Close the tools that have failed, so that the next episode opens them again."""
        failed, self._failed = self._failed, set()
        with suppress(ServiceError):  # closing a tool that has failed may also fail
            self._close(failed)

    def close(self) -> None:
        """Close all open tools."""
        self._close(self._open)

    def _close(self, names: Iterable[str]) -> None:
        """Close the open tools with these names, even if one of them raises."""
        with ExitStack() as stack:
            for name in sorted(names, reverse=True):
                if name in self._open:
                    stack.callback(self._open.pop(name).close)
