"""Trains with a slow judge, in runs of which some are killed; test_judged.py starts this program.

Arguments: a folder, the number of runs that are not killed, and the names of the points at which
other runs are killed. Every run is a fork of this process, and all runs execute at the same time.
The judge's delays are drawn again in each run, from 0 to 0.3 s; nothing else differs.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch._dynamo  # noqa: F401 - otherwise the first optimizer step loads it in every fork
from typing_extensions import override

from tests.algos import toy
from tests.algos.trainer.kill_points import dying
from visenv.algos.policy_gradient import GRPO
from visenv.algos.trainer import (
    OptimizationConfig,
    RolloutConfig,
    SavingConfig,
    Trainer,
    TrainerConfig,
)
from visenv.algos.trainer import checkpoint as checkpoint_module
from visenv.algos.trainer.episode_sources import SelectionConfig
from visenv.algos.trainer.journal import EpisodeJournal
from visenv.env import EpisodeLimits, VisEnv
from visenv.errors import ServiceError
from visenv.grammar import ParsedTurn
from visenv.grammar.base import Problem
from visenv.policies.transformers.generate import Batcher
from visenv.rewards import RewardContext, RewardTerm, RewardWrapper, of_log
from visenv.types import Event, EventLog, Message, Part, Reply, Sample, Sampling, TurnRequest

LONGEST_DELAY = 0.3
CONFIG = TrainerConfig(
    steps=4,
    rollouts=RolloutConfig(
        prompts_per_step=3,
        num_generations=3,
        max_tokens=3,
        concurrency=4,
        episode_retries=1,
        selection=SelectionConfig(dynamic_sampling=True),
    ),
    optimization=OptimizationConfig(learning_rate=0.02, num_minibatches=2),
    saving=SavingConfig(checkpoint_every=1, keep_checkpoints=1, episodes_every=1),
)


class Letters:
    """Accepts one capital letter as the answer; the error message of any other turn is ``a``."""

    stop: tuple[str, ...] = ()
    result_prefix = "image_"

    def parse(self, text: str) -> ParsedTurn:
        if len(text) == 1 and text.isupper():
            return ParsedTurn(answer=text)
        return ParsedTurn(problems=(Problem("no_capital", "a"),))

    def compose(self, turn: ParsedTurn) -> str:
        return turn.answer or ""

    def render(self, parts: Sequence[Part], names: Sequence[str]) -> tuple[Part, ...]:
        return tuple(parts)

    def render_error(self, message: str) -> tuple[Part, ...]:
        return (message,)

    def instructions(self, tools: Sequence[Any]) -> str:
        return ""

    def answer_regex(self, prefix: str) -> str:
        return "[A-D]"


class Capitals(VisEnv):
    """Asks for the capital of a letter, in at most three turns, of which some fail once."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(source=Alphabet(), grammar=Letters(), limits=EpisodeLimits(3))
        self._judge = judge

    @override
    def initial_messages(self) -> list[Message]:
        return [Message("user", (self.sample.question,))]

    @override
    def turn_request(self) -> TurnRequest:
        return TurnRequest()

    @override
    def turn_events(self, turn: ParsedTurn) -> tuple[Event, ...]:
        if turn.answer is None:
            self._judge.fail_once(self.sample, self.log)
        return ()

    @override
    def task_score(self) -> float:
        return float(self.log.answer in self.sample.answers)

    @override
    def metrics(self) -> dict[str, float]:
        return {"turns": float(len(self.log.turns))}


class Alphabet:
    """Draws letters as samples with unique ids."""

    def sample(self, rng: np.random.Generator) -> Sample:
        letter = toy.LETTERS[int(rng.integers(4))]
        return Sample(f"{letter}{rng.integers(10**9)}", letter, (), (letter.upper(),))


