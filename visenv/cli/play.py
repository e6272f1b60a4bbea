"""`visenv play ENV`: a person takes the turns."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import tyro

from visenv.makers import env_maker
from visenv.types import Message, StepRecord


@dataclass(frozen=True)
class Play:
    """Play an environment yourself; images are saved, and opened where there is a screen.

    Write a turn and end it with an empty line; what the turn must begin with is put there for you.
    """

    env: tyro.conf.Positional[str]
    """Id, with or without the namespace."""
    seed: int = 0
    """Seed of the episode."""
    data: str | None = None
    """Data set, for example textvqa:<folder>."""
    option: list[str] = field(default_factory=list)
    """Further arguments of the environment, key=value."""
    images: Path = Path("play")
    """Folder the images are saved to."""
    show: bool = True
    """Open each image with the system's viewer as well."""

    def run(self) -> None:
        """Play one episode."""
        env = env_maker(self.env, self.option, self.data)()
        _, info = env.reset(seed=self.seed)
        record: StepRecord = info["step"]
        total, shown = 0.0, 0
        while record.ask is not None:
            shown = self._print(record.messages, shown)
            text = record.ask.prefix + _read_turn(record.ask.prefix)
            _, reward, _, _, info = env.step(text)
            record = info["step"]
            total += float(reward)
        self._print(record.messages, shown)
        print(f"\nReward {total:.3f}   {info['truncated_by'] or info['aborted']}")
        for name, value in {**record.terms, **record.metrics}.items():
            print(f"  {name:12} {value:.3f}")
        print(f"Truth: {getattr(env.unwrapped, 'truth', dict)()}")
        env.close()

    def _print(self, messages: tuple[Message, ...], shown: int) -> int:
        """Print messages, save their images; return how many images have been shown."""
        for message in messages:
            print(f"\n[{message.role}]")
            for part in message.parts:
                if isinstance(part, str):
                    print(part, end="")
                    continue
                shown += 1
                self.images.mkdir(parents=True, exist_ok=True)
                path = self.images / f"image_{shown}.png"
                path.write_bytes(part.png())
                print(f"(image saved as {path})", end="")
                if self.show:
                    _open(path)
            print()
        return shown


def _read_turn(prefix: str) -> str:
    print(f"\n[you] end with an empty line; Ctrl-D gives up\n{prefix}", end="", flush=True)
    lines: list[str] = []
    while True:
        try:
            line = input()
        except EOFError:
            break
        if not line and lines:
            break
        lines.append(line)
    return "\n".join(lines)


def _open(path: Path) -> None:
    """Open the image where the machine has a screen; a server has none, and that is fine."""
    import os
    import subprocess
    import sys

    viewer = "open" if sys.platform == "darwin" else "xdg-open"
    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        subprocess.Popen([viewer, str(path)], stderr=subprocess.DEVNULL)
