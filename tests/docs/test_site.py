"""Tests the documentation site: it builds strictly, matches the code, and uses no other host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

from visenv.registration import ENVIRONMENTS

ROOT = Path(__file__).parents[2]
NAMES = [name.partition("/")[2] for name in ENVIRONMENTS]

pytestmark = [pytest.mark.component("mkdocs-material"), pytest.mark.timeout(900)]


PLAYED = ["House-v0", "ZoomVQA-v0"]
RENDERED = ["visenv.env", "visenv.policies.tokens"]


@pytest.fixture(
    scope="module",
    params=[(PLAYED, RENDERED), pytest.param(([], []), marks=pytest.mark.soak)],
    ids=["few", "all"],
)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does, with one episode of each player of some environments.

    Without `soak`, only the API pages of some modules contain docstrings.
    """
    played, rendered = request.param
    out = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    settings = {
        "VISENV_DOCS_EPISODES": "1",
        "VISENV_DOCS_PLAYED": " ".join(played),
        "VISENV_DOCS_API": " ".join(rendered),
        "NO_MKDOCS_2_WARNING": "1",
    }
    env = {**os.environ, **settings}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "unrecognized relative link" not in done.stderr
    return out


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Any]:
    """Yield headless Chromium, which keeps an event loop running in this thread."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--disable-gpu"])
        yield browser
        browser.close()


@pytest.mark.parametrize("name", NAMES)
def test_site_has_a_page_of_each_environment_that_the_gallery_links(site: Path, name: str) -> None:
    page = (site / f"environments/{name}.html").read_text(encoding="utf-8")
    assert "Arguments of gym.make" in page
    gallery = (site / "environments/index.html").read_text(encoding="utf-8")
    assert f'href="{name}.html"' in gallery
    pictures = {path.stem for path in (site / "environments").glob("*-v?.webp")}
    assert pictures >= {*PLAYED}
    if name in pictures:
        assert (site / f"environments/{name}.webp").read_bytes()[8:12] == b"WEBP"
        assert f'src="{name}-still.webp"' in gallery
        assert "Policy, turn 1" in page


def test_site_has_an_api_page_of_each_module_of_the_core(site: Path) -> None:
    page = (site / "api/visenv.env.html").read_text(encoding="utf-8")
    assert 'id="visenv.env.VisEnv.turn_request"' in page
    index = (site / "api/index.html").read_text(encoding="utf-8")
    assert all(f"visenv.{name}" in index for name in ("rollout", "policies.oracle", "envs.arm"))


def test_site_has_no_api_page_of_internal_modules(site: Path) -> None:
    index = (site / "api/index.html").read_text(encoding="utf-8")
    internal = ("visenv.files", "visenv.old_names", "visenv.private_names")
    assert not [name for name in internal if f"{name}.html" in index]
    tokens = (site / "api/visenv.policies.tokens.html").read_text(encoding="utf-8")
    assert 'id="visenv.policies.tokens.codec' in tokens
    assert 'id="visenv.policies.tokens.private_names' not in tokens


def test_site_shows_the_outputs_of_notebooks(site: Path) -> None:
    page = (site / "repository/notebooks/train_the_tiny_model.ipynb.html").read_text("utf-8")
    assert 'src="data:image/png;base64,' in page
    assert "Held-out episodes, greedy / sampled" in page
    assert "\x1b[" not in page  # colors of a terminal


def test_site_shows_the_table_of_the_benchmark_of_algorithms(site: Path) -> None:
    page = (site / "benchmark.html").read_text(encoding="utf-8")
    assert re.search(r"<td>rejection_sampling</td>", page)


def test_site_links_lead_to_files_and_headings_that_exist(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    broken = []
    for path, text in pages.items():
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            address, anchor = urldefrag(unquote(link))
            if re.match(r"[a-z]+:", address) or path.name == "404.html":
                continue
            target = (path.parent / address).resolve() if address else path
            known = not anchor or target not in pages or f'id="{anchor}"' in pages[target]
            if not (target.is_file() and known):
                broken.append(f"{path.relative_to(site)} -> {link}")
    assert not broken, "\n".join(sorted({*broken})[:40])


def test_site_loads_nothing_from_another_host(site: Path) -> None:
    loads = re.compile(r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc=\"(?:https?:)?//")
    styles = re.compile(r"<link\b[^>]*rel=\"(?:stylesheet|preconnect|icon|preload)\"[^>]*https?://")
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not loads.search(text), path
        assert not styles.search(text), path


@pytest.mark.component("chromium")
@pytest.mark.parametrize(
    "page", ["index.html", "environments/index.html", "environments/ZoomVQA-v0.html"]
)
def test_site_pages_open_in_a_browser_without_a_request_elsewhere(
    site: Path, browser: Any, page: str
) -> None:
    requests: list[str] = []
    problems: list[str] = []
    with browser.new_page(viewport={"width": 390, "height": 844}) as tab:
        tab.on("request", lambda request: requests.append(request.url))
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.goto((site / page).as_uri())
        tab.wait_for_load_state("networkidle")
        pictures = (
            "[...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)"
        )
        assert tab.evaluate(pictures) == []
        # On a narrow screen, only tables and code may be wider, and they scroll in their frames.
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert problems == []
    assert all(request.startswith(("file:", "data:", "blob:")) for request in requests)


@pytest.mark.component("chromium")
def test_site_search_finds_a_page_if_the_site_is_opened_from_a_folder(
    site: Path, browser: Any
) -> None:
    problems: list[str] = []
    with browser.new_page(viewport={"width": 1280, "height": 900}) as tab:
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.goto((site / "environments/index.html").as_uri())
        tab.locator(".md-search__input").first.click()
        tab.keyboard.type("glossary")
        found = tab.locator(".md-search-result__link[href*='glossary.html']").first
        found.wait_for(state="attached", timeout=30_000)
    assert problems == []


@pytest.mark.component("chromium")
@pytest.mark.parametrize("width", [390, 1280])
def test_site_wraps_transcripts_and_breaks_no_identifier_in_a_table(
    site: Path, browser: Any, width: int
) -> None:
    clipped = """[...document.querySelectorAll('.language-text code')]
        .filter(code => code.scrollWidth > code.clientWidth + 1).length"""
    # An inline element that is broken into lines has a rectangle for each of them.
    broken = """[...document.querySelectorAll('td code')]
        .filter(code => /^\\w+$/.test(code.innerText) && code.getClientRects().length > 1).length"""
    with browser.new_page(viewport={"width": width, "height": 900}) as tab:
        tab.goto((site / "environments/House-v0.html").as_uri())
        assert tab.locator(".language-text code").count() >= 2  # the prompt, and a turn
        assert tab.evaluate(clipped) == 0
        tab.goto((site / "glossary.html").as_uri())
        assert tab.locator("td code").count() > 20
        assert tab.evaluate(broken) == 0
