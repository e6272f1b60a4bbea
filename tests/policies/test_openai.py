"""Tests `OpenAIPolicy` with a real HTTP server on the loopback interface that fails as scripted."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
import pickle
import re
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import PIL.Image
import pytest
from typing_extensions import override

from visenv.errors import ConfigurationError, PolicyError
from visenv.policies.openai import OpenAIPolicy
from visenv.rollout import EpisodeSpec, play
from visenv.testing import toy
from visenv.types import Image, Message, Reply, Sampling, TurnRequest

KEY = "sk-very-secret"


class Answer(NamedTuple):
    """Holds the server's response to one request."""

    body: str
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


class Hang(NamedTuple):
    """Makes the server send nothing until the test is over."""


class Drop(NamedTuple):
    """Makes the server close the connection without a response."""


Act = Answer | Hang | Drop


def said(content: str | None, finish: str | None = "stop", **choice: Any) -> Answer:
    message = {"role": "assistant", "content": content}
    return Answer(
        json.dumps({"choices": [{"message": message, "finish_reason": finish, **choice}]})
    )


class Server(ThreadingHTTPServer):
    """Follows its script, one entry per request; records all requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Act] = []
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.paths: list[str] = []
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.before: Callable[[], None] = lambda: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.bodies.append(body)
            self.server.keys.append(self.headers["Authorization"])
            self.server.paths.append(self.path)
            act = self.server.script.pop(0)
        self.server.before()
        if isinstance(act, Hang):
            self.server.over.wait()
        if isinstance(act, Answer):
            self._send(act)

    def _send(self, answer: Answer) -> None:
        content = answer.body.encode()
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.over.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list that records the waits between attempts; no time passes."""
    noted: list[float] = []

    async def note(seconds: float) -> None:
        noted.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", note)
    return noted


def ask_once(
    policy: OpenAIPolicy,
    request: TurnRequest = TurnRequest(),  # noqa: B008  (immutable)
    messages: tuple[Message, ...] = (Message("user", ("hello",)),),
    sampling: Sampling = Sampling(),  # noqa: B008
) -> Reply:
    session = policy.open(0)
    session.observe(messages)
    reply = asyncio.run(policy.respond(session, request, sampling))
    assert session.messages == [*messages, Message("assistant", (reply.text,))]
    return reply


# ---------------------------------------------------------------------------- requests


def test_request_holds_the_conversation_and_the_sampling(server: Server) -> None:
    server.script = [said("<answer>7</answer>")]
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    messages = (
        Message("system", ("rules",)),
        Message("user", ("look: ", Image.from_pixels(pixels), "?")),
    )
    request = TurnRequest(stop=("</tool>", "</answer>"), max_tokens=9)
    reply = ask_once(
        OpenAIPolicy("tiny", server.url + "/"), request, messages, Sampling(0.5, 20, seed=3)
    )
    assert reply.text == "<answer>7</answer>"
    assert reply.finish_reason == "stop"
    assert (len(reply.token_ids), len(reply.logprobs)) == (0, 0)
    [body] = server.bodies
    assert server.paths == ["/v1/chat/completions"]
    assert server.keys == [None]
    sent = body.pop("messages")
    assert body == {
        "model": "tiny",
        "temperature": 0.5,
        "max_tokens": 9,  # the smaller of 20 and 9
        "seed": 3,
        "stop": ["</tool>", "</answer>"],
    }
    assert sent[0] == {"role": "system", "content": [{"type": "text", "text": "rules"}]}
    before, image, after = sent[1]["content"]
    assert (before["text"], after["text"]) == ("look: ", "?")
    url = image["image_url"]["url"]
    decoded = base64.b64decode(url.removeprefix("data:image/png;base64,"))
    assert np.array_equal(np.asarray(PIL.Image.open(io.BytesIO(decoded))), pixels)


def test_extra_fields_win(server: Server) -> None:
    server.script = [said("x")]
    ask_once(OpenAIPolicy("m", server.url, extra={"top_p": 0.9, "seed": None}))
    assert server.bodies[0]["top_p"] == 0.9
    assert "seed" not in server.bodies[0]


