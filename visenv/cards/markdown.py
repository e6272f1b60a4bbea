"""Writes a card of an environment as Markdown, or shows it in a terminal."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, get_args, get_type_hints

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.table import Table
from typing_extensions import get_original_bases, is_typeddict, override

from visenv.cards.card import EnvCard
from visenv.evaluation.summary import SummaryRow
from visenv.types import Answered, Episode, Image, Malformed, Message, ToolCalled, Turn, Video

_ARGUMENTS = re.compile(r"### Arguments\n.*?(?=\n###|\Z)", re.DOTALL)

_MOST_CHARACTERS = 1500
"""Maximum number of characters of one message; of a longer one, the beginning and the end are
shown.
"""

_ARGUMENT = re.compile(r"^    (\S+):", re.MULTILINE)

_SETTINGS = re.compile(r"^- \*\*`\*\*settings`\*\*:.*\n?(?:  .*\n?)*", re.MULTILINE)


class _WrappedTable(TableElement):
    """Breaks a word that is wider than its column, instead of truncating the word."""

    @override
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                for column in part.columns:
                    column.overflow = "fold"
            yield part


class WrappedMarkdown(Markdown):
    """Renders Markdown with tables whose cells are wrapped and never truncated."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "table_open": _WrappedTable,
    }


def card_markdown(card: EnvCard, picture: str = "") -> str:
    """Return a card as Markdown with one heading of level 1.

    Args:
        card: The card.
        picture: Markdown of a picture, which is placed below the summary.
    """
    summary, _, body = _ARGUMENTS.sub("", card.description).partition("\n\n")
    sections = {
        "": "\n\n".join(filter(None, (summary, picture))),
        "Facts": _table(("fact", "value"), list(card.facts.items())),
        " ": re.sub(r"\n{3,}", "\n\n", body.strip()).replace("### ", "## "),
        "Presets": _presets(card.presets),
        "Reward terms": _terms(card),
        "Scores": _scores(card),
        "Arguments of gym.make": arguments_of(card.maker),
        "An episode of the oracle": _episode(card),
    }
    return "\n\n".join([f"# {card.env_id}", *_sections(sections)]) + "\n"


def _sections(sections: Mapping[str, str]) -> Iterator[str]:
    for title, text in sections.items():
        if text:
            yield f"## {title}\n\n{text}" if title.strip() else text


