"""Tests that texts of other people reach the terminal without control characters and markup."""

from __future__ import annotations

import io
import json
import logging
import unicodedata
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from visenv.cli import main
from visenv.cli.tables import print_summary, progress, table_of
from visenv.episodes import write_episodes
from visenv.errors import (
    ConfigurationError,
    DataError,
    FileRefusedError,
    ServiceError,
    ToolError,
    UnknownNameError,
)
from visenv.evaluation.summary import summarize
from visenv.makers import env_maker, make_policy
from visenv.rollout import Collector
from visenv.terminal import PrintableFormatter, printable, printable_lines, rich_text
from visenv.types import Episode

pytestmark = pytest.mark.attack("terminal: text of files and servers is printed without effects")

HOSTILE = (
    "\x1b]0;title\x07\x1b[2J\x1b]8;;http://example.org\x07here\x1b]8;;\x07\x9b31m"
    "\r\b\x7f\x00\u202egnp\u2066\u2028\ud800[bold red]m[/bold red][link=x]y[/link]:smile:"
)


def is_harmless(text: str, kept: str = "\n\t") -> bool:
    """Return whether a text has no character that a terminal could execute or reorder."""
    return all(each in kept or unicodedata.category(each) not in _HARMFUL for each in text)


_HARMFUL = ("Cc", "Cs", "Zl", "Zp")


@given(st.text(st.characters(codec=None)))
@example(HOSTILE)
@example("".join(map(chr, range(0x2100))))
def test_printable_text_has_no_control_characters(text: str) -> None:
    shown = printable(text)
    assert is_harmless(shown, "")
    assert not set(shown) & set(
        "\u061c\u200e\u200f\u202a\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
    )
    assert printable(shown) == shown
    shown.encode()


def test_printable_text_keeps_the_letters_of_all_scripts() -> None:
    text = "Ünïcode 日本　語 العربية हिन्दी \u200d👩\u200d🔬 é \\ [x] | ~"
    assert printable(text) == text
    assert printable("a\tb\nc\x1b") == r"a\tb\nc\x1b"
    assert printable_lines("a\tb\nc\x1b\r") == "a\tb\nc\\x1b\\r"
    assert printable("\ud800\U000e0041") == "\\ud800\\U000e0041"


def rendered(show: Callable[[Console], None]) -> str:
    file = io.StringIO()
    show(Console(file=file, width=1000, force_terminal=False))
    return file.getvalue()


def test_markup_in_a_text_is_not_interpreted() -> None:
    text = "[bold]a[/bold] [/x] :smile: [link=file:///etc]b[/link]"
    assert text in rendered(lambda console: console.print(rich_text(text)))
    table = table_of("check", "result", [(text, f"{text}\nsecond line \x1b[2J")])
    shown = rendered(lambda console: console.print(table))
    assert shown.count(text) == 2
    assert r"second line \x1b[2J" in shown


@pytest.mark.parametrize(
    "error",
    [
        DataError(HOSTILE),
        ConfigurationError(HOSTILE, HOSTILE),
        UnknownNameError("thing", HOSTILE, [HOSTILE], HOSTILE),
        ServiceError(HOSTILE, HOSTILE),
        FileRefusedError(HOSTILE, HOSTILE),
    ],
)
def test_messages_of_errors_are_printable(error: Exception) -> None:
    assert is_harmless(str(error))
    assert "[2J" in str(error)


def test_tool_errors_reach_the_policy_unchanged() -> None:
    assert str(ToolError(HOSTILE)) == HOSTILE


def test_log_records_are_printable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    capsys.readouterr()
    assert logging.lastResort is not None
    record = logging.LogRecord("visenv", logging.WARNING, "", 0, "%s", (HOSTILE,), None)
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        record.exc_info = (ValueError, error, error.__traceback__)
    logging.lastResort.emit(record)
    text = capsys.readouterr().err
    assert "ValueError" in text
    assert is_harmless(text)
    assert is_harmless(PrintableFormatter().format(record))


