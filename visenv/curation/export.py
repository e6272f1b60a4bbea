"""Exports episodes as chat messages, with images as files, for other trainers.

visenv's trainer reads files of episodes (`read_episodes`, then `TrainablePolicy.encode`). For other
trainers, each conversation of an episode becomes a row. An environment that replaces the context
begins a new conversation::

    llama-factory   {"messages": [{"role", "content": "<image>What …"}], "images": ["images/…"]}
                    and dataset_info.json, the list of files in LLaMA-Factory's format
    trl             {"messages": [{"role", "content": [{"type": "image"}, {"type": "text", …}]}],
                    "images": ["images/…"]}

The text has a marker for each image, at its place. A literal marker in any text (``<image>``, and
LLaMA-Factory's ``<video>`` and ``<audio>``) is broken by a blank, so that it is not read as one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from typing_extensions import override

from visenv.curation.journal import RowOutcome, kept
from visenv.curation.lines import InputRows, Row, read_object
from visenv.curation.step import CurationStep, StepReport
from visenv.decoding.files import read_regular
from visenv.episodes import episode_from_json, save_images
from visenv.errors import DataError, UnknownNameError
from visenv.files import write_text
from visenv.types import Episode, Message, all_images, flatten

_OTHER_MEDIA = re.compile(r"<(video|audio)>")

Layout = Literal["llama-factory", "trl"]
LAYOUTS = get_args(Layout)


@dataclass(eq=False)
class Export(CurationStep):
    """Writes episodes as chat messages, with images as files, for other trainers.

    Raises:
        UnknownNameError: If there is no such layout.
    """

    name: ClassVar[str] = "export"

    images: Path
    folder: Path
    layout: Layout = "llama-factory"
    """The format of the output."""

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise UnknownNameError("layout", self.layout, LAYOUTS)

    @override
    def settings(self) -> dict[str, Any]:
        return {"layout": self.layout}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        episode = episode_from_json(row, self.images)
        content = _marked if self.layout == "llama-factory" else _parts
        rows = []
        for number, messages in enumerate(conversations(episode)):
            paths = save_images(self.folder / "images", all_images(messages))
            rows.append(
                {
                    "id": f"{row['id']}/{number}" if number else row["id"],
                    "messages": [{"role": one.role, "content": content(one)} for one in messages],
                    "images": [str(path) for path in paths],
                }
            )
        return kept(*rows)

    @override
    def run(
        self,
        lines: InputRows,
        out: Path,
        concurrency: int = 64,
        on_line: Callable[[], None] | None = None,
    ) -> StepReport:
        """Run as `CurationStep.run` does; for LLaMA-Factory, also write ``dataset_info.json``."""
        account = super().run(lines, out, concurrency, on_line)
        if self.layout == "llama-factory":
            _describe(out)
        return account


def conversations(episode: Episode) -> Iterator[list[Message]]:
    """Yield the conversations of an episode: messages of user and system, then one turn.

    Consecutive messages of one role are joined, because chat templates require alternating roles.

    Raises:
        DataError: If the policy has two turns without a message between them.
    """
    messages: list[Message] = []
    for turn in episode.turns:
        if turn.request.context == "replace" and messages:
            yield messages
            messages = []
        for shown in turn.messages:
            if messages and messages[-1].role == shown.role:
                joined = (*messages.pop().parts, "\n\n", *shown.parts)
                messages.append(Message(shown.role, joined))
            else:
                messages.append(shown)
        if not messages or messages[-1].role == "assistant":
            raise DataError(
                "a chat needs a message between two turns of the policy, and there is none before "
                f"the turn {turn.text!r:.80}"
            )
        messages.append(Message("assistant", (turn.text,)))
    if messages:
        yield messages


def _marked(message: Message) -> str:
    parts = [part if not isinstance(part, str) else _broken(part) for part in message.parts]
    return flatten((Message(message.role, tuple(parts)),))[0]


def _broken(text: str) -> str:
    """Return a text whose literal markers of other media are broken by a blank."""
    return _OTHER_MEDIA.sub(r"< \1>", text)


def _parts(message: Message) -> list[dict[str, str]]:
    return [
        {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
        for part in message.with_frames().parts
    ]


def _describe(out: Path) -> None:
    """Add the file to ``dataset_info.json`` of its folder, under the stem of its name."""
    path = out.with_name("dataset_info.json")
    try:
        known = read_object(read_regular(path)) if path.exists() else {}
    except DataError as error:
        raise DataError(f"{out} is written, but not added to {path}: {error}") from error
    known[out.stem] = {
        "file_name": out.name,
        "formatting": "sharegpt",
        "columns": {"messages": "messages", "images": "images"},
        "tags": {
            "role_tag": "role",
            "content_tag": "content",
            "user_tag": "user",
            "assistant_tag": "assistant",
            "system_tag": "system",
        },
    }
    write_text(path, json.dumps(known, indent=2) + "\n")
