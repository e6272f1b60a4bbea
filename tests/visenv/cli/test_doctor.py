"""Tests the output of `visenv doctor` on complete and on broken installations."""

from __future__ import annotations

import pytest

from visenv.cli import main
from visenv.sandbox import Execution, LocalBackend, Program
from visenv.sandbox.examination import CHECKS, examine
from visenv.sandbox.fork_server import ForkServer, ServerHello


@pytest.mark.slow
def test_doctor_reports_every_layer_and_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    layers = (
        "user mount pid network ipc uts cgroup".replace(" ", " namespace,") + " namespace"
    ).split(",")
    for layer in (*layers, "private root", "landlock", "seccomp filter", "no new privileges"):
        assert layer in said
    for check in CHECKS:
        (line,) = (line for line in said.splitlines() if f"check: {check.name} " in line)
        assert line.strip().endswith("ok")
        assert "FAILED" not in line
    assert "programs run in isolation by: " in said


@pytest.mark.slow
def test_program_that_breaks_out_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = LocalBackend.run

    def leaking(self: LocalBackend, program: Program) -> Execution:
        if "socket" in program.code:
            return Execution("ok")
        return real(self, program)

    monkeypatch.setattr(LocalBackend, "run", leaking)
    assert main(["doctor"]) == 1
    said = capsys.readouterr()
    assert said.err == "visenv: The sandbox does not hold: network.\n"
    assert said.out.count("FAILED") == 1


def test_machine_with_too_few_layers_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = (("landlock", False, "not there"), ("seccomp filter", True, ""))
    start = ForkServer.__init__

    def refused(self: ForkServer, configuration: dict[str, object], ahead: int) -> None:
        start(self, configuration, ahead)
        self.hello = ServerHello(None, layers)

    monkeypatch.setattr(ForkServer, "__init__", refused)
    assert examine().checks == ()
    assert main(["doctor"]) == 1
    said = capsys.readouterr()
    assert "landlock        refused  not there" in said.out
    assert said.err.startswith("visenv: This machine cannot run untrusted code safely")
    assert "Missing: landlock (not there)." in said.err


@pytest.mark.slow
def test_doctor_can_examine_one_way_of_isolation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--isolation", "landlock"]) == 0
    assert "programs run in isolation by: landlock" in capsys.readouterr().out
