"""Tests when the tools of an environment are opened, reset and closed."""

from __future__ import annotations

import pytest
from typing_extensions import override

from visenv.errors import ServiceError
from visenv.tools.base import Arguments, Store, Tool, ToolLifecycle
from visenv.types import Sample


class LoggingTool(Tool[Arguments]):
    """Logs each change of its state; raises `ServiceError` at the changes in `fails`."""

    arguments = Arguments

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log
        self.fails: set[str] = set()

    def write(self, change: str) -> None:
        self.log.append(f"{self.name} {change}")
        if change in self.fails:
            raise ServiceError(self.name, "broken")

    @override
    def open(self) -> None:
        self.write("open")

    @override
    def reset(self, sample: Sample, store: Store) -> None:
        self.write("reset")

    @override
    def end_episode(self) -> None:
        self.write("end")

    @override
    def close(self) -> None:
        self.write("close")


def made() -> tuple[ToolLifecycle, dict[str, LoggingTool], list[str]]:
    log: list[str] = []
    return ToolLifecycle(), {name: LoggingTool(name, log) for name in ("a", "b")}, log


def begin(lifecycle: ToolLifecycle, tools: dict[str, LoggingTool]) -> None:
    lifecycle.begin_episode(tools, Sample("s", "question"), Store())


def test_tools_remain_open_between_episodes() -> None:
    lifecycle, tools, log = made()
    for _ in range(2):
        begin(lifecycle, tools)
        lifecycle.end_episode()
        lifecycle.close_failed()
    lifecycle.close()
    episode = ["a reset", "b reset", "a end", "b end"]
    first = ["a open", "a reset", "b open", "b reset", "a end", "b end"]
    assert log == [*first, *episode, "a close", "b close"]


def test_failed_tool_is_closed_and_opened_again() -> None:
    lifecycle, tools, log = made()
    begin(lifecycle, tools)
    lifecycle.mark_failed("b")
    lifecycle.end_episode()
    lifecycle.close_failed()
    log.clear()
    begin(lifecycle, tools)
    assert log == ["a reset", "b open", "b reset"]


def test_failed_reset_ends_only_the_tools_that_were_reset() -> None:
    lifecycle, tools, log = made()
    tools["b"].fails = {"reset", "close"}
    with pytest.raises(ServiceError):
        begin(lifecycle, tools)
    lifecycle.end_episode()
    lifecycle.close_failed()
    assert log == ["a open", "a reset", "b open", "b reset", "a end", "b close"]


def test_closing_closes_the_other_tools_if_one_raises() -> None:
    lifecycle, tools, log = made()
    begin(lifecycle, tools)
    tools["a"].fails = {"close"}
    with pytest.raises(ServiceError):
        lifecycle.close()
    assert log[-2:] == ["a close", "b close"]


def test_removed_tool_is_not_reset_and_is_still_closed() -> None:
    lifecycle, tools, log = made()
    begin(lifecycle, tools)
    log.clear()
    lifecycle.end_episode()
    begin(lifecycle, {"a": tools["a"]})
    lifecycle.end_episode()
    lifecycle.close()
    assert log == ["a end", "b end", "a reset", "a end", "a close", "b close"]
