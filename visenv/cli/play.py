"""`visenv play ENV`: a person takes the turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from visenv.cli.arguments import DataName, EnvName, Settings, check_at_least
from visenv.cli.screen import open_on_screen
from visenv.makers import env_maker
from visenv.types import Image, Message, StepRecord


@dataclass(frozen=True)
class Play:
    """Play an environment yourself.

    Images are saved, and opened where there is a screen. A turn may have several lines; an empty
    line ends it. What it must begin with is put there for you.
    """

    env: EnvName
    """Id, with or without the namespace."""
    seed: int = 0
    """Seed of the episode."""
    data: DataName = None
    """Data set, for example textvqa:<folder>."""
    option: Settings = field(default_factory=list)
    """An argument of the environment; may be given several times."""
    images: Path = Path("play")
    """Folder the images are saved to."""
    show: bool = True
    """Open each image as well, where there is a screen."""

    def run(self) -> None:
        """Play one episode."""
        check_at_least(0, seed=self.seed)
        env = env_maker(self.env, self.option, self.data)()
        _, info = env.reset(seed=self.seed)
        record: StepRecord = info["step"]
        total, shown = 0.0, 0
        print("An empty line ends your turn, Ctrl-D gives up.\n")
        while record.ask is not None:
            shown = self._print(record.messages, shown)
            text = read_turn(record.ask.prefix)
            if text is None:
                print("You gave up.")
                break
            _, reward, _, _, info = env.step(text)
            record = info["step"]
            total += float(reward)
        else:
            if record.messages:
                self._print(record.messages, shown)
                print()
            _print_result(total, info["truncated_by"] or info["aborted"], record)
        _print_facts("truth", getattr(env.unwrapped, "truth", dict)())
        env.close()

    def _print(self, messages: tuple[Message, ...], shown: int) -> int:
        """Print messages, save their images; return how many images have been shown."""
        spoken = []
        for message in messages:
            pieces = [f"[{message.role}]"]
            for part in message.parts:
                if isinstance(part, Image):
                    shown += 1
                    pieces.append(self._save(part, shown))
                else:
                    pieces.append(part.strip("\n"))
            spoken.append("\n".join(filter(None, pieces)))
        if spoken:
            print("\n\n".join(spoken))
        return shown

    def _save(self, image: Image, number: int) -> str:
        self.images.mkdir(parents=True, exist_ok=True)
        path = self.images / f"image_{number}.png"
        path.write_bytes(image.png())
        if self.show:
            open_on_screen(path)
        width, height = image.size
        return f"({path}, {width} wide and {height} high)"


def read_turn(prefix: str) -> str | None:
    """Read a turn from the terminal.

    Args:
        prefix: What the turn begins with.

    Returns:
        The turn, prefix included; None when the input ended before anything was written.
    """
    print("\n[you]")
    lines: list[str] = []
    while True:
        try:
            line = input("" if lines else prefix)
        except EOFError:
            print("\n")  # the empty line that was not typed
            return prefix + "\n".join(lines) if lines else None
        if line:
            lines.append(line)
        elif lines:
            return prefix + "\n".join(lines)


def _print_result(total: float, cut_short: str, record: StepRecord) -> None:
    print(f"reward {total:.3f}" + f", cut short: {cut_short}" * bool(cut_short))
    _print_facts("reward terms", record.terms)
    _print_facts("metrics", record.metrics)


def _print_facts(title: str, facts: Mapping[str, Any]) -> None:
    if facts:
        print(f"\n{title}")
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        print(f"  {name:{width}}  {f'{value:.3f}' if isinstance(value, float) else value}")
