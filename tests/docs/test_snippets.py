"""Tests that every snippet of README.md and docs/ runs, or gives a reason why it does not run."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.snippets import PAGES, REASONS, ROOT, Snippet, snippets
from visenv.cli import COMMANDS, _command

ALL = [snippet for page in PAGES for snippet in snippets(page)]
SLOW = (
    "arm.md",
    "commands.md",
    "data.md",
    "environments.md",
    "evaluate_an_api_model.md",
    "evaluation.md",
    "first_episode.md",
    "how_to.md",
    "image_sizes.md",
    "mags.md",
    "rollout.md",
    "search.md",
    "train_your_environment.md",
)
"""Pages whose snippets start many programs, or train models of transformers; they run in soak."""

RUN = {page: [each for each in snippets(page) if not each.skipped] for page in PAGES}


def test_snippets_are_skipped_for_listed_reasons_only() -> None:
    unknown = {each.place: each.skipped for each in ALL if each.skipped not in {"", *REASONS}}
    assert not unknown
    assert {each.skipped for each in ALL} - {""} == {*REASONS}, "a reason that nothing has"


def test_snippets_that_run_have_nothing_to_fill_in() -> None:
    shown = [each for each in ALL if not each.skipped and not each.setup]
    assert [each.place for each in shown if each.has_placeholder()] == []


def test_comments_about_snippets_are_read() -> None:
    text = {page: page.read_text(encoding="utf-8") for page in PAGES}
    written = {page: text[page].count("<!-- snippet: ") for page in PAGES}
    read = {
        page: sum(bool(each.skipped or each.setup) for each in snippets(page)) for page in PAGES
    }
    assert written == read


@pytest.mark.parametrize(
    "snippet", [each for each in ALL if each.language == "python"], ids=lambda each: each.place
)
def test_snippet_of_python_compiles(snippet: Snippet) -> None:
    compile(snippet.text, snippet.place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@pytest.mark.parametrize(
    "snippet",
    [each for each in ALL if each.language == "sh" and "visenv" in each.text],
    ids=lambda each: each.place,
)
def test_snippet_of_shell_has_options_that_exist(
    snippet: Snippet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for words in snippet.commands():
        program, *rest = [word for word in words if word not in ("...", "…")]
        if Path(program).name == "visenv" and rest and not rest[0].startswith("--"):
            check_command(rest[0], rest[1:])
        for place, word in enumerate(rest):
            if re.fullmatch(r"examples/train_\w+\.py", word):
                check_example(ROOT / word, rest[place + 1 :], monkeypatch)


def check_command(name: str, words: list[str]) -> None:
    if "--help" in words:
        assert name in COMMANDS
    elif name == "train":
        check_train(words)
    else:
        _command(name, words)


def check_train(words: list[str]) -> None:
    from visenv.algos.experiment.command import take_env
    from visenv.algos.experiment.recipe_files import (
        DEFAULT_RECIPE,
        read_recipe,
        read_sweep,
        recipe_path,
    )

    given = list(words)
    if take_env(given) is not None:
        read_recipe(recipe_path(DEFAULT_RECIPE), given)
        return
    recipe = given.pop(0) if given and not given[0].startswith("-") else "zoom_tiny"
    if recipe.endswith(".toml") and not Path(recipe).exists():
        recipe = "zoom_tiny"  # a file that the reader makes
        given = [word for word in given if word.startswith("--") and "environments." not in word]
    if "--sweep" in given:
        given.remove("--sweep")
        read_sweep(recipe_path(recipe), given)
    else:
        read_recipe(recipe_path(recipe), given)


def check_example(path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the options of an example that passes them to `visenv train`."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "train", check_train)
    module.main(words)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.soak) if page.name in SLOW else page
        for page in PAGES
        if RUN[page]
    ],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_snippets_of_a_page_run_in_order(page: Path, tmp_path: Path) -> None:
    items: list[tuple[str, str, Any]] = []
    for snippet in RUN[page]:
        if snippet.setup:
            items.append(("setup", snippet.place, snippet.setup))
        if snippet.title:
            items.append(("file", snippet.place, (snippet.title, snippet.text)))
        else:
            items.append((snippet.language, snippet.place, snippet.text))
        for words in snippet.commands() if snippet.language == "sh" else ():
            assert words[0] == "visenv", f"{snippet.place}: {words[0]} does not run in the tests"
    command = [sys.executable, "-m", "tests.docs.run_page"]
    done = subprocess.run(
        command, cwd=tmp_path, input=json.dumps(items), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
