"""Replaces points by tags, and time anchors by phrases (section 4.3)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from visenv.curation.journal import RowOutcome, kept
from visenv.curation.lines import Row
from visenv.curation.step import CurationStep
from visenv.episodes import episode_from_json, episode_to_json, save_images
from visenv.errors import DataError
from visenv.grammar.anchors import Anchor, read_anchors
from visenv.grammar.points import BOX_START, PointsGrammar, TraceReferences
from visenv.types import Episode, Turn, TurnTaken
from visenv.verifier import Referred

from .extraction import CITED, references_of

_BRACKETS = re.compile(
    r"(?:\b(in|during|over|from)\s)?(\[\s{0,2}F\d[^\[\]\n]{0,2000}\])", re.IGNORECASE
)


@dataclass(eq=False)
class Reformat(CurationStep):
    """Rewrites the turn of each episode in the form that the environment's prompt requests.

    ``(12, 34)`` becomes ``<point x1="12" y1="34" alt="mug">mug</point>``, ``[F3 @ t=1.00s]``
    becomes "frame 3 at 1.00 seconds", and ``[F3-F6 @ t=1.00-2.50s]`` becomes "frame 3 at 1.00
    seconds to frame 6 at 2.50 seconds". The final answer, and points without a name, do not change.
    """

    name: ClassVar[str] = "argos-reformat"

    images: Path
    folder: Path

    @override
    async def decide(self, row: Row) -> RowOutcome:
        episode = episode_from_json(row, self.images)
        if len(episode.turns) != 1:
            raise DataError(f"expected one turn, got {len(episode.turns)}")
        references = references_of(row)
        text = reformat(episode.turns[0].text, references)
        changed = with_text(episode, text)
        if (self.folder / "images").absolute() != self.images.absolute():
            save_images(self.folder / "images", episode.images)
        return kept({"id": row["id"], **episode_to_json(changed)})


def reformat(text: str, references: TraceReferences) -> str:
    """Return a turn with tags instead of points and phrases instead of anchors.

    Args:
        text: The turn.
        references: The references of its extraction, which contain the names of the points.
    """
    end = text.rfind(BOX_START)
    if end < 0:
        end = text.rfind("<answer>")
    said, answer = (text, "") if end < 0 else (text[:end], text[end:])
    names: dict[tuple[float, float], list[str]] = defaultdict(list)
    for point in references.points:
        names[point.x, point.y].append(point.label)
    said = _BRACKETS.sub(_phrase, said)
    return CITED.sub(lambda found: _tag(found, names), said) + answer


def with_text(episode: Episode, text: str) -> Episode:
    """Return an episode of one turn with `text` as its turn, and with the same scores.

    Token streams are removed, because they contain the old text.
    """
    grammar = PointsGrammar()
    turn = episode.turns[0]
    events = tuple(_event_with(event, text, grammar) for event in turn.events)
    changed: Turn = replace(turn, text=text, events=events)
    return replace(episode, turns=(changed,), segments=())


def _event_with(event: Any, text: str, grammar: PointsGrammar) -> Any:
    if isinstance(event, TurnTaken):
        return event._replace(text=text, thought=grammar.parse(text).thought)
    if isinstance(event, Referred):
        return event._replace(reasoning=grammar.reasoning(text))
    return event


def _tag(found: re.Match[str], names: Mapping[tuple[float, float], list[str]]) -> str:
    """Return the tag of a point; if the point has no name, its text is unchanged.

    If a point has several names, they are used in order; the last one is then repeated.
    """
    known = names.get((float(found[1]), float(found[2])), [])
    if not known:
        return found[0]
    name = known.pop(0) if len(known) > 1 else known[0]
    inner = " ".join(name.replace("<", " ").replace(">", " ").split())
    return f'<point x1="{found[1]}" y1="{found[2]}" alt="{escape(inner)}">{inner}</point>'


def _phrase(found: re.Match[str]) -> str:
    """Return the phrase for an anchor in brackets; other text is unchanged."""
    word, brackets = found[1] or "", found[2]
    before = f"{word} " if word else ""
    anchors = read_anchors(brackets)
    if not anchors or any(None in anchor.frames for anchor in anchors):
        return found[0]
    first, last = anchors[0], anchors[-1]
    if anchors == [first] and not first.is_span:
        return before + _frame(first, 0)
    if anchors == [first] or _are_consecutive(anchors):
        start = "From" if word[:1].isupper() else "from"
        return f"{start} {_frame(first, 0)} to {_frame(last, 1)}"
    listed = ", ".join(_frame(anchor, 0) for anchor in anchors[:-1])
    return f"{before}{listed} and {_frame(last, 0)}"


def _are_consecutive(anchors: Sequence[Anchor]) -> bool:
    numbers = [anchor.frames[0] or 0 for anchor in anchors]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _frame(anchor: Anchor, end: int) -> str:
    time = anchor.times[end]
    return f"frame {anchor.frames[end]}" + ("" if time is None else f" at {time:.2f} seconds")
