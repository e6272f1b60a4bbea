"""Defines `TeacherPolicy`, which plays an environment with a documented flaw."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from visenv.policy import Policy, Session
from visenv.teacher import DEFAULT_TEACHER
from visenv.types import Reply, Sampling, TeacherRequest, TurnRequest

from .advised import reply_with_advice


class TeacherPolicy(Policy[Session]):
    """Takes the turns of a teacher of the environment (`visenv.teacher.Teacher`).

    The flaw of an episode depends on the seed of the policy, so that equal seeds give equal
    episodes with every executor.

    Args:
        teacher: The name of the teacher in `VisEnv.teachers`; ``"default"`` is the first teacher of
            each environment.
        strength: The strength of its flaw, 0 or more; 1 is the documented flaw.
        **options: Further options of the teacher.
    """

    def __init__(
        self, teacher: str = DEFAULT_TEACHER, strength: float = 1.0, **options: Any
    ) -> None:
        self.advice_request = TeacherRequest(teacher, strength, options)

    @override
    def open(self, seed: int) -> Session:
        """Return a new session; the flaw of its teacher uses the same seed."""
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        """Take the turn of the teacher.

        Raises:
            PolicyError: If the environment gave no turn.
        """
        return reply_with_advice(session, "teacher")