def _presets(presets: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table with a column for each preset and a row for each field."""
    if not presets:
        return ""
    fields = list(dict.fromkeys(name for preset in presets.values() for name in preset))
    rows = [
        (f"`{field}`", *(_value(preset.get(field)) for preset in presets.values()))
        for field in fields
    ]
    return _table(("field", *(f"`{name}`" for name in presets)), rows)


def _terms(card: EnvCard) -> str:
    if card.top is None:
        return "The reward is the score of the task, from 0 to 1; it has no named terms."
    rows = [(f"`{name}`", f"{weight:g}", summary) for name, weight, summary in card.terms]
    columns = 3 if any(term.summary for term in card.terms) else 2
    header = ("term", "weight", "description")[:columns]
    table = _table(header, [row[:columns] for row in rows])
    return f"With the default options; the largest possible reward is {card.top:g}.\n\n{table}"


def _scores(card: EnvCard) -> str:
    """Return the table of the players' scores, with 95 % intervals."""
    if not card.scores:
        return ""
    names = ["reward", *card.metrics]
    rows = [(player, *_means(row, names)) for player, row in card.scores.items()]
    episodes = max(row.episodes + row.aborted for row in card.scores.values())
    note = (
        f"Means over {episodes} held-out episode{'' if episodes == 1 else 's'} with the default "
        "options, with 95 % intervals. `oracle` knows the ground truth. `random` writes noise and "
        f"random well-formed turns. {card.blind_player}"
    )
    for name, summary in card.teachers.items():
        note += f" `teacher {name}` knows the ground truth and has a flaw: {summary}"
    return f"{note}\n\n{_table(('policy', *(f'`{name}`' for name in names)), rows)}"


def _means(row: SummaryRow, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        mean = row.means.get(name)
        yield "" if mean is None or math.isnan(mean.value) else str(mean)


def _episode(card: EnvCard) -> str:
    if card.problem:
        return f"No episode could be played on the machine that made this card: {card.problem}"
    return "" if card.episode is None else transcript(card.episode)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _value(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "none" if value is None else str(value)


def transcript(episode: Episode) -> str:
    """Return the transcript of an episode as Markdown.

    An image is represented by its size. The middle of long messages is omitted.
    """
    blocks = [f"Seed {episode.seed}, sample `{episode.sample_id}`."]
    for number, turn in enumerate(episode.turns):
        blocks += [_message(each) for each in turn.messages]
        blocks.append(_block(f"Policy, turn {number + 1}", turn.text))
        blocks += _events(turn)
    blocks += [_message(each) for each in episode.closing]
    blocks.append(_end(episode))
    return "\n\n".join(blocks)


def _message(message: Message) -> str:
    parts = [_part(part) for part in message.parts]
    return _block(f"Environment ({message.role})", "\n".join(filter(None, parts)))


def _part(part: str | Image | Video) -> str:
    if isinstance(part, str):
        return part.strip("\n")
    if isinstance(part, Video):
        return f"[video of {len(part.frames)} frames]"
    width, height = part.size
    return f"[image, {width} x {height} pixels]"


def _block(title: str, text: str) -> str:
    half = _MOST_CHARACTERS // 2
    if len(text) > _MOST_CHARACTERS:
        left_out = len(text) - 2 * half
        text = f"{text[:half]}\n[... {left_out:,} characters left out ...]\n{text[-half:]}"
    runs = [len(run) for run in re.findall("~+", text)]
    fence = "~" * max(4, *(run + 1 for run in runs), 0)  # no text can close the fence
    return f"**{title}**\n\n{fence}text\n{text}\n{fence}"


def _events(turn: Turn) -> Iterator[str]:
    """Yield the events of calls and answers, as the environment parsed them."""
    for event in turn.events:
        if isinstance(event, ToolCalled):
            outcome = "succeeded" if event.ok else f"failed: {event.reason}"
            yield f"Event: the call of `{event.tool}` {outcome}."
        elif isinstance(event, Answered):
            yield f"Event: the answer is `{_line(event.answer)}`."
        elif isinstance(event, Malformed):
            yield "Event: the turn is malformed."


def _line(text: str) -> str:
    return " ".join(text.replace("`", "'").split())[:120]


def _end(episode: Episode) -> str:
    answers = ", ".join(f"`{_line(answer)}`" for answer in episode.answers[:4])
    lines = [
        f"- Reward: **{episode.reward:.3f}** ({episode.status}"
        + (f", {episode.end_reason})" if episode.end_reason else ")"),
        f"- Accepted answers: {answers}" if answers else "",
        _facts("Reward terms", episode.terms),
        _facts("Metrics", episode.metrics),
    ]
    return "\n".join(filter(None, lines))


def _facts(title: str, facts: Mapping[str, float | None]) -> str:
    shown = [f"`{k}` {'-' if v is None else f'{v:.3g}'}" for k, v in facts.items()]
    return f"- {title}: {', '.join(shown)}" if shown else ""


def arguments_of(maker: Callable[..., Any]) -> str:
    """Return the arguments of a maker as a Markdown list, or their names if none are documented.

    The fields of a ``**settings: Unpack[...]`` class replace the entry of ``**settings``.
    """
    parameters = inspect.signature(maker).parameters
    documented: list[Any] = [maker]
    settings = parameters.get("settings")
    if settings is not None and settings.kind is settings.VAR_KEYWORD:
        documented += _settings_classes(get_type_hints(maker).get("settings"))
    lists = [_arguments_list(inspect.cleandoc(each.__doc__ or "")) for each in documented]
    if len(documented) > 1:
        lists[0] = _SETTINGS.sub("", lists[0]).rstrip()
    return "\n".join(filter(None, lists)) or "\n".join(f"- **`{name}`**" for name in parameters)


def _settings_classes(annotation: Any) -> list[type]:
    """Return the class in an ``Unpack[...]``, and the settings classes that it extends."""
    found = list(get_args(annotation))
    for each in found:
        found += [base for base in get_original_bases(each) if is_typeddict(base)]
    return found


def _arguments_list(docstring: str) -> str:
    """Return the ``Args:`` section of a Google-style docstring as a Markdown list."""
    _, _, rest = docstring.partition("Args:\n")
    section = re.split(r"\n(?=\S)", rest)[0]
    return inspect.cleandoc(_ARGUMENT.sub(r"- **`\1`**:", section).replace("\n    ", "\n"))
