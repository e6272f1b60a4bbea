"""Measures how long 100,000 rows take to open, and how much memory they need.

    python benchmarks/rows.py

Peers, measured in the same run: the `datasets` library with `load_dataset("json")`, which does not
check that the images exist; and a loop of `json.loads` and `os.path.isfile`, the least work.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROWS = 100_000
PICTURES = 1_000

MEASURED = """
import os, resource, sys, time
{imports}
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
before, start, cpu = resident(), time.perf_counter(), time.process_time()
{opened}
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(len(rows), seconds, cpu, resident() - before, peak - before)
"""

WAYS = {
    "visenv rows:": (
        """
import logging
import visenv.data.user_rows
from visenv.data.open import open_data
logging.disable()
""",
        "rows = open_data('rows:my.jsonl')",
    ),
    "datasets": (
        "from datasets import load_dataset",
        "rows = load_dataset('json', data_files='my.jsonl', split='train')",
    ),
    "json.loads and isfile": (
        "import json",
        """
rows = [json.loads(line) for line in open('my.jsonl')]
assert all(os.path.isfile(row['image']) for row in rows)
""",
    ),
}


def write(folder: Path) -> None:
    """Write the rows and their pictures."""
    import PIL.Image

    (folder / "images").mkdir()
    for number in range(PICTURES):
        color = (number % 256, 0, 0)
        PIL.Image.new("RGB", (64, 64), color).save(folder / "images" / f"{number}.png")
    with (folder / "my.jsonl").open("w", encoding="utf-8") as file:
        for number in range(ROWS):
            row = {
                "id": number,
                "image": f"images/{number % PICTURES}.png",
                "question": f"What is the number on sign {number} in the picture?",
                "answer": str(number),
                "box": [1, 2, 30, 40],
            }
            file.write(json.dumps(row) + "\n")


def main() -> None:
    """Print a line for each way, with ratios to the first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        print(f"{ROWS:,} rows of JSONL, {os.cpu_count()} processors")
        print(f"{'':24}{'s':>8}{'CPU s':>8}{'MB kept':>9}{'MB peak':>9}{'s / visenv':>12}")
        first = 0.0
        for way, (imports, opened) in WAYS.items():
            program = MEASURED.format(imports=imports, opened=opened)
            environment = {**os.environ, "HF_DATASETS_CACHE": str(folder / "cache")}
            done = subprocess.run(
                [sys.executable, "-c", program],
                cwd=folder, env=environment, capture_output=True, text=True, check=True,
            )  # fmt: skip
            count, seconds, cpu, kept, peak = map(float, done.stdout.split())
            assert count == ROWS
            first = first or seconds
            ratio = seconds / first
            print(f"{way:24}{seconds:8.2f}{cpu:8.2f}{kept:9.0f}{peak:9.0f}{ratio:12.2f}")


if __name__ == "__main__":
    logging.disable()
    main()
