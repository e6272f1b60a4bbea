"""Tests the backend for OpenAI-compatible servers, with a real server that fails on purpose."""

from __future__ import annotations

import base64
import io
import json
import logging
import pickle
import socket
from concurrent.futures import wait
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from tests.visenv.scorers.chat_server import Act, Answer, ChatServer, Hang, said
from visenv.errors import ConfigurationError, ServiceError, UnknownNameError
from visenv.scorers import Generate, LogProbs, Scorer, Verdict
from visenv.types import Image, Message

KEY = "sk-very-secret"
HELLO = Generate((Message("user", ("hello",)),))


def openai(server: ChatServer, **options: Any) -> Scorer:
    given: dict[str, Any] = {"model": "m", "base_url": server.url, "retries": 0}
    return Scorer("openai", **given | options)


def answered(scorer: Scorer, request: Any = HELLO) -> Verdict:
    return scorer.submit(request).result()


def test_generate_sends_the_conversation_with_images_as_data_urls(server: ChatServer) -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    talk = (Message("system", ("rules",)), Message("user", ("look", Image.from_pixels(pixels))))
    request = Generate(talk, max_tokens=9, temperature=0.5, seed=3, stop=("END",))
    server.script(said("a reply", "length"))
    verdict = answered(openai(server), request)
    assert verdict.value == {"text": "a reply", "finish_reason": "length"}
    assert verdict.model == "m"
    [body] = server.bodies
    sent = body.pop("messages")
    assert body == {"model": "m", "max_tokens": 9, "temperature": 0.5, "seed": 3, "stop": ["END"]}
    assert sent[0] == {"role": "system", "content": [{"type": "text", "text": "rules"}]}
    url = sent[1]["content"][1]["image_url"]["url"]
    decoded = base64.b64decode(url.removeprefix("data:image/png;base64,"))
    assert np.array_equal(np.asarray(PIL.Image.open(io.BytesIO(decoded))), pixels)
    assert server.paths == ["/v1/chat/completions"]


def test_extra_fields_replace_and_remove(server: ChatServer) -> None:
    extra = {"max_tokens": None, "max_completion_tokens": 7, "top_p": 0.9}
    answered(openai(server, extra=extra))
    [body] = server.bodies
    assert "max_tokens" not in body
    assert (body["max_completion_tokens"], body["top_p"]) == (7, 0.9)


