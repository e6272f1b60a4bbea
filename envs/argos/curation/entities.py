"""Extracts the entities that a drafted answer mentions, as JSON (figures 5 and 6)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, kept
from visenv.curation.lines import Row
from visenv.curation.step import CurationStep
from visenv.data.rows import text_of
from visenv.grammar.points import MAX_LABEL
from visenv.scorers import Judge, ReplyError, Scorer
from visenv.scorers.judge import json_reply

from . import prompts
from .rows import images_of, question_of, texts_of, timeline, times_of_row
from .teacher import shown_parts

MOST_ENTITIES = 10

_TIME = r"(\d{1,6}(?:\.\d{1,6})?)\s?s?"
_ACTION = re.compile(rf"\s*(.*\S)\s*\(start_time={_TIME}, ?end_time={_TIME}\)\.?\s*", re.DOTALL)


class VideoAction(NamedTuple):
    """Describes a movement or change that a video shows.

    Attributes:
        action: A description of the movement or change.
        start_time: Seconds.
        end_time: Seconds, not before the start.
    """

    action: str
    start_time: float
    end_time: float


class DraftEntities(NamedTuple):
    """Holds the entities, interactions and (for videos) actions of a drafted answer."""

    entities: tuple[str, ...]
    interactions: tuple[str, ...]
    actions: tuple[VideoAction, ...] = ()


@dataclass(eq=False)
class FindEntities(CurationStep):
    """Adds ``entities``, ``interactions`` and, for videos, ``actions`` to each row.

    An invalid reply is requested again, up to three times in total; then the row fails. A row
    without entities is dropped. Actions that begin after the last frame are removed.
    """

    name: ClassVar[str] = "argos-entities"

    scorer: Scorer

    @override
    def settings(self) -> dict[str, Any]:
        """Return the scorer, without its address and other connection settings."""
        return {"scorer": self.scorer.name}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        times = times_of_row(row)
        prompt = prompts.ENTITIES_VIDEO if times else prompts.ENTITIES_IMAGE
        judge = Judge(self.scorer, prompt, partial(read_entities, video=bool(times)))
        when = {"timeline": timeline(times)} if times else {}
        found = await judge.ask(
            images=shown_parts(images_of(row), times),
            question=question_of(row),
            draft=text_of(row, "draft"),
            **when,
        )
        if not found.entities:
            return dropped("no entities")
        actions = [each._asdict() for each in found.actions if each.start_time <= times[-1]]
        listed = {"entities": list(found.entities), "interactions": list(found.interactions)}
        return kept({**row, **listed, **({"actions": actions} if times else {})})


def read_entities(text: str, *, video: bool) -> DraftEntities:
    """Parse a reply; repeated texts are removed, ignoring case.

    Args:
        text: The reply, one JSON object.
        video: Whether it contains ``"actions"``, too.

    Raises:
        ReplyError: If the reply has another form, lists more than `MOST_ENTITIES` entities, or an
            action without its times.
    """
    found = json_reply(text)
    keys = {"entities", "interactions"} | ({"actions"} if video else set())
    if not keys <= {*found}:
        raise ReplyError(f"expected the keys {sorted(keys)}, got {sorted(found)!r:.80}")
    entities = _texts(found, "entities")
    if len(entities) > MOST_ENTITIES:
        raise ReplyError(f"expected at most {MOST_ENTITIES} entities, got {len(entities)}")
    actions = tuple(map(_action, _texts(found, "actions"))) if video else ()
    return DraftEntities(entities, _texts(found, "interactions"), actions)


def entities_of(row: Row) -> list[str]:
    """Return the entities of a row.

    Raises:
        DataError: If the row has no list of them.
    """
    return texts_of(row, "entities")


def _texts(found: Row, key: str) -> tuple[str, ...]:
    texts = found[key]
    if not isinstance(texts, list):
        raise ReplyError(f"expected a list under {key!r}")
    distinct: dict[str, str] = {}
    for text in texts:
        if not isinstance(text, str) or not text.strip() or len(text) > MAX_LABEL:
            raise ReplyError(f"expected short texts under {key!r}, got {text!r:.80}")
        said = " ".join(text.split())
        distinct.setdefault(said.casefold(), said)
    return tuple(distinct.values())


def _action(text: str) -> VideoAction:
    found = _ACTION.fullmatch(text)
    if found is None:
        raise ReplyError(f"expected an action with its times, got {text!r:.80}")
    action = VideoAction(found[1], float(found[2]), float(found[3]))
    if action.end_time < action.start_time:
        raise ReplyError(f"expected an end after the start, got {text!r:.80}")
    return action
