"""Implements `visenv doctor`, and `visenv simulators install`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg


@dataclass(frozen=True)
class DoctorCommand:
    """Show the installed packages, the isolation of model-written code, and the simulators.

    The exit status is 1 if OpenCV cannot be imported. The packages of each extra are listed; it is
    no error if they are missing.

    Each layer of the isolation is tested, and then test programs try forbidden operations. If one
    of them succeeds, the exit status is 1, and environments that run code refuse to start.
    Simulators, their interpreter and OpenGL are listed; it is no error if they are missing.

    With --model, a checkpoint is examined instead, without its weights: its family, its chat
    template, the backend of its image processor, where it can be sampled and trained, and its
    memory. The exit status is 1 if a policy would refuse it.
    """

    model: str = ""
    """Examine this checkpoint: a folder or a hub name."""

    isolation: Literal["auto", "namespaces", "landlock"] = "auto"
    """Use the strongest isolation that is available, or test this one."""

    def run(self) -> None:
        """Run the tests and print the results.

        Raises:
            ConfigurationError: If OpenCV cannot be imported, programs cannot be isolated here, or a
                forbidden operation was possible.
            RunError: If there is no such checkpoint.
            PolicyError: If the checkpoint is not supported.
        """
        if self.model:
            print_model(self.model)
            return
        from rich.console import Console
        from rich.table import Table

        from visenv.errors import ConfigurationError
        from visenv.sandbox.examination import examine

        print_packages()
        found = examine(self.isolation)
        table = Table("sandbox", "", "", box=None, pad_edge=False, show_header=False)
        for layer, there, detail in found.layers:
            table.add_row(layer, "granted" if there else "refused", detail)
        table.add_section()
        for name, held in found.checks:
            table.add_row(f"check: {name}", "ok" if held else "FAILED", "")
        Console().print(table)
        broken = [name for name, held in found.checks if not held]
        if found.refusal or broken:
            raise ConfigurationError(
                found.refusal or f"The sandbox does not hold: {', '.join(broken)}."
            )
        print(f"programs run in isolation by: {found.mode}\n")
        print_simulators()


def print_packages() -> None:
    """Print the state of OpenCV, and the extras with their missing packages.

    Raises:
        ConfigurationError: If OpenCV cannot be imported.
    """
    from importlib.util import find_spec

    from rich.console import Console
    from rich.table import Table

    from visenv.errors import ConfigurationError
    from visenv.packages import EXTRAS, OPENCV_PACKAGES, installed_packages

    table = Table("packages", "", "", box=None, pad_edge=False, show_header=False)
    problem: ConfigurationError | None = None
    try:
        from visenv.opencv import cv2  # noqa: F401  whether it can be imported
    except ConfigurationError as error:
        problem = error
    sources = installed_packages(OPENCV_PACKAGES)
    named = " and ".join(f"{name} {number}" for name, number in sources.items())
    detail = f"from {named}" if named else f"none of {', '.join(OPENCV_PACKAGES)} is installed"
    if len(sources) > 1:
        detail += ", which contain the same files: removing one of them damages the other"
    table.add_row("OpenCV", "FAILED" if problem else "there", detail)
    for extra, names in EXTRAS.items():
        missing = [name for name in names if find_spec(name) is None]
        detail = f"without {', '.join(missing)}: pip install 'visenv[{extra}]'" if missing else ""
        table.add_row(f"extra {extra}", "missing" if missing else "there", detail)
    Console().print(table)
    if problem:
        raise problem
    print()


def print_simulators() -> None:
    """Print the installed simulators."""
    from rich.console import Console
    from rich.table import Table

    from visenv.simulators.survey import survey

    table = Table("simulators", "", "", box=None, pad_edge=False, show_header=False)
    for finding in survey():
        table.add_row(finding.name, "there" if finding.there else "missing", finding.detail)
    Console().print(table)


def print_model(model: str) -> None:
    """Print the properties of a checkpoint.

    Args:
        model: A folder or a hub name.

    Raises:
        RunError: If there is no such checkpoint.
        PolicyError: If it is not supported; what was found before is printed.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from visenv.registration import load

    table = Table("model", "", "", box=None, pad_edge=False, show_header=False)
    try:
        for name, value, detail in load("examination", "model")(model):
            table.add_row(name, value, Text(detail))
    finally:
        Console().print(table)


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
