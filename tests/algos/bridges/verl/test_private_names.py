"""Tests that all private names of verl that the bridge uses are listed and checked on import."""

from __future__ import annotations

import importlib
import sys

import pytest

from tests.private_uses import unlisted
from visenv.algos.bridges.verl.private_names import LOOP_NAMES
from visenv.errors import ConfigurationError
from visenv.private_names import check_private_names

pytestmark = [
    pytest.mark.component("verl", "torch"),
    pytest.mark.filterwarnings("ignore"),  # warnings between verl and its dependencies
]
LOOP = "visenv.algos.bridges.verl.loop"


def test_private_names_of_verl_exist_in_the_installed_version() -> None:
    check_private_names(LOOP_NAMES)


def test_private_names_of_verl_in_the_bridge_are_listed() -> None:
    assert unlisted(LOOP_NAMES, ["algos/bridges/verl"]) == []
    found = {use.name for use in unlisted([], ["algos/bridges/verl"])}
    assert {"verl.experimental.agent_loop.agent_loop:AgentLoopBase", "run"} <= found


def test_private_name_of_verl_that_is_gone_is_an_error_when_the_loop_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from verl.experimental.agent_loop import agent_loop

    monkeypatch.delattr(agent_loop, "AgentLoopMetrics")
    monkeypatch.delitem(sys.modules, LOOP, raising=False)
    with pytest.raises(ConfigurationError, match=r"verl 0\.9\.1 lacks names.*\n.*AgentLoopMetrics"):
        importlib.import_module(LOOP)
