"""Implements `visenv play ENV`: a person plays an environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from visenv.cli.arguments import DataName, EnvName, Settings, check_at_least
from visenv.cli.saved_episodes import open_on_screen
from visenv.files import output_folder, replacing
from visenv.makers import env_maker
from visenv.records import known_fields
from visenv.rollout import EnvAdapter
from visenv.terminal import printable, printable_lines
from visenv.types import Image, Message, StepResult


@dataclass(frozen=True)
class PlayCommand:
    """Play an environment yourself.

    Images are saved, and opened if there is a screen. A turn may have several lines; an empty line
    ends it. If a turn must begin with a certain text, it is inserted for you.
    """

    env: EnvName
    """Id (visenv/ may be omitted), module:Id or module:Class."""
    seed: int = 0
    """Seed of the episode."""
    data: DataName = None
    """Data set, for example textvqa:<folder>."""
    option: Settings = field(default_factory=list)
    """An argument of the environment; may be given several times."""
    images: Path = Path("play")
    """Folder to save the images to."""
    show: bool = True
    """Also open each image, if there is a screen."""

    def run(self) -> None:
        """Play one episode."""
        check_at_least(0, seed=self.seed)
        adapter = EnvAdapter(env_maker(self.env, self.option, self.data)())
        episode, result = adapter.begin(self.seed)
        total, shown = 0.0, 0
        print("An empty line ends your turn, Ctrl-D gives up.\n")
        while result.request is not None:
            shown = self._print(result.messages, shown)
            text = read_turn(result.request.prefill)
            if text is None:
                print("You gave up.")
                break
            result = adapter.act(text)
            if result.pending:
                result = adapter.finish()
            total += result.reward
        else:
            if result.messages:
                self._print(result.messages, shown)
                print()
            _print_result(total, result)
        answers = {"question": episode.question, "answers": list(episode.answers)}
        _print_facts("ground truth", {**answers, **known_fields(episode.ground_truth)})
        adapter.close()

    def _print(self, messages: tuple[Message, ...], shown: int) -> int:
        """Print messages and save their images; return the number of images shown so far."""
        spoken = []
        for message in messages:
            pieces = [f"[{message.role}]"]
            for part in message.with_frames().parts:
                if isinstance(part, Image):
                    shown += 1
                    pieces.append(self._save(part, shown))
                elif isinstance(part, str):
                    pieces.append(part.strip("\n"))
            spoken.append("\n".join(filter(None, pieces)))
        if spoken:
            print(printable_lines("\n\n".join(spoken)))
        return shown

    def _save(self, image: Image, number: int) -> str:
        path = output_folder(self.images) / f"image_{number}.png"
        with replacing(path) as partial:
            partial.write_bytes(image.png())
        if self.show:
            open_on_screen(path)
        width, height = image.size
        return f"({path}, {width} wide and {height} high)"


def read_turn(prefix: str) -> str | None:
    """Read a turn from the terminal.

    Args:
        prefix: The beginning of the turn, which the environment requires.

    Returns:
        The turn, including the prefix, or None if the input ended before any text was written.
    """
    print("\n[you]")
    lines: list[str] = []
    while True:
        try:
            line = input("" if lines else printable_lines(prefix))
        except EOFError:
            print("\n")  # the empty line that the player did not type
            return prefix + "\n".join(lines) if lines else None
        if line:
            lines.append(line)
        elif lines:
            return prefix + "\n".join(lines)


def _print_result(total: float, result: StepResult) -> None:
    reason = result.truncated_by or (result.failure and str(result.failure))
    print(f"reward {total:.3f}" + (f", ended by: {printable(reason)}" if reason else ""))
    _print_facts("reward terms", result.terms)
    _print_facts("metrics", result.metrics)


def _print_facts(title: str, facts: Mapping[str, Any]) -> None:
    if facts:
        print(f"\n{title}")
    shown = {printable(name): value for name, value in facts.items()}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        text = f"{value:.3f}" if isinstance(value, float) else printable_lines(value)
        print(f"  {name:{width}}  {text}")
