"""Tests judges: prompts with images, strict reading, and retries after unreadable replies."""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import Any

import numpy as np
import pytest

from tests.visenv.scorers.chat_server import Answer, ChatServer, Hang, said
from tests.visenv.scorers.doubles import BATCHES
from visenv import background
from visenv.errors import ConfigurationError, ServiceError
from visenv.scorers import JsonScore, Judge, Scorer, YesNo
from visenv.types import Image, Message

PROMPT = 'Is {answer} right for {question}? Reply {{"score": 0.5}}.'
PICTURE = Image.from_pixels(np.zeros((2, 2, 3), np.uint8))


def judge_of(server: ChatServer, **options: Any) -> Judge[float]:
    scorer = Scorer(
        "openai", model="m", base_url=server.url, retries=0, timeout=options.pop("timeout", 60.0)
    )
    return Judge(scorer, PROMPT, JsonScore(), **options)


def ask(judge: Judge[Any], **fields: Any) -> Any:
    return background.run(judge.ask(**({"answer": "4", "question": "2 + 2"} | fields)))


def test_ask_returns_the_value_of_the_reply(server: ChatServer) -> None:
    server.script(said('{"score": 0.75}'))
    assert ask(judge_of(server, system="Be fair.", max_tokens=9)) == 0.75
    [body] = server.bodies
    system, user = body["messages"]
    assert system["content"] == [{"type": "text", "text": "Be fair."}]
    assert user["content"] == [
        {"type": "text", "text": 'Is 4 right for 2 + 2? Reply {"score": 0.5}.'}
    ]
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.0, 0, 9)


def test_messages_hold_images_where_the_prompt_has_their_field() -> None:
    judge = Judge(Scorer("openai", model="m"), "{frames}Is {answer} right?", YesNo())
    frames: list[str | Image] = ["[1 s] ", PICTURE, " [2 s] ", PICTURE, ""]
    assert judge.messages(frames=frames, answer="{x}") == (
        Message("user", ("[1 s] ", PICTURE, " [2 s] ", PICTURE, "Is {x} right?")),
    )


UNREADABLE = {
    "html": "<html>502</html>",
    "fraction": "0.7/1",
    "empty": "",
    "NaN": '{"score": NaN}',
    "nested": '{"score": {"score": 1}}',
    "long": "x" * 5_000_000,
    "prose": "I would say 0.7.",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_reply_that_cannot_be_read_is_asked_for_again_then_fails(
    server: ChatServer, name: str
) -> None:
    bad = said(UNREADABLE[name])
    server.script(bad, bad, said('{"score": 1}'))
    assert ask(judge_of(server)) == 1.0
    assert [body["seed"] for body in server.bodies] == [0, 1, 2]  # so that no cache answers
    assert [body["temperature"] for body in server.bodies] == [0.0, 0.7, 0.7]
    server.script(bad)
    with pytest.raises(ServiceError) as caught:
        ask(judge_of(server, tries=2), answer="5")
    assert caught.value.boundary == "openai:m"
    assert caught.value.reason.startswith("no usable reply in 2 tries; the last: ")
    assert len(caught.value.reason) < 700
    assert len(server.bodies) == 5


def test_question_is_answered_from_the_cache_tries_included(server: ChatServer) -> None:
    server.script(said("hm"), said('{"score": 1}'))
    assert [ask(judge_of(server)) for _ in range(3)] == [1.0] * 3
    assert len(server.bodies) == 2


def test_judge_that_hangs_or_breaks_is_a_service_error(server: ChatServer) -> None:
    server.script(Hang(), Answer("", 500))
    for reason, timeout in (("no answer within 0.2 s", 0.2), ("HTTP 500", 60.0)):
        with pytest.raises(ServiceError, match=reason):
            ask(judge_of(server, timeout=timeout))


def test_scorer_whose_values_are_no_replies_is_a_service_error(tag: str) -> None:
    judge = Judge(
        Scorer("rules", function="tests.visenv.scorers.test_judge:number"), "{answer}", YesNo()
    )
    with pytest.raises(ServiceError, match=r"expected \{'text': \.\.\.\}, got '0.5'"):
        background.run(judge.ask(answer="x"))
    assert BATCHES[tag] == []


def number(request: Any) -> float:
    return 0.5


def by_length(request: Any) -> dict[str, str]:
    return {"text": json.dumps({"score": min(1.0, len(str(request.messages)) / 100)})}


def test_judge_pickles_and_many_are_asked_at_once() -> None:
    scorer = Scorer("rules", function="tests.visenv.scorers.test_judge:by_length")
    judge = Judge(scorer, "{a}", JsonScore())
    again: Judge[float] = pickle.loads(pickle.dumps(judge))
    assert again == judge

    async def several() -> list[float]:
        return await asyncio.gather(*(again.ask(a="x" * number) for number in range(100)))

    scores = asyncio.run(several())
    assert scores == sorted(scores)
    assert scorer.counts().batches < 100


@pytest.mark.parametrize(
    "prompt", ["{", "{}", "{0}", "{a.b}", "{a[0]}", "{a!r}", "{a:>10}", "a } b", "{a b}"]
)
def test_prompt_with_other_than_plain_fields_is_refused(prompt: str) -> None:
    with pytest.raises(ConfigurationError, match=r"prompt"):
        Judge(Scorer("openai", model="m"), prompt, YesNo())


def test_judge_refuses_invalid_fields_and_tries() -> None:
    scorer = Scorer("openai", model="m")
    judge = Judge(scorer, "{question}{answer}", YesNo())
    for fields in ({"question": "q"}, {"question": "q", "answer": "a", "more": "m"}):
        with pytest.raises(ConfigurationError, match=r"fields \['answer', 'question'\], got"):
            judge.messages(**fields)
    with pytest.raises(ConfigurationError, match="at least 1"):
        Judge(scorer, "", YesNo(), tries=0)