@pytest.mark.attack("keys: an API key is read at each request, and never saved, logged or pickled")
def test_key_comes_from_the_environment_at_each_request(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    server.script = [said("a"), said("b")]
    policy = OpenAIPolicy("m", server.url, key_variable="MY_KEY")
    ask_once(policy)
    monkeypatch.setenv("MY_KEY", "rotated")
    ask_once(policy)
    assert server.keys == [f"Bearer {KEY}", "Bearer rotated"]


@pytest.mark.attack("keys: an API key is read at each request, and never saved, logged or pickled")
def test_key_is_not_kept_shown_logged_or_in_errors(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_KEY", KEY)
    server.script = [Answer(f"Incorrect API key {KEY} provided.", 401)]
    policy = OpenAIPolicy("m", server.url, key_variable="MY_KEY")
    with pytest.raises(PolicyError, match=r"HTTP 401: Incorrect API key \*\*\* provided") as caught:
        ask_once(policy)
    shown = [repr(policy), str(policy), repr(caught.value), caplog.text, str(vars(policy.client))]
    assert caplog.text
    assert not any(KEY in text for text in shown)
    assert KEY.encode() not in pickle.dumps(policy)


def test_messages_are_encoded_once_and_a_replaced_context_again() -> None:
    policy = OpenAIPolicy("m")
    session = policy.open(0)
    picture = Image.from_pixels(np.zeros((2, 2, 3), np.uint8))
    message = Message("user", (picture,))
    session.observe([message, message])
    first = session.encoded()
    assert len(first) == 2
    session.said(Reply.of_text("hm"))
    second = session.encoded()
    assert [second[0] is first[0], second[1] is first[1]] == [True, True]
    assert second[2] == Message("assistant", ("hm",)).openai()
    session.observe([Message("user", ("new",))], "replace")
    assert session.encoded() == [Message("user", ("new",)).openai()]


def test_lone_surrogate_is_sent_as_a_question_mark(server: Server) -> None:
    server.script = [said("fine")]
    ask_once(OpenAIPolicy("m", server.url), messages=(Message("user", ("x\udc00y",)),))
    assert server.bodies[0]["messages"][0]["content"][0]["text"] == "x?y"


# ---------------------------------------------------------------------------- prefix


@pytest.mark.parametrize("content", [" so </think>", "<think> so </think>"])
def test_prefilled_text_holds_the_prefix_exactly_once(server: Server, content: str) -> None:
    server.script = [said(content)]
    reply = ask_once(OpenAIPolicy("m", server.url, prefill=True), TurnRequest(prefill="<think>"))
    assert reply.text == "<think> so </think>"
    [body] = server.bodies
    assert body["messages"][-1] == {"role": "assistant", "content": "<think>"}
    assert (body["continue_final_message"], body["add_generation_prompt"]) == (True, False)


def test_prefix_is_not_sent_without_prefill_and_the_reply_is_the_turn(
    server: Server,
) -> None:
    server.script = [said("Straight to it.")]
    reply = ask_once(OpenAIPolicy("m", server.url), TurnRequest(prefill="<think>"))
    assert reply.text == "Straight to it."
    [body] = server.bodies
    assert [message["role"] for message in body["messages"]] == ["user"]
    assert "continue_final_message" not in body


def test_turn_without_prefix_is_not_continued(server: Server) -> None:
    server.script = [said("x")]
    ask_once(OpenAIPolicy("m", server.url, prefill=True))
    assert [message["role"] for message in server.bodies[0]["messages"]] == ["user"]
    assert "continue_final_message" not in server.bodies[0]


# ---------------------------------------------------------------------------- stop strings

STOP = ("</tool>", "</answer>")


@pytest.mark.parametrize(
    ("content", "choice", "whole"),
    [
        # the server keeps the stop string (vLLM: include_stop_str_in_output)
        ("<answer>7</answer>", {}, "<answer>7</answer>"),
        # the server removes the stop string; vLLM names it
        ("<answer>7", {"stop_reason": "</answer>"}, "<answer>7</answer>"),
        ("<tool>\nname: x\n", {"stop_reason": "</tool>"}, "<tool>\nname: x\n</tool>"),
        # vLLM: the model ended the turn itself, by its end token or by another stop token
        ("<answer>7", {"stop_reason": None}, "<answer>7"),
        ("<answer>7", {"stop_reason": 151645}, "<answer>7"),
        # another server: the last tag is open
        ("<answer>7", {}, "<answer>7</answer>"),
        ("<think>I call <tool> now</think><answer>7", {}, None),
        ("<think>I call <answer> now</think><tool>\nname: x\n", {}, None),
        ("no tag at all", {}, "no tag at all"),
        ("", {}, ""),
        # the token limit ended the turn, not a stop string
        ("<answer>7", {"finish_reason": "length"}, "<answer>7"),
    ],
)
def test_stop_strings_are_kept(
    server: Server, content: str, choice: dict[str, Any], whole: str | None
) -> None:
    server.script = [said(content, **({"finish": choice.pop("finish_reason", "stop")} | choice))]
    reply = ask_once(OpenAIPolicy("m", server.url), TurnRequest(stop=STOP))
    tag = "answer" if content.rfind("<answer>") > content.rfind("<tool>") else "tool"
    assert reply.text == (whole if whole is not None else f"{content}</{tag}>")


def test_text_after_a_stop_string_is_cut_where_the_server_ignores_stops(server: Server) -> None:
    server.script = [said("<tool>a</tool><result>made up</result><answer>7</answer>", "length")]
    reply = ask_once(OpenAIPolicy("m", server.url), TurnRequest(stop=STOP))
    assert (reply.text, reply.finish_reason) == ("<tool>a</tool>", "stop")


def test_stop_string_inside_the_prefix_does_not_end_the_turn(server: Server) -> None:
    server.script = [said("b</tool>")]
    request = TurnRequest(prefill="<tool>a</tool><tool>", stop=STOP)
    reply = ask_once(OpenAIPolicy("m", server.url, prefill=True), request)
    assert reply.text == "<tool>a</tool><tool>b</tool>"


def test_tag_that_the_prefix_closes_is_not_closed_again(server: Server) -> None:
    server.script = [said(" and so on")]
    request = TurnRequest(prefill="<tool>a</tool>", stop=STOP)
    reply = ask_once(OpenAIPolicy("m", server.url, prefill=True), request)
    assert reply.text == "<tool>a</tool> and so on"


# ---------------------------------------------------------------------------- replies


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("structured_outputs", ("structured_outputs", "regex")),
        ("guided_regex", ("guided_regex",)),
        ("regex", ("regex",)),
    ],
)
def test_regex_is_sent_in_the_field_of_the_server(
    server: Server, field: Any, path: tuple[str, ...]
) -> None:
    server.script = [said("7</answer>")]
    policy = OpenAIPolicy("m", server.url, prefill=True, regex_field=field)
    ask_once(policy, TurnRequest(prefill="<answer>", regex=r"\d</answer>"))
    sent: Any = server.bodies[0]
    for key in path:
        sent = sent[key]
    assert sent == r"\d</answer>"


