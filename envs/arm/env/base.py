"""Defines the base class of all ARM environments: limits, turns, named images, and the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from typing_extensions import override

from visenv.data.source import Source
from visenv.env import EpisodeLimits, VisEnv
from visenv.grammar import ParsedTurn, ToolCall, ToolCallGrammar
from visenv.grammar.tool_call import Compat
from visenv.images import fit
from visenv.tools import Tool
from visenv.tools.base import shown
from visenv.types import Image, Part, TurnRequest

from ..presets import PRESETS, ArmPreset
from ..prompts import ANSWER_NOW, NO_CALL_LEFT, verifying
from ..tools.crop import original_name


class ArmEnv(VisEnv):
    """Implements the parts that all ARM environments share.

    Args:
        source: The samples.
        preset: The settings of images, prompt and limits.
        tools: The tools of the policy; without tools, an episode has one turn.
        compat: ``"arm"`` parses turns as the public code does.
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.

    Attributes:
        last_turn_notice: The notice before the last turn.
    """

    presets: ClassVar[Mapping[str, object]] = PRESETS
    controls: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
        {"no_tool": {"mode": "no_tool"}}
    )
    last_turn_notice: ClassVar[str] = ANSWER_NOW

    def __init__(
        self,
        *,
        source: Source,
        preset: ArmPreset,
        tools: Sequence[Tool[Any]],
        compat: Compat = None,
        render_mode: str | None = None,
        on_abort: Literal["truncate", "raise"] = "truncate",
    ) -> None:
        self.preset = preset
        self.compat = compat
        self._tool_call = ToolCallGrammar(compat)
        limits = EpisodeLimits(
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
        """Return the images shown first, by logical name; by default the sample's own."""
        return {
            original_name(place): self.view(image) for place, image in enumerate(self.sample.images)
        }

    def document(self) -> str:
        """Return the name of the document in the prompt, ``""`` if there is none."""
        return ""

    def oracle_calls(self) -> list[ToolCall]:
        """Return the tool calls that verify the answer, in order."""
        return []

    def oracle_conclusion(self) -> ParsedTurn:
        """Return the oracle's last turn: its observations, and the right answer."""
        raise NotImplementedError

    # ------------------------------------------------------------------ hooks of VisEnv

    @override
    def turn_request(self) -> TurnRequest:
        return TurnRequest(stop=self.grammar.stop)

    @override
    def turn_notice(self) -> tuple[Part, ...]:
        """Return the notice that the next turn is the last one and must answer, or nothing."""
        return (self.last_turn_notice,) if self.turns_left == 1 else ()

    @override
    def check_turn(self, turn: ParsedTurn) -> str:
        """Reject a call of a tool that does not exist, like any other malformed turn.

        With ``compat="arm"`` it is a failed call instead, as in the public code.
        """
        unknown = [call.name for call in turn.calls if call.name not in self.tools]
        if self.compat == "arm" or not unknown:
            return ""
        there = ", ".join(self.tools) or "none"
        return f"There is no tool called {shown(unknown[0])}. Tools: {there}."

    @override
    def reject_call(self, call: ToolCall) -> str:
        """Reject a call in the last turn, which has no tools."""
        return NO_CALL_LEFT if self.turns_left == 1 else ""

    @override
    def metrics(self) -> dict[str, float]:
        """Return ``accuracy``, 0 without an answer."""
        return {"accuracy": self.episode_score}

    @override
    def oracle_turn(self) -> ParsedTurn:
        """Call the tools that verify the answer, then give the right answer."""
        calls = self.oracle_calls() if self.tools else []
        made = len(self.log.tool_calls)
        if made < len(calls) and self.turns_left > 1:
            return ParsedTurn(verifying(self.preset.prompt), calls=(calls[made],))
        return self.oracle_conclusion()

    def view(self, image: Image) -> Image:
        """Return an image scaled to the size at which it is shown."""
        return fit(image, self.preset.image_pixels, self.preset.view_side)
