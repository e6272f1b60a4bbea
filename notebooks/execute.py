"""Runs the notebooks, and stores them with their outputs (`make notebooks`).

A notebook contains a digest of the code that has produced its outputs. tests/docs/test_notebooks.py
fails if the code has changed since.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat

FOLDER = Path(__file__).parent
VARIES = "varies"
"""The tag of a cell whose output depends on the time or on the rounding of the processor."""

_SECONDS = 1800


def digest(notebook: Any) -> str:
    """Return the SHA-256 of the code cells of a notebook."""
    code = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()


def executed(path: Path, folder: Path) -> Any:
    """Return the notebook with the outputs of a run.

    Args:
        path: The notebook.
        folder: The working folder of the run, which also contains the files of the kernel.

    Raises:
        nbclient.exceptions.CellExecutionError: If a cell raises an exception.
    """
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR"):  # not those of the user
        os.environ[name] = str(folder / name)
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = nbclient.NotebookClient(
        notebook,
        timeout=_SECONDS,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            # Warnings name folders of this machine.
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop("image/jpeg", None)  # the same picture is there as PNG
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "visenv": {"code": digest(notebook)},
    }
    return notebook


def main() -> None:
    """Run the notebooks that are named on the command line, or all."""
    names = sys.argv[1:] or sorted(path.name for path in FOLDER.glob("*.ipynb"))
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(executed(FOLDER / name, Path(folder)), FOLDER / name)


if __name__ == "__main__":
    main()