def test_regex_covers_the_prefix_without_prefill(server: Server) -> None:
    server.script = [said("<think> (a|b)? 7")]
    policy = OpenAIPolicy("m", server.url, regex_field="regex")
    ask_once(policy, TurnRequest(prefill="<think> (a|b)? ", regex=r"7|8"))
    expression = server.bodies[0]["regex"]
    assert expression == r"<think> \(a\|b\)\? (?:7|8)"
    assert re.fullmatch(expression, "<think> (a|b)? 8")


def test_regex_is_sent_only_if_configured_and_asked(server: Server) -> None:
    server.script = [said("7"), said("7")]
    ask_once(OpenAIPolicy("m", server.url), TurnRequest(regex="7"))
    ask_once(OpenAIPolicy("m", server.url, regex_field="structured_outputs"))
    assert all("structured_outputs" not in body for body in server.bodies)


@pytest.mark.parametrize(
    ("given", "mapped"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "abort"),
        ("abort", "abort"),
        (None, "abort"),
    ],
)
def test_finish_reasons(server: Server, given: str | None, mapped: str) -> None:
    server.script = [said("text", given)]
    assert ask_once(OpenAIPolicy("m", server.url)).finish_reason == mapped


def test_logprobs_are_taken_when_the_server_gives_them(server: Server) -> None:
    content = [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -2.0}]
    server.script = [said("ab", logprobs={"content": content})]
    reply = ask_once(OpenAIPolicy("m", server.url))
    assert reply.logprobs.dtype == np.float32
    assert reply.logprobs.tolist() == [-0.5, -2.0]
    assert reply.token_ids.tolist() == []


@pytest.mark.parametrize("odd", [None, {}, {"content": None}, {"content": [{}]}, [], "x"])
def test_odd_logprobs_are_no_logprobs(server: Server, odd: Any) -> None:
    server.script = [said("ab", logprobs=odd)]
    assert ask_once(OpenAIPolicy("m", server.url)).logprobs.tolist() == []


