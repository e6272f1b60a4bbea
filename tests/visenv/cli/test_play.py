"""Tests `visenv play` with a scripted person, and once through a real terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from visenv.cli import main
from visenv.cli.play import read_turn
from visenv.env import VisEnv
from visenv.types import Image

Play = Callable[[Sequence[str]], str]


@pytest.fixture
def play(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Play:
    """Return a function that plays seed 3 with these input lines, and returns the printed text."""

    def with_lines(lines: Sequence[str]) -> str:
        typing(monkeypatch, lines)
        options = ["--option", "preset=tiny", "--seed", "3", "--no-show"]
        assert main(["play", "ZoomVQA-v0", *options, "--images", str(tmp_path / "seen")]) == 0
        said = capsys.readouterr()
        assert said.err == ""
        return said.out

    return with_lines


def typing(monkeypatch: pytest.MonkeyPatch, lines: Sequence[str]) -> list[str]:
    """Make `input` return these lines and then end; return the prompts that it receives."""
    left = iter(lines)
    prompts: list[str] = []

    def give(prompt: str = "") -> str:
        prompts.append(prompt)
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", give)
    return prompts


def oracle_lines() -> tuple[list[str], list[str]]:
    """Return the oracle's two turns of seed 3, as a person types them after the prefix."""
    env = gym.make("visenv/ZoomVQA-v0", preset="tiny")
    base = env.unwrapped
    assert isinstance(base, VisEnv)
    _, info = env.reset(seed=3)
    turns = []
    while (request := info["step"].request) is not None:
        text = base.grammar.compose(base.oracle_turn())
        turns.append(text.removeprefix(request.prefill).split("\n"))
        _, _, _, _, info = env.step(text)
    first, second = turns
    return first, second


def test_play_reads_an_episode_of_turns_with_several_lines(play: Play, tmp_path: Path) -> None:
    zoom, answer = oracle_lines()
    assert len(zoom) > 2

    said = play([*zoom, "", "", *answer, ""])

    assert "\nreward 2.100\n" in said
    assert "  hit       1.000\n" in said
    for number in (1, 2):
        path = tmp_path / "seen" / f"image_{number}.png"
        assert f"({path}, 96 wide and 96 high)" in said
        assert Image.from_file(path).size == (96, 96)
    view, _ = gym.make("visenv/ZoomVQA-v0", preset="tiny").reset(seed=3)
    saved = Image.from_file(tmp_path / "seen" / "image_1.png")
    assert np.array_equal(saved.pixels, view["images"][0])


def test_malformed_turn_shows_the_error_and_play_continues(play: Play) -> None:
    _, answer = oracle_lines()
    said = play(["no closing tag", "", *answer, ""])
    assert "Error: Your <think> is never closed with </think>." in said
    assert said.count("[you]") == 2
    assert "  accuracy  1.000\n" in said


def test_end_of_input_gives_up_and_shows_the_truth(play: Play) -> None:
    said = play([])
    assert "You gave up." in said
    assert "reward" not in said
    assert "  answers " in said


def test_end_of_input_within_a_turn_takes_it(play: Play) -> None:
    said = play(["no closing tag"])
    assert "never closed" in said
    assert "You gave up." in said


def test_play_names_the_limit_that_ended_the_episode(play: Play) -> None:
    assert "ended by: turns\n" in play(["no closing tag", "", "nor here", ""])


def test_prefix_is_put_before_the_first_line_only(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = typing(monkeypatch, ["one", "two", ""])
    assert read_turn("<think>") == "<think>one\ntwo"
    assert prompts == ["<think>", "", ""]


@pytest.mark.slow
def test_play_reads_well_in_a_terminal(tmp_path: Path) -> None:
    terminal, inside = pty.openpty()
    program = Path(sys.executable).with_name("visenv")
    words = [str(program), "play", "ZoomVQA-v0", "--option", "preset=tiny", "--no-show"]
    with subprocess.Popen(words, stdin=inside, stdout=inside, stderr=inside, cwd=tmp_path) as child:
        os.close(inside)
        said = read_until(terminal, b"[you]\r\n<think>")
        os.write(terminal, b"first\nsecond </think><answer>x</answer>\n\n")
        said += read_until(terminal, None)
        assert child.wait() == 0
    os.close(terminal)
    text = said.decode().replace("\r\n", "\n")
    assert "\n<think>first\nsecond </think><answer>x</answer>\n\nreward 1." in text
    assert "\n\n\n" not in text


def read_until(terminal: int, end: bytes | None) -> bytes:
    """Return the output of the terminal up to `end`, or until the other side is closed."""
    said = b""
    while end is None or end not in said:
        try:
            more = os.read(terminal, 4096)
        except OSError:  # Linux raises this when the other side is closed
            more = b""
        if not more:
            assert end is None, said
            break
        said += more
    return said
