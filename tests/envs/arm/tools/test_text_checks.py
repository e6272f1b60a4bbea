from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.checks import CHECKS, Dialect, check
from visenv.checks.sentences import _loaded
from visenv.envs.arm.tools.text_checks import TextCheckTool, text_check_tools
from visenv.errors import DataError, ToolError, UnknownNameError
from visenv.tools import Store

WORDS = "check_whether_response_word_count_in_range"
TOOLS = text_check_tools()


def store_of(**texts: str) -> Store:
    store = Store()
    store.texts.update(texts)
    return store


def test_text_check_tools_are_19_in_order_and_by_the_papers_names() -> None:
    assert [tool.name for tool in TOOLS] == list(CHECKS)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_text_comes_first_and_then_the_checks_own(tool: TextCheckTool) -> None:
    schema = tool.arguments.model_json_schema()
    assert list(schema["properties"]) == ["response", *CHECKS[tool.name].arguments.model_fields]
    assert schema["required"] == list(schema["properties"])
    assert all(field["description"] for field in schema["properties"].values())


def test_tool_returns_the_verdict_of_the_check() -> None:
    store = store_of(text_0="one two", text_1="one two three")
    arguments = {"lower_bound": 1, "upper_bound": 2}
    tool = TextCheckTool(WORDS)
    kept = tool.run({"response": "text_0", **arguments}, store)
    broken = tool.run({"response": "text_1", **arguments}, store)
    assert (kept.parts, dict(kept.detail)) == (("Check result: True",), {"result": True})
    assert (broken.parts, dict(broken.detail)) == (("Check result: False",), {"result": False})


def test_dialect_decides() -> None:
    store = store_of(text_0="50%")
    arguments = {"response": "text_0", "precision": 2}
    name = "check_percentage_number_precision_in_response"
    assert TextCheckTool(name, "arm").run(arguments, store).detail["result"] is True
    assert TextCheckTool(name).run(arguments, store).detail["result"] is False


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            {"response": "text_9", "lower_bound": 1, "upper_bound": 2},
            "no text called 'text_9'. Available: text_0, text_1.",
        ),
        ({"response": "text_0", "lower_bound": 2, "upper_bound": 1}, "swap them"),
        ({"response": "text_0", "lower_bound": -1, "upper_bound": 1}, "greater than or equal to 0"),
        ({"response": "text_0", "lower_bound": "1", "upper_bound": 1}, "valid integer (got '1')"),
        ({"lower_bound": 1, "upper_bound": 1}, "response: Field required"),
        (
            {"response": 0, "lower_bound": 1, "upper_bound": 1},
            "response: Input should be a valid s",
        ),
        ({"response": "text_0", "lower_bound": 1, "upper_bound": 1, "unit": "word"}, "unit: Extra"),
        ({}, "takes response, lower_bound, upper_bound"),
    ],
)
def test_call_that_is_invalid_gets_a_message_with_the_mistake(
    raw: dict[str, Any], said: str
) -> None:
    with pytest.raises(ToolError) as caught:
        TextCheckTool(WORDS).run(raw, store_of(text_0="a", text_1="b"))
    assert said in str(caught.value)


def test_text_that_cannot_be_split_is_refused() -> None:
    tool = TextCheckTool("check_whether_response_sentence_number_in_range")
    call = {"response": "text_0", "lower_bound": 1, "upper_bound": 2}
    with pytest.raises(ToolError, match=r"text_0 cannot be checked: .* split into sentences"):
        tool.run(call, store_of(text_0="So. " * 50_000))


def test_broken_installation_is_not_shown_to_the_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tokenizers" / "punkt_tab" / "english").mkdir(parents=True)
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])
    tool = TextCheckTool("check_whether_response_sentence_number_in_range")
    call = {"response": "text_0", "lower_bound": 1, "upper_bound": 2}
    _loaded.cache_clear()
    with pytest.raises(DataError, match="not a complete punkt_tab"):
        tool.run(call, store_of(text_0="So."))


def test_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match="check_whether"):
        TextCheckTool("check_words")
    with pytest.raises(UnknownNameError, match="strict"):
        TextCheckTool(WORDS, "loose")  # type: ignore[arg-type]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_examples_and_random_calls_can_be_made(tool: TextCheckTool) -> None:
    store = store_of(text_0="One. Two.\n\nThree 4.50%.", text_1="")
    rng = np.random.default_rng(0)
    drawn = [tool.random_arguments(rng, store) for _ in range(40)]
    for arguments in (tool.example(), *drawn):
        written = json.loads(json.dumps(arguments.model_dump()))
        assert tool.run(written, store).detail["result"] in (True, False)
    assert {arguments.response for arguments in drawn} == set(store.texts)
    tool.random_arguments(rng, Store())


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_tool_is_pickled_and_copied(tool: TextCheckTool) -> None:
    store = store_of(text_0="One.")
    call = tool.example().model_dump()
    for other in (pickle.loads(pickle.dumps(tool)), copy.deepcopy(tool)):
        assert other.name == tool.name
        assert other.run(call, store) == tool.run(call, store)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(TOOLS), st.data())
def test_text_check_tools_answer_or_refuse_any_call(
    tool: TextCheckTool, data: st.DataObject
) -> None:
    raw = {
        name: data.draw(json_values, label=name)
        for name in tool.arguments.model_fields
        if data.draw(st.booleans())
    }
    raw["response"] = data.draw(st.sampled_from(["text_0", "resp_1", "../x", "\0", 1, None]))
    own = {name: value for name, value in raw.items() if name != "response"}
    said = _answer(tool, raw)
    if not said.startswith((f"{tool.name} takes response", "There is no text called")):
        assert said == f"Check result: {check(tool.name, 'Some text. 1.5%', own)}"


def _answer(tool: TextCheckTool, raw: dict[str, Any]) -> str:
    try:
        (said,) = tool.run(raw, store_of(text_0="Some text. 1.5%")).parts
    except ToolError as refused:
        return str(refused)
    assert isinstance(said, str)
    return said


@pytest.mark.parametrize("dialect", ["arm", "mmif"])
def test_tools_of_a_published_dialect_take_its_arguments(dialect: Dialect) -> None:
    tools = {tool.name: tool for tool in text_check_tools(dialect)}
    tool = tools["check_whether_response_word_count_in_range"]
    store = store_of(text_0="One two.")
    arguments = {"response": "text_0", "lower_bound": 5, "upper_bound": 3}
    assert tool.run(arguments, store).detail == {"result": False}
    pickle.loads(pickle.dumps(tool))
    strict = {tool.name: tool for tool in text_check_tools()}[tool.name]
    with pytest.raises(ToolError, match="swap them"):
        strict.run(arguments, store)
