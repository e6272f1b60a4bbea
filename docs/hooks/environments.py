"""Adds a page for each environment, and the gallery, to the site (MkDocs hook).

The pages are generated when the site is built: `visenv.cards` plays episodes and writes the same
text as `visenv card`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from visenv.cards import EnvCard, animate, card_markdown, make_card
from visenv.registration import ENVIRONMENTS

log = get_plugin_logger("environments")

SECTION = "Environments"

EPISODES = {"visenv/Libero-v0": 1}
"""Numbers of episodes of environments whose simulator is too slow for the default (LIBERO)."""


def on_config(config: MkDocsConfig) -> None:
    """Add the pages of the environments to the navigation."""
    section: list[Any] = next(each[SECTION] for each in config.nav or [] if SECTION in each)
    section += [{_short(name): f"environments/{_short(name)}.md"} for name in ENVIRONMENTS]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the generated pages and pictures."""
    cards = []
    played = (config.extra["card_played"] or "").split() or map(_short, ENVIRONMENTS)
    episodes = dict.fromkeys(played, int(config.extra["card_episodes"]))
    for name in ENVIRONMENTS:
        log.info("playing %s", name)
        card = make_card(name, min(episodes.get(_short(name), 0), EPISODES.get(name, 10**6)))
        cards.append(card)
        for path, content in _page(card):
            files.append(File.generated(config, f"environments/{path}", content=content))
    gallery = File.generated(config, "environments/index.md", content=_gallery(cards))
    files.append(gallery)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Mark the content of the generated pages, so that the style sheet wraps their transcripts."""
    is_generated = page.file.src_uri.startswith("environments/")
    return f'<div class="environment">\n{html}\n</div>' if is_generated else html


def _page(card: EnvCard) -> Iterator[tuple[str, str | bytes]]:
    """Yield the files of a page: the text, the animated picture and the picture of the gallery."""
    name, picture = _short(card.env_id), ""
    if card.episode is not None:
        picture = f"![An episode of {card.env_id} played by the oracle]({name}.webp)"
        yield f"{name}.webp", animate(card.episode)
        yield f"{name}-still.webp", animate(card.episode, still=True)
    text = card_markdown(card, picture)
    yield f"{name}.md", text.replace(sys.executable, "python")


def _gallery(cards: list[EnvCard]) -> str:
    items = "\n\n".join(_item(card) for card in cards)
    return (
        "---\nhide: [toc]\n---\n\n# Environments\n\n"
        "Each page is generated from the code when this site is built: the card, the spaces, the "
        "presets, the reward terms, an episode that the oracle played, and a table of the oracle, "
        "a random player, a blind player and the teachers of the task. `visenv card NAME` prints "
        "the same content.\n\n"
        f'<div class="gallery" markdown>\n\n{items}\n\n</div>\n'
    )


def _item(card: EnvCard) -> str:
    name = _short(card.env_id)
    picture = "*No picture: no episode was played where this site was built.*"
    if card.episode is not None:
        picture = f"[![{name}]({name}-still.webp)]({name}.md)"
    return f"<div markdown>\n\n{picture}\n\n**[{name}]({name}.md)**: {card.summary}\n\n</div>"


def _short(name: str) -> str:
    return name.partition("/")[2]
