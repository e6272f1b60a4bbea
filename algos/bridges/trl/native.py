"""Plays an episode whose turns are taken by TRL's own loop, one tool call after another.

TRL parses the output of the model, calls a method for each tool call, and stops at a turn without a
tool call. The environment expects complete turns. Each call is therefore stepped as a turn that
contains only the call. The thoughts and the final answer, which TRL does not pass to tools, are
added when the rollout has ended.
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

from .formats import to_pil

_log = logging.getLogger(__name__)

_OPENING, _CLOSING = "<tool_response>\n", "\n</tool_response>"
_ENDED = "The episode has ended. Give your final answer."

Block = dict[str, Any]


class NativeEpisode:
    """Plays one episode after another in one environment, for TRL.

    The outermost wrapper decides the end and the reward of an episode. All reward terms are
    deferred until the thoughts have been added to the log, because a call is stepped without its
    thought. Two kinds of rewards do not see the thought of a call that ends the episode: rewards
    that are computed in each step, and rewards that a wrapper changes.

    Args:
        make_env: A function that creates the environment, a `VisEnv` with `ToolCallGrammar`, with
            or without wrappers.
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
        """Reset the environment, and return its first messages as content blocks.

        A sample that cannot be read aborts the episode instead of the run. The environment is
        created again after an aborted episode.
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
        """Add the complete output of the model, and start the computation of the reward.

        The last turn is stepped, unless it was a tool call that was already stepped. The reward of
        an episode that TRL ended by a limit of calls or tokens is the reward of its steps.

        Args:
            completion: The messages of the rollout, as TRL passes them to reward functions.
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

        The call waits for deferred reward terms.
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
        """Replace the turns with only a call by the complete turns in the log of the episode."""
        left = iter(texts)

        def whole(event: Event) -> Event:
            if type(event) is not TurnTaken:
                return event
            text = next(left, event.text)
            return event._replace(text=text, thought=self._base.grammar.parse(text).thought)

        self._base.log = EventLog([whole(event) for event in self._base.log])


def turn_text(message: Mapping[str, Any]) -> str:
    """Return the text of a turn from the parts into which TRL's response template split it."""
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

    The chat template adds the tags around the result of a tool. Text that looks like a control
    token is split by a space, because TRL would tokenize it as a control token.
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
