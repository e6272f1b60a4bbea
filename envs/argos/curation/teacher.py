"""Defines the teacher that drafts answers and writes traces: a policy that replies to a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from visenv.curation.lines import Row
from visenv.policy import Policy
from visenv.rollout.advice import Advisor
from visenv.types import Image, Message, Part, Sampling, TurnRequest, Video

from .rows import SampleEnv


@dataclass(frozen=True)
class TeacherModel:
    """Requests a single reply from a policy.

    Args:
        policy: Any policy of visenv.
        sampling: The sampling parameters; the seed is replaced.
    """

    policy: Policy[Any]
    sampling: Sampling

    def settings(self) -> dict[str, Any]:
        """Return the sampling parameters."""
        return {
            "temperature": self.sampling.temperature,
            "max_tokens": self.sampling.max_tokens,
        }

    async def write(self, parts: Sequence[Part], seed: int, samples: SampleEnv, row: Row) -> str:
        """Return the reply to one message.

        Args:
            parts: The content of the message.
            seed: The seed of the policy.
            samples: Provides advice for a policy without a model, such as `ScriptedTeacher`.
            row: The row that the message is about.

        Raises:
            PolicyError: If the policy gives no reply.
            DataError: If the sample of the row cannot be read.
        """
        session = self.policy.open(seed)
        session.observe([Message("user", tuple(parts))])
        if self.policy.advice_request is not None:
            advisor = Advisor(self.policy.advice_request, samples.at(row), seed)
            session.advice = advisor.advise()
        sampling = self.sampling._replace(seed=seed)
        return (await self.policy.respond(session, TurnRequest(), sampling)).text


def shown_parts(images: Sequence[Image], times: Sequence[float]) -> list[Part]:
    """Return the images, or one video of them if there are times."""
    return [Video(tuple(images), tuple(times))] if times else list(images)
