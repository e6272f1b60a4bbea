"""Runs whose judge takes its time, some of them killed; started by test_judged.py as a process.

Argument: a folder. Every run is a fork of this process, and all runs go on at the same time. The
delays of the judge are drawn again in each run, from 0 to 0.3 s; nothing else differs.
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
import torch._dynamo  # noqa: F401 - the first optimizer step would load it, in every fork
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
from visenv.policies.transformers.batch import Batcher
from visenv.rewards import RewardContext, RewardTerm, RewardWrapper, of_log
from visenv.types import Event, EventLog, Message, Part, Reply, Sample, Sampling, TurnRequest

LONGEST_DELAY = 0.3
STRAIGHT = 3
CONFIG = TrainerConfig(
    steps=4,
    rollouts=RolloutConfig(
        prompts_per_step=3,
        num_generations=3,
        max_tokens=3,
        concurrency=4,
        episode_retries=1,
        selection=SelectionConfig(dynamic_sampling=True, spare_groups=4, early_groups=1),
    ),
    optimization=OptimizationConfig(learning_rate=0.02, num_minibatches=2),
    saving=SavingConfig(checkpoint_every=1, keep_checkpoints=1, episodes_every=1),
)


class Letters:
    """A turn is an answer if it is one capital; otherwise the policy is shown an ``a``."""

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
    """Say the capital of a letter, in at most three turns; some turns fail at the first time."""

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
    """A source of letters; every sample has an id of its own."""

    def sample(self, rng: np.random.Generator) -> Sample:
        letter = toy.LETTERS[int(rng.integers(4))]
        return Sample(f"{letter}{rng.integers(10**9)}", letter, (), (letter.upper(),))


class Judge:
    """Likes half of all episodes; is away for some of them, for others at the first time alone."""

    def __init__(self) -> None:
        self.asked: Counter[bytes] = Counter()
        self.delay = random.Random(int.from_bytes(os.urandom(8)))

    def ask(self, key: bytes) -> int:
        """Count a question; return how often it was asked."""
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
        """Abort some episodes in the middle, each once."""
        key, is_long = _key(sample, log)
        if is_long and zlib.crc32(key) % 7 == 0 and self.ask(b"turn" + key) == 1:
            raise ServiceError("memory", "away")


def _key(sample: Sample, log: EventLog) -> tuple[bytes, bool]:
    """Return what was said, and whether no two members of a group are likely to say it."""
    texts = [turn.text for turn in log.turns]
    return repr((sample.id, texts)).encode(), sum(map(len, texts)) > 3


class Request(NamedTuple):
    """A turn to be sampled, and a list for the reply."""

    session: toy.ToySession
    sampling: Sampling
    replies: list[Reply]


class BatchedPolicy(toy.ToyPolicy):
    """Samples in batches, and rounds differently in each batch shape and place, as a GPU does."""

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
    """Where to die."""
    return {
        "at the first verdict": dying(Judge, "ask", 1),
        "among verdicts": dying(Judge, "ask", 25),
        "noting an episode": dying(EpisodeJournal, "_write", 14, after=True),
        "having decided what to learn from": dying(EpisodeJournal, "_decide", 2, after=True),
        "learning": dying(toy.Scorer, "forward", 5),
        "saving a checkpoint": dying(checkpoint_module, "publish", 3),
    }


def start(folder: Path, resume: bool = False, install: Callable[[], None] | None = None) -> int:
    """Fork a run; return the id of its process."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        if install is not None:
            install()
        judge = train(folder, resume)
        # A judge that fails once for what two episodes say cannot be the same in two runs.
        assert max(judge.asked.values()) <= 2, judge.asked.most_common(3)
        status = 0
    except Exception:  # noqa: BLE001 - a fork must not go on with its parent's program
        traceback.print_exc()
    finally:
        os._exit(status)


def main() -> None:
    folder = Path(sys.argv[1])
    straight = [start(folder / f"straight {number}") for number in range(STRAIGHT)]
    killed = {name: start(folder / name, install=install) for name, install in points().items()}
    for name, child in killed.items():
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), f"nothing died {name}"
    _check_journals(folder)
    resumed = {name: start(folder / name, resume=True) for name in points()}
    for child in (*straight, *resumed.values()):
        assert os.waitpid(child, 0)[1] == 0


def _check_journals(folder: Path) -> None:
    """No run has noted an episode whose judge had not decided."""
    paths = list(folder.glob("*/journal/step_*/episodes_*.jsonl"))
    assert paths
    for path in paths:
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                assert json.loads(line)["terms"]["judged"] in (0.0, 1.0), path


if __name__ == "__main__":
    main()