def test_messages_of_libraries_with_their_own_handler_are_printable(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list"]) == 0
    written = io.StringIO()
    logger, handler = logging.getLogger("a library"), logging.StreamHandler(written)
    logger.addHandler(handler)
    logger.warning("an unknown option: %s", HOSTILE)
    logger.removeHandler(handler)
    assert "an unknown option: \\x1b]0;title" in written.getvalue()
    assert is_harmless(written.getvalue())
    warning = warnings.formatwarning(HOSTILE, UserWarning, HOSTILE, 1, HOSTILE)
    assert "UserWarning" in warning
    assert is_harmless(warning)


@pytest.fixture(scope="module")
def episode() -> dict[str, Any]:
    """Return the JSON object of an episode of the oracle."""
    collector = Collector(env_maker("ZoomVQA-v0", ["preset=tiny"]), make_policy("oracle"))
    [[played]] = collector.groups([0])
    collector.close()
    return {"played": played}


@pytest.fixture
def saved(episode: dict[str, Any], tmp_path: Path) -> Callable[[Callable[[Any], object]], Path]:
    """Return a function that saves the episode after a change, as somebody else could."""

    def save(change: Callable[[Any], object]) -> Path:
        path = tmp_path / "run" / "episodes.jsonl"
        write_episodes(path, [episode["played"]])
        record = json.loads(path.read_text())
        change(record)
        path.write_text(json.dumps(record) + "\n")
        return path

    return save


CHANGES: dict[str, Callable[[Any], object]] = {
    "env_id": lambda record: record.update(env_id=HOSTILE, env_spec="{"),
    "spec": lambda record: record.update(env_spec=json.dumps({"id": HOSTILE, "kwargs": {}})),
    "media": lambda record: record.update(media={HOSTILE: HOSTILE}),
    "sample": lambda record: record.update(sample_id=HOSTILE),
    "status": lambda record: record.update(status=HOSTILE),
    "event": lambda record: record["turns"][0]["events"].append({"event": HOSTILE, "turn": "x"}),
    "key": lambda record: record["turns"][0].update(events=[{"event": "Answered", HOSTILE: 1}]),
    "image": lambda record: record["turns"][0]["messages"][0]["parts"].append({"image": HOSTILE}),
    "role": lambda record: record["turns"][0]["messages"][0].update(role=HOSTILE),
    "metrics": lambda record: record.update(metrics={HOSTILE: 0.5, "accuracy": 1.0}),
    "terms": lambda record: record.update(terms={HOSTILE: 0.5}),
    "kind": lambda record: record.update(kind=HOSTILE, question=HOSTILE, answers=[HOSTILE]),
    "failure": lambda record: (
        record.update(status="aborted", reason="", failure=["service", HOSTILE, HOSTILE, HOSTILE])
        or [turn.update(reward=0.0) for turn in record["turns"]]
    ),
    "tool": lambda record: [
        event.update(tool=HOSTILE)
        for turn in record["turns"]
        for event in turn["events"]
        if event["event"] == "ToolCalled"
    ],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("command", ["rescore", "eval", "view", "export"])
def test_commands_print_the_texts_of_a_file_as_escapes(
    change: str,
    command: str,
    saved: Callable[[Callable[[Any], object]], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = saved(CHANGES[change])
    words = {
        "rescore": ["rescore", str(path)],
        "eval": ["eval", str(path)],
        "view": ["view", str(path.parent), "--no-open"],
        "export": ["export", str(path.parent), "--to", "inspect"],
    }
    assert main(words[command]) in (0, 1)
    printed = capsys.readouterr()
    assert printed.out + printed.err
    assert is_harmless(printed.out + printed.err)
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(
    "command",
    [
        *("view", "inspect", "rescore", "eval", "compare"),
        pytest.param("parquet", marks=pytest.mark.component("pyarrow")),
    ],
)
def test_commands_print_names_of_folders_as_escapes(
    command: str,
    saved: Callable[[Callable[[Any], object]], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = saved(lambda record: None)
    folder = path.parent.rename(path.parent.with_name("\x1b]0;title\x07\x1b[2J\u202e[red]"))
    file = str(folder / path.name)
    words = {
        "view": ["view", str(folder), "--no-open"],
        "inspect": ["export", str(folder), "--to", "inspect"],
        "parquet": ["export", str(folder), "--to", "parquet"],
        "rescore": ["rescore", file, "--out", str(folder / "new.jsonl")],
        "eval": ["eval", file, "--out", str(folder / "table")],
        "compare": ["eval", "--compare", file, file],
    }[command]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "\\x1b]0;title" in said.out
    assert is_harmless(said.out + said.err)


def test_comparison_prints_names_of_metrics_as_escapes(
    saved: Callable[[Callable[[Any], object]], Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    path = saved(CHANGES["metrics"])
    assert main(["eval", "--compare", str(path), str(path)]) == 0
    printed = capsys.readouterr().out
    assert is_harmless(printed)
    assert "[bold red]m[/bold red]" in printed


def test_summary_and_progress_show_names_as_escapes(
    episode: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    played: Episode = episode["played"]
    odd = replace(played, kind=HOSTILE, metrics={HOSTILE: 1.0, **played.metrics})
    print_summary(summarize([odd, played], totals={HOSTILE: 1.0}))
    with progress(HOSTILE + "{task.x}", 1) as advance:
        advance()
    printed = capsys.readouterr()
    assert is_harmless(printed.out + printed.err)
