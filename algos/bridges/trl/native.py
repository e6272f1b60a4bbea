"""An episode whose turns are taken by TRL's own loop, tool call by tool call.

TRL parses what the model wrote, calls a method for each tool call, and stops at a turn without one.
The environment wants whole turns: so each call is stepped as a turn that holds the call alone, and
what TRL had kept back, the thoughts and the final answer, is handed in when the rollout is done.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from visenv.env import VisEnv
from visenv.errors import ConfigurationError, ServiceError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.rollout import Env, EnvAdapter
from visenv.types import Event, EventLog, Failure, Image, Message, StepResult, TurnTaken

from .messages import to_pil

_log = logging.getLogger(__name__)

_OPENING, _CLOSING = "<tool_response>\n", "\n</tool_response>"
_ENDED = "The episode has ended. Give your final answer."

Block = dict[str, Any]


class NativeEpisode:
    """Plays one episode after the other in one environment, for TRL.

    The outermost environment ends an episode, and its rewards count. All reward terms are deferred,
    because a call is stepped without the thought before it: what TRL kept back is put into the log
    first. Rewards that are paid in each step, or that a wrapper changes, do not see the thought of
    a call that ends the episode.

    Args:
        make_env: Makes the environment, a `VisEnv` with `ToolCallGrammar`, wrapped or not.
    """

    def __init__(self, make_env: Callable[[], Env]) -> None:
        self._make_env = make_env
        self._open()
        self._rewards: list[float] = []
        self._calls = 0
        self._over = True
        self._pending: Future[StepResult] | None = None
        self.failure: Failure | None = None

    def begin(self, seed: int, index: int | None) -> list[Block]:
        """Reset the environment, and return what it shows first as content blocks.

        A sample that cannot be read aborts the episode instead of the run. The environment is made
        again after an episode that was aborted.
        """
        if self.failure is not None:
            self._adapter.close()
            self._open()
        self._rewards, self._calls, self._over = [], 0, True
        self._result, self._pending, self.failure = StepResult(), None, None
        options = None if index is None else {"index": index}
        try:
            _, result = self._adapter.begin(seed, options)
        except Exception as error:  # noqa: BLE001 - one bad row must not end a run
            self.failure = Failure.of(error)
            return [{"type": "text", "text": "This task could not be opened."}]
        self._over = False
        return _blocks(result.messages)

    def call(self, name: str, arguments: Mapping[str, Any]) -> str | list[Block]:
        """Take a turn that calls a tool, and return the result of the call."""
        if self._over:
            return _ENDED
        self._calls += 1
        text = self._base.grammar.compose(ParsedTurn(calls=(ToolCall(name, arguments),)))
        shown = _blocks(self._step(text)) or [{"type": "text", "text": _ENDED}]
        texts = [block["text"] for block in shown if block["type"] == "text"]
        return shown if len(texts) < len(shown) else "".join(texts)

    def finish(self, completion: Sequence[Mapping[str, Any]]) -> None:
        """Hand in all that the model wrote, and start what the reward waits for.

        The last turn is stepped unless it was a tool call that has been. An episode that TRL ended
        (its limit of calls or of tokens) is paid what its steps have paid so far.

        Args:
            completion: The messages of the rollout, as TRL hands them to reward functions.
        """
        said = [message for message in completion if message["role"] == "assistant"]
        calls = [(name, turn_text(message)) for message in said for name in _called(message)]
        texts = [text for name, text in calls if name in self._base.tools]
        if self.failure is None:
            self._complete(texts)
        if said and not self._over and (len(texts) > self._calls or not _called(said[-1])):
            try:
                self._step(turn_text(said[-1]))
            except ConfigurationError:
                raise
            except Exception as error:  # noqa: BLE001 - it aborts this episode alone
                _log.warning("An environment failed and is replaced.", exc_info=error)
        if self._result.pending and self.failure is None:
            self._pending = self._adapter.submit_finish()

    def reward(self) -> float | None:
        """Return the reward of the finished episode, or None if it was aborted.

        It waits for deferred reward terms.
        """
        if self._pending is not None:
            try:
                result = self._pending.result()
            except ServiceError as error:
                result = StepResult(failure=Failure.of(error))
            self._rewards[-1], self.failure = result.reward, result.failure
            self._pending = None
        return None if self.failure is not None else sum(self._rewards)

    def _open(self) -> None:
        self._adapter = EnvAdapter(self._make_env(), defer_all=True)
        self._result = StepResult()
        base = self._adapter.env.unwrapped
        assert isinstance(base, VisEnv)
        self._base = base

    def _step(self, text: str) -> tuple[Message, ...]:
        try:
            self._result = result = self._adapter.act(text)
        except Exception as error:
            self._over, self.failure = True, Failure.of(error)
            raise
        self._rewards.append(result.reward)
        self._over, self.failure = result.request is None, result.failure
        return result.messages

    def _complete(self, texts: Iterable[str]) -> None:
        """Put what the turns really said in place of the calls alone: rewards read the log."""
        left = iter(texts)

        def whole(event: Event) -> Event:
            if type(event) is not TurnTaken:
                return event
            text = next(left, event.text)
            return event._replace(text=text, thought=self._base.grammar.parse(text).thought)

        self._base.log = EventLog([whole(event) for event in self._base.log])


def turn_text(message: Mapping[str, Any]) -> str:
    """Return the turn as the model wrote it, from the parts that a response template made."""
    thought = message.get("reasoning_content")
    parts = [f"<think>{thought}</think>"] if thought is not None else []
    parts += [message["content"]] if message.get("content") else []
    for call in message.get("tool_calls") or ():
        function = call.get("function", {})
        written = {"name": function.get("name"), "arguments": function.get("arguments")}
        parts.append(f"<tool_call>\n{json.dumps(written, ensure_ascii=False)}\n</tool_call>")
    return "\n".join(parts)


def _called(message: Mapping[str, Any]) -> list[str]:
    """Return the names of the tools that a message calls."""
    calls = message.get("tool_calls") or ()
    return [str(call.get("function", {}).get("name")) for call in calls]


def _blocks(messages: Sequence[Message]) -> list[Block]:
    """Return messages as content blocks.

    The chat template writes the tags around a tool's result itself. Text that looks like a control
    token is broken by a blank: TRL's tokenization of the prompt would take it for one.
    """
    parts = [part for message in messages for part in (*message.with_frames().parts, "\n\n")][:-1]
    blocks: list[Block] = []
    for part in parts:
        if isinstance(part, Image):
            blocks.append({"type": "image", "image": to_pil(part)})
        elif isinstance(part, str):
            text = part.removeprefix(_OPENING).replace("<|", "< |")
            blocks.append({"type": "text", "text": text})
    for block in reversed(blocks):
        if _CLOSING in block.get("text", ""):
            head, _, tail = block["text"].rpartition(_CLOSING)
            block["text"] = head + tail
            break
    return [block for block in blocks if block["type"] == "image" or block["text"]]
