# ruff: noqa: E402 - threads and path must be set before the imports
"""Measures how exact the padded computation and vLLM are for a tiny model of each family.

The models are those of the tests (`tests/policies/transformers/families.py`): real architectures
with random weights in float32. Without num2words, SmolVLM is left out. `--write` replaces the table
of docs/models.md.

    python benchmarks/model_families.py --write
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import sys
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.policies.transformers import families
from tests.policies.transformers.tiny_families import proof
from tests.policies.vllm.conftest import SMALL
from tests.policies.vllm.prompts import read_by_vllm
from visenv.policies.transformers import TransformersPolicy
from visenv.policies.vllm import VLLMPolicy

PAGE = ROOT / "docs/models.md"
BEGIN, END = (
    "<!-- table: python benchmarks/model_families.py --write -->\n",
    "<!-- end of table -->\n",
)
COLUMNS = (
    "type", "kind", "first turn", "sampled", "scored", "padded", "gradient", "other pixels",
    "vLLM reads", "vLLM samples",
)  # fmt: skip
HEAD = f"| {' | '.join(COLUMNS)} |\n|---|---|---{'|--:' * 5}|---|--:|\n"


def row(name: str, folder: Path) -> str:
    """Return the row of a family.

    Args:
        name: A key of `families.FAMILIES`.
        folder: A new folder for its checkpoint.
    """
    families.build(name, folder)
    policy = TransformersPolicy(folder, threads=1)
    sessions = proof.converse(policy)
    found, expected = proof.first_tokens(policy, sessions[0])
    differences = proof.score_differences(policy, folder, sessions)
    gradient = proof.gradient_difference(policy, folder, sessions)
    change = proof.pixel_change(policy, sessions)
    numbers = [*differences, gradient.largest]
    about = (families.FAMILIES[name].__doc__ or "").partition(": ")[2].rstrip(".")
    cells = [f"`{name}`", about, "equal" if found == expected else "DIFFERS"]
    cells += [*(f"{number:.1e}" for number in numbers), f"{change:.2f}"]
    cells += [tokens_in_vllm(folder, sessions), difference_in_vllm(folder, policy)]
    return f"| {' | '.join(cells)} |\n"


def tokens_in_vllm(folder: Path, sessions: Sequence[Any]) -> str:
    """Return whether vLLM's processor reads conversations as visenv; ``"-"`` if it fails."""
    try:
        prompts = read_by_vllm(folder, sessions)
    except Exception as error:  # noqa: BLE001 - whatever vLLM raises
        print(f"vLLM's processor fails: {error!r}", file=sys.stderr)
        return "-"
    return "equal" if all(found == expected for found, expected in prompts) else "DIFFERS"


def difference_in_vllm(folder: Path, policy: TransformersPolicy) -> str:
    """Return the largest difference of vLLM's log-probabilities from a forward pass.

    The result is ``"-"`` if vLLM does not sample the model on a CPU, reads other tokens, or changes
    the class of transformers in this process so that there is no stock model to compare with.
    """
    try:
        with closing(VLLMPolicy(folder, **SMALL)) as engine:
            sessions = proof.converse(engine)
        return f"{proof.score_differences(policy, folder, sessions).sampled:.1e}"
    except Exception as error:  # noqa: BLE001 - whatever vLLM raises
        print(f"vLLM does not sample: {error!r}", file=sys.stderr)
        return "-"


def with_table(page: str, table: str) -> str:
    """Return the page with this table between `BEGIN` and `END`."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + table + END + rest.partition(END)[2]


def main() -> None:
    """Print the table; with ``--write``, store it in the page."""
    warnings.simplefilter("ignore")
    table = HEAD
    for name in families.FAMILIES:
        if name == "smolvlm" and find_spec("num2words") is None:
            print("smolvlm is left out: its processor needs num2words", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = row(name, Path(folder))
        print(found, end="", file=sys.stderr, flush=True)
        table += found
    print(table)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(with_table(PAGE.read_text(), table))


if __name__ == "__main__":
    main()