# ---------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("failure", "problem"),
    [
        (Answer("busy", 500), "HTTP 500: busy"),
        (Answer("", 503), "HTTP 503"),
        (Answer("slow down", 429), "HTTP 429: slow down"),
        (Answer("{not json"), "not a chat completion: the body: Invalid JSON"),
        (Answer("[1, 2]"), "not a chat completion: the body"),
        (said("half a pair: \ud800"), "not a chat completion: the body: Invalid JSON"),
        (Answer('{"choices": [{"message": 7}]}'), "not a chat completion: choices.0.message"),
        (Answer('{"choices": []}'), "a chat completion without choices"),
        # OpenRouter, with the status 200.
        (
            Answer('{"error": {"message": "Rate limit exceeded", "code": 429}, "user_id": "u"}'),
            'the server reported {"message": "Rate limit exceeded"',
        ),
        (Answer('{"choices": null, "error": "overloaded"}'), 'the server reported "overloaded"'),
        (Drop(), "RemoteProtocolError"),
    ],
)
def test_failures_that_may_pass_are_tried_again(
    server: Server, waits: list[float], failure: Act, problem: str
) -> None:
    server.script = [failure, said("fine")]
    assert ask_once(OpenAIPolicy("m", server.url)).text == "fine"
    server.script = [failure, failure]
    expected = f"{re.escape(server.url)}/chat/completions gave no reply in 2 attempts.*"
    with pytest.raises(PolicyError, match=expected + re.escape(problem)):
        ask_once(OpenAIPolicy("m", server.url, retries=1))
    assert len(waits) == 2  # one in each request, none after the last attempt


def test_server_that_hangs_is_asked_again(server: Server, waits: list[float]) -> None:
    server.script = [Hang(), *[said("fine")] * 100]  # on a slow machine, an answer may be too late
    assert ask_once(OpenAIPolicy("m", server.url, timeout=0.3, retries=100)).text == "fine"
    assert waits
    server.script = [Hang(), Hang()]
    with pytest.raises(PolicyError, match=re.escape("no answer within 0.3 s")):
        ask_once(OpenAIPolicy("m", server.url, timeout=0.3, retries=1))


def test_retry_delays_double_with_jitter(server: Server, waits: list[float]) -> None:
    server.script = [Answer("", 500)] * 9
    with pytest.raises(PolicyError, match="9 attempts"):
        ask_once(OpenAIPolicy("m", server.url, retries=8))
    # 0.5 s, doubled each time, at most 60: 0.5, 1, 2, 4, 8, 16, 32, 64, each times 0.5 to 1.
    ceilings = [0.5, 1, 2, 4, 8, 16, 32, 60]
    assert len(waits) == 8
    assert all(0.5 * top <= wait <= top for wait, top in zip(waits[:7], ceilings, strict=False))
    assert 32 <= waits[7] <= 60
    ratios = {round(wait / top, 6) for wait, top in zip(waits[:7], ceilings, strict=False)}
    assert len(ratios) == 7


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("7", 7.0, 7.0),
        ("3600", 60.0, 60.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 60.0, 60.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.25, 0.5),
        ("Wed, 21 Oct 2015 07:28:00 -0000", 0.25, 0.5),
        ("soon", 0.25, 0.5),
        ("-5", 0.25, 0.5),
        ("9" * 40, 0.25, 0.5),
    ],
)
def test_retry_after_is_honored(
    server: Server, waits: list[float], header: str, least: float, most: float
) -> None:
    server.script = [Answer("", 429, (("Retry-After", header),)), said("fine")]
    assert ask_once(OpenAIPolicy("m", server.url)).text == "fine"
    [wait] = waits
    assert least <= wait <= most


@pytest.mark.parametrize("status", [307, 400, 401, 404, 422])
def test_refused_request_is_not_sent_again(server: Server, status: int) -> None:
    server.script = [Answer("no such model", status)]
    with pytest.raises(PolicyError, match=f"refused the request. HTTP {status}: no such model"):
        ask_once(OpenAIPolicy("m", server.url))
    assert len(server.bodies) == 1


def test_long_error_page_is_cut(server: Server) -> None:
    server.script = [Answer("x" * 10_000, 400)]
    with pytest.raises(PolicyError) as caught:
        ask_once(OpenAIPolicy("m", server.url))
    assert len(str(caught.value)) < 500


