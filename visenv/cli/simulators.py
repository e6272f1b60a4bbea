"""Implements `visenv simulators install`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg


@dataclass(frozen=True)
class SimulatorsCommand:
    """Install the simulators in their own virtual environment, or list them.

    The simulators need an older NumPy than visenv. Environments find the virtual environment
    automatically if it is in its default folder. Otherwise the environment variable
    VISENV_SIMULATORS must contain the path of its Python interpreter.
    """

    action: Annotated[Literal["install", "list"], Positional, arg(metavar="ACTION")]
    """install, or list (as in visenv doctor)."""
    folder: Path | None = None
    """The virtual environment; by default ~/.local/share/visenv/simulators."""
    torch_index: str | None = None
    """The package index for the CPU build of PyTorch."""

    def run(self) -> None:
        """Install or list the simulators.

        Raises:
            RunError: If a package cannot be installed.
        """
        from visenv.cli.doctor import print_simulators
        from visenv.simulators.install import install
        from visenv.simulators.settings import INTERPRETER_VARIABLE, default_folder

        if self.action == "list":
            print_simulators()
            return
        folder = self.folder or default_folder()
        python = install(folder.absolute(), self.torch_index)
        print(f"simulators run with {python}")
        if folder != default_folder():
            print(f"environments need: export {INTERPRETER_VARIABLE}={python}")