TRANSIENT: dict[str, tuple[Act, str]] = {
    "500": (Answer("oops", 500), "HTTP 500: oops"),
    "503": (Answer("", 503), "HTTP 503: "),
    "429": (Answer("slow down", 429), "HTTP 429: slow down"),
    "html": (Answer("<html>Bad Gateway</html>", content_type="text/html"), "not a chat completion"),
    "truncated JSON": (Answer('{"choices": [{"message": {"content": "ye'), "not a chat completion"),
    "cut connection": (said("x" * 1000)._replace(cut=True), "RemoteProtocolError"),
    "no choices": (Answer('{"choices": []}'), "without choices"),
    "content of another type": (said([{"type": "audio", "data": "x"}]), "not a chat completion"),
    "number": (said(0.7), "not a chat completion"),
    "not UTF-8": (Answer(b"\xff\xfe\x00"), "not a chat completion"),
    "not gzip": (Answer("no gzip" * 99, headers=(("Content-Encoding", "gzip"),)), "DecodingError"),
    "10 MB": (said("x" * 10_000_000), "a response of more than 8,388,608 bytes"),
    "nested": (Answer("[" * 100_000), "not a chat completion"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSIENT)
def test_failures_that_may_pass_are_tried_again(
    server: ChatServer, waits: list[float], name: str
) -> None:
    act, problem = TRANSIENT[name]
    server.script(act, act, said("fine"))
    scorer = openai(server, retries=2)
    assert answered(scorer).value["text"] == "fine"
    assert len(server.bodies) == 3
    server.script(act)
    scorer.close()
    with pytest.raises(ServiceError) as caught:
        answered(scorer)
    assert caught.value.boundary == "openai:m"
    assert caught.value.reason.startswith("no verdict in 3 attempts; the last: ")
    assert problem in caught.value.reason
    assert len(caught.value.reason) < 700
    assert len(waits) == 4


@pytest.mark.parametrize("act", [Hang(), said("late")._replace(pause=60.0)])
def test_server_that_hangs_or_is_too_slow_is_given_up(
    server: ChatServer, waits: list[float], act: Act
) -> None:
    server.script(act)
    reason = r"no verdict in 2 attempts; the last: no answer within 0\.3 s"
    with pytest.raises(ServiceError, match=reason):
        answered(openai(server, retries=1, timeout=0.3))
    assert len(waits) == 1


def test_retry_after_is_honored(server: ChatServer, waits: list[float]) -> None:
    busy = Answer("", 429, (("Retry-After", "7"),))
    server.script(busy, busy._replace(headers=(("Retry-After", "3600"),)), said("fine"))
    assert answered(openai(server, retries=2)).value["text"] == "fine"
    assert waits == [7.0, 60.0]  # at most a minute


@pytest.mark.attack("terminal: text of files and servers is printed without effects")
@pytest.mark.parametrize("status", [400, 503])
def test_body_of_an_error_is_shown_with_escapes(
    server: ChatServer, waits: list[float], status: int
) -> None:
    server.script(Answer("\x1b]0;title\x07\x1b[2J[bold]\u202eno\n\x9b", status))
    with pytest.raises(ServiceError) as error:
        answered(openai(server, retries=1))
    assert r"\x1b]0;title\x07\x1b[2J[bold]\u202eno\n\x9b" in str(error.value)
    assert str(error.value).isprintable()
    assert error.value.reason.isprintable()


@pytest.mark.parametrize("status", [302, 400, 401, 404, 422])
def test_refused_request_is_not_sent_again(server: ChatServer, status: int) -> None:
    server.script(Answer("no such model", status))
    with pytest.raises(ServiceError, match=f"refused the request. HTTP {status}: no such model"):
        answered(openai(server, retries=5))
    assert len(server.bodies) == 1


def test_reply_without_text_is_explained(server: ChatServer) -> None:
    server.script(said(None, "tool_calls"))
    with pytest.raises(ServiceError, match=r"no text \(finish reason 'tool_calls'\)"):
        answered(openai(server, retries=5))


def test_reasoning_that_is_split_off_is_no_missing_reply(server: ChatServer) -> None:
    def split(content: str, finish: str) -> Answer:
        message = {"content": content, "reasoning_content": '{"score": 1}'}
        return Answer(json.dumps({"choices": [{"message": message, "finish_reason": finish}]}))

    server.script(split("", "stop"), split("no", "stop"), split("", "length"))
    # The server took the whole reply for reasoning; then it did not.
    # A request of its own for each reply, because equal requests share a verdict.
    assert answered(openai(server)).value["text"] == '{"score": 1}'
    assert answered(openai(server), replace(HELLO, seed=1)).value["text"] == "no"
    with pytest.raises(ServiceError, match=r"no text \(finish reason 'length'\).*more tokens"):
        answered(openai(server), replace(HELLO, seed=2))


def test_server_that_is_not_there_is_named(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as taken:  # bound but not listening
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(ServiceError, match="3 attempts; the last: ConnectError"):
            answered(Scorer("openai", model="m", base_url=url, retries=2))


def test_backend_has_no_more_requests_in_flight_than_allowed(server: ChatServer) -> None:
    server.act = lambda path, body: said("x")._replace(pause=0.02)
    scorer = openai(server, max_concurrency=4)
    asks = [Generate((Message("user", (str(number),)),)) for number in range(20)]
    assert len(wait([scorer.submit(each) for each in asks]).done) == 20
    assert server.most_in_flight == 4


def test_lone_surrogate_is_sent_as_a_question_mark(server: ChatServer) -> None:
    answered(openai(server), Generate((Message("user", ("x\udc00y",)),)))
    assert server.bodies[0]["messages"][0]["content"][0]["text"] == "x?y"


# -------------------------------------------------------------------------------------------- keys


@pytest.mark.attack("keys: an API key is read at each request, and never saved, logged or pickled")
def test_key_is_read_from_the_environment_at_each_request(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = openai(server, key_variable="MY_KEY")
    monkeypatch.setenv("MY_KEY", KEY)
    answered(scorer)
    monkeypatch.setenv("MY_KEY", "rotated")
    answered(scorer, Generate((Message("user", ("again",)),)))
    assert server.keys == [f"Bearer {KEY}", "Bearer rotated"]


@pytest.mark.attack("keys: an API key is read at each request, and never saved, logged or pickled")
def test_key_is_nowhere_else(
    server: ChatServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_KEY", KEY)
    scorer = openai(server, key_variable="MY_KEY", cache_dir=tmp_path, retries=1)
    server.script(said("fine"))
    verdict = answered(scorer)
    shown = [repr(scorer), scorer.key, scorer.name, str(verdict)]
    for status in (401, 500):
        server.script(Answer(f"Incorrect API key {KEY} provided.", status))
        with pytest.raises(ServiceError, match=r"Incorrect API key \*\*\* provided") as caught:
            answered(scorer, Generate((Message("user", (str(status),)),)))
        cause: BaseException | None = caught.value
        while cause is not None:
            shown += [repr(cause), str(cause)]
            cause = cause.__cause__ or cause.__context__
    assert caplog.text
    assert not any(KEY in text for text in [*shown, caplog.text])
    scorer.close()
    saved = [file.read_bytes() for file in tmp_path.iterdir()]
    assert not any(KEY.encode() in data for data in [*saved, pickle.dumps(scorer)])


def test_missing_key_is_a_configuration_error(server: ChatServer) -> None:
    with pytest.raises(ConfigurationError, match="variable NO_SUCH_KEY should hold the API key"):
        answered(openai(server, key_variable="NO_SUCH_KEY"))


@pytest.mark.attack("keys: an API key is read at each request, and never saved, logged or pickled")
@pytest.mark.parametrize(
    "options",
    [
        {"api_key": KEY},
        {"key": KEY},
        {"extra": {"headers": {"x-api-key": KEY}}},
        {"extra": {"token": KEY}},
        {"base_url": f"https://user:{KEY}@host/v1"},
        {"extra": {"proxy": [f"http://user:{KEY}@host"]}},
    ],
)
def test_options_that_look_like_secrets_are_refused_and_not_repeated(
    options: dict[str, Any],
) -> None:
    with pytest.raises(ConfigurationError, match=r"a credential.*key_variable") as caught:
        Scorer("openai", **{"model": "m"} | options)
    assert KEY not in str(caught.value)


# ----------------------------------------------------------------------------------------- handles


def test_misspelled_option_is_refused_when_the_handle_is_made() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'base_url'"):
        Scorer("openai", model="m", base_ulr="http://x")
    with pytest.raises(UnknownNameError, match="Did you mean 'openai'"):
        Scorer("open-ai", model="m")
    with pytest.raises(ConfigurationError, match="needs the option 'model'"):
        Scorer("openai")
    with pytest.raises(ConfigurationError, match="must be JSON-like"):
        Scorer("openai", model="m", extra={"x": {1, 2}})
    with pytest.raises(ConfigurationError, match="subclass of ScorerBackend"):
        Scorer("json:dumps")


def test_value_that_an_option_cannot_have_is_refused(server: ChatServer) -> None:
    for options in ({"timeout": 0}, {"retries": -1}, {"max_concurrency": 0}):
        with pytest.raises(ConfigurationError, match=r"Expected|must be at least 0"):
            answered(openai(server, **options))
    with pytest.raises(ConfigurationError, match="base_url must look like"):
        answered(Scorer("openai", model="m", base_url="localhost"))


def test_parse_reads_a_handle_from_one_line() -> None:
    line = "openai:org/m:x?base_url=http://h:1/v1&timeout=30&deterministic=true&cache_dir=/tmp/c"
    assert Scorer.parse(line) == Scorer(
        "openai",
        model="org/m:x",
        base_url="http://h:1/v1",
        timeout=30,
        deterministic=True,
        cache_dir="/tmp/c",
    )
    assert Scorer.parse("encoder").name == "encoder:all-MiniLM-L6-v2"
    assert Scorer.parse("rules:os.path:join").options == {"function": "os.path:join"}
    with pytest.raises(UnknownNameError, match="no scorer called 'opnai'"):
        Scorer.parse("opnai:m")
    with pytest.raises(ConfigurationError, match="option=value"):
        Scorer.parse("openai:m?timeout")


def test_description_makes_the_handle_again() -> None:
    scorer = Scorer("openai", model="m", extra={"top_p": 0.5}, deterministic=True, cache_dir="c")
    again = Scorer.from_description(json.loads(json.dumps(scorer.description())))
    assert again == scorer == pickle.loads(pickle.dumps(scorer))
    assert repr(again) == repr(scorer)


# ------------------------------------------------------------------------------- log-probabilities


def vllm(path: str, body: dict[str, Any]) -> Act:
    """Reply as vLLM does to a prompt that ends with "maybe so": tokens 5 and 6."""
    if path == "/tokenize":
        tokens = {"maybe so": [5, 6], "merged": [7]}[body["prompt"]]
        return Answer(json.dumps({"tokens": tokens, "count": len(tokens)}))
    prompt = [None, {"3": {"logprob": -9.0}}, {"5": {"logprob": -0.1}}, {"6": {"logprob": -0.3}}]
    return said("!", "length", prompt_logprobs=prompt)


def test_log_probs_are_those_of_the_continuation(server: ChatServer) -> None:
    server.act = vllm
    request = LogProbs((Message("user", ("right?",)),), "maybe so")
    assert answered(openai(server), request).value == [-0.1, -0.3]
    chat = next(body for body in server.bodies if "messages" in body)
    assert chat["messages"][-1]["role"] == "assistant"
    assert (chat["continue_final_message"], chat["add_generation_prompt"]) == (True, False)
    assert (chat["prompt_logprobs"], chat["max_tokens"]) == (0, 1)
    assert sorted(server.paths) == ["/tokenize", "/v1/chat/completions"]


def test_log_probs_of_other_tokens_are_refused(server: ChatServer) -> None:
    server.act = vllm
    request = LogProbs((Message("user", ("right?",)),), "merged")
    with pytest.raises(ServiceError, match="do not end with the tokens of the continuation"):
        answered(openai(server), request)


def test_log_probs_need_a_server_that_has_them(server: ChatServer) -> None:
    server.act = lambda path, body: vllm(path, body) if path == "/tokenize" else said("x")
    request = LogProbs((Message("user", ("right?",)),), "maybe so")
    with pytest.raises(ServiceError, match="need vLLM"):
        answered(openai(server), request)