def test_null_content_gives_the_reason_and_the_remedy(server: Server) -> None:
    server.script = [said(None, "tool_calls")]
    with pytest.raises(PolicyError, match=r"no text \(finish reason 'tool_calls'\).*parsers off"):
        ask_once(OpenAIPolicy("m", server.url))
    assert len(server.bodies) == 1


def test_reply_whose_tokens_were_all_reasoning_is_a_turn_that_was_cut(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.script = [said(None, "length"), said("", "length")]
    policy = OpenAIPolicy("m", server.url)
    for _ in range(2):
        reply = ask_once(policy)
        assert (reply.text, reply.finish_reason) == ("", "length")
    assert caplog.text.count("used all tokens of a turn") == 1


def test_field_of_extra_that_is_none_is_not_sent(server: Server) -> None:
    server.script = [said("fine")]
    extra = {"max_tokens": None, "max_completion_tokens": 512}
    ask_once(OpenAIPolicy("m", server.url, extra=extra))
    (body,) = server.bodies
    assert "max_tokens" not in body
    assert body["max_completion_tokens"] == 512


def test_empty_content_is_a_turn(server: Server) -> None:
    server.script = [said("")]
    assert ask_once(OpenAIPolicy("m", server.url)).text == ""


def test_refused_connection_is_named(waits: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as taken:  # bound but not listening: reserves the port
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(PolicyError, match="3 attempts; the last: ConnectError"):
            ask_once(OpenAIPolicy("m", url, retries=2))
    assert len(waits) == 2


def test_failing_server_aborts_the_episode(server: Server, waits: list[float]) -> None:
    server.script = [said("noise"), Answer("down", 500)]
    env = gym.make(toy.register())
    policy = OpenAIPolicy("m", server.url, retries=0)
    episode = asyncio.run(play(env, policy, EpisodeSpec(0)))
    assert episode.status == "aborted"
    assert episode.failure is not None
    assert (episode.failure.source, episode.failure.name) == ("policy", "PolicyError")
    assert "HTTP 500: down" in episode.failure.reason
    assert episode.reward == 0.0


# ---------------------------------------------------------------------------- concurrency


def test_policy_plays_an_episode(server: Server) -> None:
    policy = OpenAIPolicy("m", server.url)
    server.script = [said("<think></think><answer>-1")]
    episode = asyncio.run(play(gym.make(toy.register()), policy, EpisodeSpec(0)))
    assert episode.status == "terminated"
    assert episode.turns[0].text == "<think></think><answer>-1</answer>"


@pytest.mark.parametrize("limit", [1, 3])
def test_policy_sends_no_more_requests_than_the_limit(server: Server, limit: int) -> None:
    meeting = threading.Barrier(limit)
    present, most = 0, 0

    def count() -> None:
        nonlocal present, most
        with server.lock:
            present += 1
            most = max(most, present)
        meeting.wait(timeout=60)  # passes only when `limit` requests are in flight at once
        with server.lock:
            present -= 1

    server.before = count
    server.script = [said("x")] * (3 * limit)
    policy = OpenAIPolicy("m", server.url, concurrency=limit)

    async def all_at_once() -> None:
        sessions = [policy.open(0) for _ in range(3 * limit)]
        await asyncio.gather(
            *(policy.respond(each, TurnRequest(), Sampling()) for each in sessions)
        )

    asyncio.run(all_at_once())
    assert most == limit


def test_policy_works_in_several_event_loops_and_pickles(server: Server) -> None:
    server.script = [said("x")] * 6
    policy = OpenAIPolicy("m", server.url, concurrency=1)

    async def twice() -> None:
        sessions = [policy.open(0) for _ in range(2)]
        await asyncio.gather(
            *(policy.respond(each, TurnRequest(), Sampling()) for each in sessions)
        )

    asyncio.run(twice())
    asyncio.run(twice())
    policy = pickle.loads(pickle.dumps(policy))
    asyncio.run(twice())
    assert len(server.bodies) == 6


# ---------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"retries": -1},
        {"concurrency": 0},
        {"regex_field": "guided"},
        {"base_url": "localhost:8000"},
        {"base_url": "ftp://host/v1"},
        {"base_url": "http://user:pass@host/v1"},
        {"base_url": "http://host/v1?key=secret"},
        {"key_variable": "NOBODY_SET_THIS_VARIABLE"},
    ],
)
def test_options_that_are_invalid_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        OpenAIPolicy("m", **options)
    assert "pass@" not in str(caught.value)
    assert "secret" not in str(caught.value)
