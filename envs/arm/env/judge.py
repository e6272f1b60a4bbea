"""What the four ARM environments share: a judge looks at responses, uses tools, gives a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from visenv.data.source import Source
from visenv.env import Limits, VisEnv
from visenv.grammar import Call, ParsedTurn, ToolCallGrammar
from visenv.grammar.tool_call import Compat
from visenv.images import fit
from visenv.tools import Tool
from visenv.tools.base import shown
from visenv.types import Image, Message, Part, Sample, TurnRequest

from .. import prompts
from ..ground_truth import JudgingTruth
from ..presets import Preset
from ..rewards import right
from ..samples import candidate_names
from ..tools.crop import original_name
from ..verdicts import verdicts, write_rating, write_verdict


class Judge(VisEnv):
    """Base of the ARM environments; a subclass says what is looked at and what the oracle does.

    Args:
        source: Samples made by `judging_sample`.
        preset: What is shown, and how long an episode is.
        tools: What the policy can call; none makes an episode one turn long.
        compat: ``"arm"`` reads turns and verdicts as the public code does.
        render_mode: See `VisEnv`.
        on_abort: See `VisEnv`.
    """

    ground_truths: ClassVar[tuple[type, ...]] = (JudgingTruth,)
    controls: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
        {"no_tool": {"mode": "no_tool"}}
    )

    def __init__(
        self,
        *,
        source: Source,
        preset: Preset,
        tools: Sequence[Tool[Any]],
        compat: Compat = None,
        render_mode: str | None = None,
        on_abort: Literal["truncate", "raise"] = "truncate",
    ) -> None:
        self.preset = preset
        self.compat = compat
        self._tool_call = ToolCallGrammar(compat)
        limits = Limits(
            turns=preset.turns if tools else 1,
            tool_characters=preset.tool_characters,
            image_pixels=preset.image_pixels,
        )
        super().__init__(
            source=source,
            grammar=self._tool_call,
            tools=tools,
            limits=limits,
            render_mode=render_mode,
            on_abort=on_abort,
        )

    # ------------------------------------------------------------------ hooks of a task

    def pictures(self) -> dict[str, Image]:
        """The images shown at first, by logical name; the sample's own by default."""
        return {
            original_name(place): self.view(image) for place, image in enumerate(self.sample.images)
        }

    def document(self) -> str:
        """What the prompt calls the document, ``""`` where there is none."""
        return ""

    def oracle_calls(self) -> list[Call]:
        """The tool calls that verify the verdict, in order."""
        return []

    # ------------------------------------------------------------------ hooks of VisEnv

    def initial_messages(self) -> list[Message]:
        """Store responses and images under their names, and put the task."""
        sample = self.sample
        names = candidate_names(sample)
        self.store.texts.update(zip(names, self.truth.candidates, strict=True))
        pictures = self.pictures()
        self.store.images.update(pictures)
        tools = list(self.tools.values())
        style, grammar = self.preset.prompt, self._tool_call
        turns = self.limits.turns
        return prompts.opening(style, sample, pictures, self.document(), grammar, tools, turns)

    def turn_request(self) -> TurnRequest:
        """A free turn."""
        return TurnRequest(stop=self.grammar.stop)

    def turn_notice(self) -> tuple[Part, ...]:
        """Before the last turn: that it must answer."""
        return (prompts.ANSWER_NOW,) if self.turns_left == 1 else ()

    def check_turn(self, turn: ParsedTurn) -> str:
        """A call of a tool that does not exist is a malformed turn, like any other such call.

        With ``compat="arm"`` it is a failed call, as in the public code.
        """
        unknown = [call.name for call in turn.calls if call.name not in self.tools]
        if self.compat == "arm" or not unknown:
            return ""
        there = ", ".join(self.tools) or "none"
        return f"There is no tool called {shown(unknown[0])}. Tools: {there}."

    def reject_call(self, call: Call) -> str:
        """The last turn has no tools."""
        return prompts.NO_CALL_LEFT if self.turns_left == 1 else ""

    def task_score(self) -> float:
        """1 for the right verdict."""
        return float(right(self.log, self.sample, self.compat))

    def metrics(self) -> dict[str, float]:
        """``accuracy``, 0 without an answer."""
        return {"accuracy": self.task_score()}

    def oracle_turn(self) -> ParsedTurn:
        """Verify, then give the right verdict."""
        calls = self.oracle_calls() if self.tools else []
        made = len(self.log.tool_calls)
        if made < len(calls) and self.turns_left > 1:
            thought = prompts.verifying(self.preset.prompt)
            return ParsedTurn(thought, calls=(calls[made],))
        return ParsedTurn(self._conclusion(), answer=answer_of(self.sample))

    def _conclusion(self) -> str:
        """The oracle's last thought: what it has seen, and which response says so."""
        fact = self.truth.answer
        (verdict,) = self.sample.answers
        if self.preset.prompt == "brief":
            # Response by response: a small model learns to tell whether two words are alike long
            # before it learns to look a word up.
            right = verdict.replace("True", "1")
            compared = [
                f"{text} {'yes' if str(number) == right else 'no'}"
                for number, text in enumerate(self.truth.candidates, start=1)
            ]
            return f" {', '.join([fact, *compared] if fact else compared)} "
        seen = f"It is {fact}; so" if fact else "So"
        return f" I have seen enough to judge. {seen} the judgment is {verdict}. "

    def random_answer(self, rng: np.random.Generator) -> str:
        """Any verdict, or any rating."""
        if self.truth.rating is not None:
            low, high = self.truth.rating
            return write_rating(int(rng.integers(low, high + 1)))
        return write_verdict(str(rng.choice(verdicts(len(self.truth.candidates)))))

    @property
    def truth(self) -> JudgingTruth:
        """The ground truth of the sample."""
        return self.sample.truth_as(JudgingTruth)

    def view(self, image: Image) -> Image:
        """An image as it is shown."""
        return fit(image, self.preset.image_pixels, self.preset.view_side)


def answer_of(sample: Sample) -> str:
    """The right answer, in the asked form; of a rating, the end of the scale that is right."""
    verdict = sample.answers[0]
    rating = sample.truth_as(JudgingTruth).rating
    if rating is not None:
        low, high = rating
        return write_rating(high if verdict == "True" else low)
    return write_verdict(verdict)