class Judge:
    """Scores episodes 0 or 1; fails at every request for some episodes, and once for others."""

    def __init__(self) -> None:
        self.asked: Counter[bytes] = Counter()
        self.delay = random.Random(int.from_bytes(os.urandom(8)))

    def ask(self, key: bytes) -> int:
        """Count a request for `key` and return the number of requests so far."""
        self.asked[key] += 1
        return self.asked[key]

    async def __call__(self, context: RewardContext) -> float:
        key, is_long = _key(context.sample, context.log)
        asked, mark = self.ask(key), zlib.crc32(key)
        await asyncio.sleep(self.delay.uniform(0, LONGEST_DELAY))
        if is_long and (mark % 5 == 0 or (mark % 5 == 1 and asked == 1)):
            raise ServiceError("judge", f"away for {mark}")
        return float(mark % 2)

    def fail_once(self, sample: Sample, log: EventLog) -> None:
        """Raise a `ServiceError` during a turn of some episodes, once for each."""
        key, is_long = _key(sample, log)
        if is_long and zlib.crc32(key) % 7 == 0 and self.ask(b"turn" + key) == 1:
            raise ServiceError("memory", "away")


def _key(sample: Sample, log: EventLog) -> tuple[bytes, bool]:
    """Return the sample id and all turn texts, and whether group members rarely share them."""
    texts = [turn.text for turn in log.turns]
    return repr((sample.id, texts)).encode(), sum(map(len, texts)) > 3


class Request(NamedTuple):
    """Holds a turn to sample and the list that receives the reply."""

    session: toy.ToySession
    sampling: Sampling
    replies: list[Reply]


class BatchedPolicy(toy.ToyPolicy):
    """Samples in batches, with rounding that depends on batch shape and position, as on a GPU."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._batcher = Batcher[Request](self._sample, size=3)

    @override
    async def respond(
        self, session: toy.ToySession, request: TurnRequest, sampling: Sampling
    ) -> Reply:
        asked = Request(session, sampling, [])
        await self._batcher.submit(asked)
        return asked.replies[0]

    def _sample(self, batch: Sequence[Request]) -> None:
        for place, each in enumerate(batch):
            rounding = 1e-4 * (len(batch) + 10 * place)
            each.replies.append(self.say(each.session, each.sampling, rounding))


def _right(log: EventLog, sample: Sample) -> float:
    return float(log.answer in sample.answers)


def train(folder: Path, resume: bool = False) -> Judge:
    judge = Judge()
    terms = (RewardTerm("right", 0.5, of_log(_right)), RewardTerm("judged", 1.0, judge))

    def make_env() -> Any:
        return RewardWrapper(Capitals(judge), terms)

    trainer = Trainer(BatchedPolicy(), GRPO(), CONFIG, folder=folder, resume=resume)
    trainer.train(make_env)
    return judge


def points() -> dict[str, Callable[[], None]]:
    """Return the points at which a run is killed, as functions that install the kill, by name."""
    return {
        "at the first verdict": dying(Judge, "ask", 1),
        "among verdicts": dying(Judge, "ask", 25),
        "noting an episode": dying(EpisodeJournal, "_write", 14, after=True),
        "having decided what to learn from": dying(EpisodeJournal, "_decide", 2, after=True),
        "learning": dying(toy.Scorer, "forward", 5),
        "saving a checkpoint": dying(checkpoint_module, "publish", 3),
    }


def start(folder: Path, resume: bool = False, install: Callable[[], None] | None = None) -> int:
    """Fork a process that runs the training and return its id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        if install is not None:
            install()
        judge = train(folder, resume)
        # If two episodes had the same key, the one that the judge fails could differ between runs.
        assert max(judge.asked.values()) <= 2, judge.asked.most_common(3)
        status = 0
    except Exception:  # noqa: BLE001 - a fork must not continue with the parent's program
        traceback.print_exc()
    finally:
        os._exit(status)


def main() -> None:
    folder, count, names = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    straight = [start(folder / f"straight {number}") for number in range(count)]
    killed = {name: start(folder / name, install=points()[name]) for name in names}
    for name, child in killed.items():
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), f"nothing died {name}"
    _check_journals([folder / name for name in names])
    resumed = [start(folder / name, resume=True) for name in names]
    for child in (*straight, *resumed):
        assert os.waitpid(child, 0)[1] == 0


def _check_journals(folders: Sequence[Path]) -> None:
    """Check that no killed run recorded an episode before its judge had returned a score.

    The other runs still execute, and remove the journals of finished steps.
    """
    paths = [path for folder in folders for path in folder.glob("journal/*/episodes_*")]
    assert paths
    for path in paths:
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                assert json.loads(line)["terms"]["judged"] in (0.0, 1.0), path


if __name__ == "__main__":
    main()
