"""Implements `visenv judge-check`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro


@dataclass(frozen=True)
class JudgeCheckCommand:
    """Compare a judge with exact ground truth, and try answers that it must reject."""

    judge: Annotated[str, tyro.conf.Positional]
    """module:function; the function takes a Scorer, and returns an async function that scores a
    JudgeItem from 0 to 1.
    """

    scorer: str
    """The model that the judge uses, for example openai:my-model?base_url=http://localhost:8000/v1
    or recorded:replies.jsonl.
    """

    items: Path
    """File with one JSON object per line: question, references, answer, truth, and optionally
    options and images (paths).
    """

    record: Path | None = None
    """Record the model's replies in this file; later runs read the replies from it."""

    threshold: float = 0.5
    """The score from which the judge accepts an answer."""

    def run(self) -> None:
        """Run the judge on the items, and print the shares."""
        from rich.console import Console
        from rich.table import Table

        from visenv import background
        from visenv.cli.failures import check_not_all_failed
        from visenv.registration import load
        from visenv.scorers import Scorer
        from visenv.scorers.evaluation import check_judge, read_items
        from visenv.terminal import rich_text

        scorer = Scorer.parse(self.scorer)
        if self.record is not None:
            scorer = Scorer("recorded", file=str(self.record), inner=scorer.description())
        make: Any = load("scorer", self.judge)
        report = background.run(check_judge(make(scorer), read_items(self.items), self.threshold))
        table = Table(box=None, pad_edge=False, show_header=False)
        for name, share in report.rows():
            table.add_row(rich_text(name), str(share))
        Console().print(table)
        print(f"without a verdict: {report.failed}")
        check_not_all_failed(
            "requests got no verdict", report.requests, report.failed, report.first_failure
        )
