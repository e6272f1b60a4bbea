"""Defines `TeacherPolicy`, which plays an environment with a documented flaw."""

from __future__ import annotations

from typing import Any

from visenv.advised import AdvisedPolicy
from visenv.teacher import DEFAULT_TEACHER
from visenv.types import TeacherRequest


class TeacherPolicy(AdvisedPolicy):
    """Takes the turns of a teacher of the environment (`visenv.teacher.Teacher`).

    The flaw of an episode depends on the seed of the policy, so that equal seeds give equal
    episodes with every executor.

    Args:
        teacher: The name of the teacher in `VisEnv.teachers`; ``"default"`` is the first teacher of
            each environment.
        strength: The strength of its flaw, 0 or more; 1 is the documented flaw.
        **options: Further options of the teacher.
    """

    name = "teacher"

    def __init__(
        self, teacher: str = DEFAULT_TEACHER, strength: float = 1.0, **options: Any
    ) -> None:
        self.advice_request = TeacherRequest(teacher, strength, options)
