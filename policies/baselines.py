"""Implements baselines: a model without the agent's steps (Visual-ARFT, arXiv 2505.14246, table 4).

A baseline wraps any policy and plays any environment. It drops the system message, which explains
the tools, adds other instructions to the end of the question, and converts the replies of the
policy to the environment's grammar. The same items are thus scored by the same metrics. Baselines
cannot be trained, because the text that the environment reads differs from the sampled text.

If a turn is a plan of actions (`visenv.grammar.plan`), the wrapped policy writes every plan, and
reads the rules: `DirectPolicy` asks for plans without reasoning, `ChainOfThoughtPolicy` for
reasoning before each plan.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from visenv.baselines import BaselinePrompts
from visenv.errors import ConfigurationError, PolicyError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.grammar.plan import PlanGrammar
from visenv.policy import Policy, Session, TurnDescription
from visenv.registration import load
from visenv.types import (
    Context,
    DescriptionRequest,
    Message,
    Part,
    Reply,
    Sampling,
    TurnRequest,
    all_images,
)

_TAG = re.compile(r"</?[a-z_]+>")
_STOP = "</answer>"
_NUMBER = r"\s*(\d{1,6}(?:\.\d{1,6})?)\s*"
_BOX = re.compile(rf"\[{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}\]")


class BaselineSession(Session):
    """Holds the conversation with the environment, and that with the wrapped policy."""

    def __init__(self, inner: Session) -> None:
        super().__init__()
        self.inner = inner
        self.pending: list[Message] = []
        self._context: Context = "append"

    @property
    def turn(self) -> TurnDescription:
        """Return the environment's description of the next turn.

        Raises:
            PolicyError: If the environment gave none.
        """
        if not isinstance(self.advice, TurnDescription):
            raise PolicyError(
                "A baseline needs the environment's description of the turn, and got none. Play it "
                "with visenv.rollout, which passes Policy.advice_request on to the environment."
            )
        return self.advice

    @override
    def observe(self, messages: Sequence[Message], context: Context = "append") -> None:
        """Store new messages for the next turn."""
        super().observe(messages, context)
        self._context = context
        self.pending += messages

    def tell(self, instruction: str, explain_tools: bool = False) -> None:
        """Send the wrapped policy the new messages, followed by the instruction.

        Args:
            instruction: The instruction of this step.
            explain_tools: Whether to include the system message.
        """
        if not explain_tools:
            self.pending = [message for message in self.pending if message.role != "system"]
        if instruction and self.pending:
            *before, last = self.pending
            parts: tuple[Part, ...] = (*last.parts, f"\n{instruction}")
            self.pending = [*before, last._replace(parts=parts)]
        self.inner.observe(self.pending, self._context)
        self.pending = []


class _Baseline(Policy[BaselineSession]):
    """Is the base class of the baselines, which wrap a policy.

    Args:
        policy: The policy, or the name of a registered policy.
        prompts: The texts for the policy, or the name of a family's texts, a key of
            `visenv.registration.BASELINE_PROMPTS`.
        instruct: Whether the prompt contains instructions. A model that is too small to follow
            instructions gets only the prefill of its turn.
        **options: Options of the policy, if it is given by name.

    Raises:
        ConfigurationError: If there are further options, but the policy is not given by name.
    """

    advice_request = DescriptionRequest()

    def __init__(
        self,
        policy: Policy[Any] | str,
        *,
        prompts: BaselinePrompts | str = "arft",
        instruct: bool = True,
        **options: Any,
    ) -> None:
        if options and not isinstance(policy, str):
            raise ConfigurationError(
                f"A baseline has the options prompts and instruct; got {sorted(options)}, which "
                "are only valid if the policy is given by name."
            )
        self.policy = load("policy", policy)(**options) if isinstance(policy, str) else policy
        self.prompts: BaselinePrompts = (
            load("baseline prompts", prompts) if isinstance(prompts, str) else prompts
        )
        self.instruct = instruct

    @override
    def open(self, seed: int) -> BaselineSession:
        """Return a session that contains a session of the wrapped policy."""
        return BaselineSession(self.policy.open(seed))

    @override
    async def respond(
        self, session: BaselineSession, request: TurnRequest, sampling: Sampling
    ) -> Reply:
        """Take a turn of the baseline."""
        grammar = session.turn.grammar
        if isinstance(grammar, PlanGrammar):
            text = await self._plan(session, request, sampling, grammar)
        else:
            text = grammar.compose(await self._turn(session, sampling))
        reply = Reply.of_text(text)
        session.said(reply)
        return reply

    @override
    def close(self) -> None:
        self.policy.close()

    @abstractmethod
    async def _turn(self, session: BaselineSession, sampling: Sampling) -> ParsedTurn:
        """Return the turn of the baseline."""

    async def _plan(
        self,
        session: BaselineSession,
        request: TurnRequest,
        sampling: Sampling,
        grammar: PlanGrammar,
    ) -> str:
        """Return the text of a turn that is a plan."""
        raise ConfigurationError(f"{type(self).__name__} cannot write plans; use direct or cot.")

    async def _answer(
        self, session: BaselineSession, sampling: Sampling, instruction: str, prefix: str
    ) -> ParsedTurn:
        """Ask the policy for the answer; a text without answer tags is the answer as a whole."""
        session.tell(instruction if self.instruct else "")
        grammar = session.turn.grammar
        request = TurnRequest(prefix, (_STOP,), grammar.answer_regex(prefix))
        said = (await self.policy.respond(session.inner, request, sampling)).text
        turn = grammar.parse(said)
        if turn.answer is not None and not turn.problems:
            return ParsedTurn(turn.thought, answer=_plain(turn.answer))
        return ParsedTurn(None, answer=_plain(said.rpartition("</think>")[2]))


class DirectPolicy(_Baseline):
    """Answers in the first turn; in plans, all texts are empty."""

    @override
    async def _turn(self, session: BaselineSession, sampling: Sampling) -> ParsedTurn:
        return await self._answer(session, sampling, self.prompts.answer, "<answer>")

    @override
    async def _plan(
        self,
        session: BaselineSession,
        request: TurnRequest,
        sampling: Sampling,
        grammar: PlanGrammar,
    ) -> str:
        session.tell(self.prompts.answer if self.instruct else "", explain_tools=True)
        silent = request._replace(regex=grammar.turn_regex(text_characters=0))
        return (await self.policy.respond(session.inner, silent, sampling)).text


class ChainOfThoughtPolicy(_Baseline):
    """Reasons, then answers; takes no other step."""

    @override
    async def _turn(self, session: BaselineSession, sampling: Sampling) -> ParsedTurn:
        return await self._answer(session, sampling, self.prompts.reason, "<think>")

    @override
    async def _plan(
        self,
        session: BaselineSession,
        request: TurnRequest,
        sampling: Sampling,
        grammar: PlanGrammar,
    ) -> str:
        session.tell(self.prompts.reason if self.instruct else "", explain_tools=True)
        return (await self.policy.respond(session.inner, request, sampling)).text


class RetrievalPolicy(_Baseline):
    """Searches once, then answers from the results (retrieval-augmented generation).

    The query is the question and, if there is an image, the policy's description of the image.
    Without instructions, the query is only the question.
    """

    @override
    async def _turn(self, session: BaselineSession, sampling: Sampling) -> ParsedTurn:
        turn = session.turn
        if "search" not in turn.tools:
            tools = ", ".join(turn.tools) or "none"
            raise ConfigurationError(
                f"The rag policy needs an environment with the tool 'search', got one with: {tools}"
            )
        if turn.turn:
            return await self._answer(session, sampling, self.prompts.answer, "<answer>")
        query = turn.question
        if self.instruct and turn.has_image:
            session.tell(self.prompts.look)
            seen = await self.policy.respond(session.inner, TurnRequest(max_tokens=64), sampling)
            query = f"{query} {_plain(seen.text)}"
        return ParsedTurn(None, (ToolCall("search", {"query": query}),))


class ZoomRefinePolicy(_Baseline):
    """Answers, selects one box, and answers again with that box enlarged (Zoom-Refine).

    The box is enlarged by a tenth, within the image. Without a box, no crop is shown.

    Source: Yu et al., "Zoom-Refine", arXiv 2506.01663.
    """

    @override
    async def _turn(self, session: BaselineSession, sampling: Sampling) -> ParsedTurn:
        turn = session.turn
        if "zoom" not in turn.tools:
            tools = ", ".join(turn.tools) or "none"
            raise ConfigurationError(
                "The zoom-refine policy needs an environment with the tool 'zoom' and its boxes, "
                f"got one with: {tools}"
            )
        if turn.turn:
            return await self._answer(session, sampling, self.prompts.answer, "<answer>")
        images = all_images(session.pending)
        session.tell(self.prompts.look if self.instruct else "")
        said = (await self.policy.respond(session.inner, TurnRequest(), sampling)).text
        box = _grown_box(said, images[0].size) if images else None
        calls = () if box is None else (ToolCall("zoom", {"boxes": [box]}),)
        return ParsedTurn(_plain(_BOX.sub("", said)), calls)


def _grown_box(text: str, size: tuple[int, int]) -> list[int] | None:
    """Return the last box of a text, enlarged by a tenth in total, within the image."""
    found = _BOX.findall(text)
    if not found:
        return None
    left, top, right, bottom = map(float, found[-1])
    across, down = 0.05 * (right - left), 0.05 * (bottom - top)
    return [
        max(0, round(left - across)),
        max(0, round(top - down)),
        min(size[0], round(right + across)),
        min(size[1], round(bottom + down)),
    ]


def _plain(text: str) -> str:
    """Return a text without tags, which a grammar would read as further steps."""
    return _TAG.sub(" ", text).strip()
