"""Tests that credentials in options are refused, and neither saved nor repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from visenv.algos.experiment.parts import check_parts
from visenv.algos.experiment.recipe_files import read_recipe, recipe_path
from visenv.cli import main
from visenv.credentials import check_no_credentials
from visenv.errors import ConfigurationError
from visenv.policies.openai import OpenAIPolicy

pytestmark = pytest.mark.attack("options: a credential is refused and not saved")

KEY = "quite-private-0123456789"
VALUES = [
    "sk-proj-0123456789abcdefghij",
    "hf_0123456789abcdefghijklmnop",
    "ghp_0123456789abcdefghijklmnop",
    "github_pat_0123456789abcdefghijkl",
    "xoxb-0123456789-abc",
    "AKIA0123456789ABCDEF",
    "AIza0123456789abcdefghijklmnopqrstuvw",
    "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl",
    "Bearer abc",
    "Basic dXNlcjpwYXNz",
    "https://user:word@host/v1",
    "https://host/v1?api_key=abc",
    "http://host/?x=1&access_token=abc",
    "http://host/file?X-Amz-Signature=abc",
    "gsk_0123456789abcdefghij",
    "glpat-0123456789abcdefghij",
    "nvapi-0123456789abcdefghij",
    "xai-0123456789abcdefghij",
    "ya29.0123456789abcdefghij",
    "-----BEGIN RSA PRIVATE KEY-----",
    "curl -H 'Authorization: Bearer abc' host",
    '{"api_key": "abc"}',
    "a text with sk-proj-0123456789abcdefghij inside",
    "  sk-0123456789abcdefghij  ",
]
OPTIONS: list[Mapping[str, Any]] = [
    *({name: KEY} for name in ("api_key", "apiKey", "API_KEY", "key", "x-api-key", "token")),
    *({name: KEY} for name in ("accessToken", "Authorization", "client_secret", "password")),
    *({name: KEY} for name in ("HF_TOKEN", "auth", "cookie", "credentials", "proxy-authorization")),
    *({name: KEY} for name in ("apikey", "authtoken", "secretkey", "api_key_2", "key1", "pwd")),
    {"api_keys": [KEY]},
    {"credentials": {"user": "a", "word": KEY}},
    {"password": 123456},
    {"extra": {VALUES[0]: 1}},
    {VALUES[0]: {"any": 1}},
    {"extra": {"headers": {"X-Api-Key": KEY}}},
    {"extra": [{"deep": [{"secret": [KEY]}]}]},
    {"extra": {"auth": ["user", KEY]}},
    {"token": KEY.encode()},
    *({"model": value} for value in VALUES),
    *({"extra": {"deep": [{"any": value}]}} for value in VALUES),
    *({"key_variable": value} for value in VALUES[:3]),
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_credential_is_refused_with_the_variable_and_not_repeated(
    options: Mapping[str, Any],
) -> None:
    with pytest.raises(ConfigurationError, match="looks like a credential") as caught:
        check_no_credentials("policy 'openai'", options, "OPENAI_API_KEY")
    said = str(caught.value)
    assert "key_variable=OPENAI_API_KEY" in said
    assert not any(value in said for value in (KEY, *VALUES, "dXNlcjpwYXNz"))


@pytest.mark.parametrize(
    "options",
    [
        {
            "key_variable": "OPENAI_API_KEY",
            "model": "gpt-4o",
            "base_url": "http://localhost:8000/v1",
        },
        {"max_tokens": 512, "stop_tokens": ["</s>"], "tokenizer": "auto", "top_p": 0.9},
        {"extra": {"logprobs": True, "keys": ["a"], "token": 5, "key": None, "secret": ""}},
        {"data": "hrbench:folder?size=8k", "statistics": "file.json:key", "kinds": ["monkey"]},
        {"judge": "openai:m?base_url=https://api.openai.com/v1&key_variable=OPENAI_API_KEY"},
        {"model": "org/sk-model", "preset": "basic"},
        {"max_token": "5", "token_budget": "9", "key_frames": "all", "keypoint": "left", "pass": 2},
        {"eos_token": "</s>", "image_token": "<image>", "stop_token": "[END]", "token": "<|end|>"},
        {"sort_key": "name", "group_key": "kind", "metric_key": "accuracy", "authors": ["a"]},
        {
            "prompt": "Basic arithmetic with a key: what is the password?",
            "system": "bearer of news",
        },
        {"model": "sk-tokenizer-large-v2-instruct", "auth": None, "secret": False},
    ],
)
def test_other_options_are_accepted(options: Mapping[str, Any]) -> None:
    check_no_credentials("policy 'openai'", options)


@pytest.mark.parametrize(
    ("words", "variable"),
    [
        (["--policy", "openai", "--policy-option", f'extra={{"api_key": "{KEY}"}}'], "OPENAI_API"),
        (["--policy", "openai", "--policy-option", f"api_key={KEY}"], "OPENAI_API_KEY"),
        (["--policy", "openai", "--policy-option", f"key_variable={VALUES[0]}"], "OPENAI_API_KEY"),
        (["--policy", "transformers", "--policy-option", f"token={KEY}"], "HF_TOKEN"),
        (["--policy", "cot", "--policy-option", f'options={{"token": "{KEY}"}}'], "HF_TOKEN"),
        (["--option", f"password={KEY}"], "HF_TOKEN"),
        (["--option", f'scenes={{"url": "https://user:{KEY}@host"}}'], "HF_TOKEN"),
    ],
)
def test_command_refuses_a_credential_and_writes_nothing(
    words: list[str], variable: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--policy-option", "model=m"] if "openai" in words else []
    assert main(["rollout", "ZoomVQA-v0", "--out", str(tmp_path / "run"), *given, *words]) == 1
    said = capsys.readouterr()
    assert "looks like a credential" in said.err
    assert variable in said.err
    assert KEY not in said.out + said.err
    assert VALUES[0] not in said.out + said.err
    assert not (tmp_path / "run").exists()


def test_policy_made_in_python_refuses_a_credential() -> None:
    for options in ({"extra": {"api_key": KEY}}, {"base_url": f"http://user:{KEY}@host"}):
        with pytest.raises(ConfigurationError, match=r"looks like a credential.*OPENAI_API_KEY"):
            OpenAIPolicy("m", **options)


@pytest.mark.component("torch")
@pytest.mark.parametrize("place", ["model", "sampler", "environment", "baselines", "phase"])
def test_recipe_with_a_credential_is_refused_before_it_is_saved(place: str, tmp_path: Path) -> None:
    recipe = read_recipe(recipe_path("zoom_tiny"), ["--runs", str(tmp_path)])
    given = {"extra": {"api_key": KEY}}
    if place in ("model", "sampler"):
        changed = replace(recipe, **{place: replace(getattr(recipe, place), options=given)})
    elif place == "baselines":
        evaluation = replace(recipe.evaluation, baseline_options=given)
        changed = replace(recipe, evaluation=evaluation)
    elif place == "phase":
        name, phase = next(iter(recipe.phases.items()))
        changed = replace(recipe, phases=recipe.phases | {name: replace(phase, options=given)})
    else:
        name, environment = next(iter(recipe.environments.items()))
        environments = recipe.environments | {name: replace(environment, options=given)}
        changed = replace(recipe, environments=environments)
    with pytest.raises(ConfigurationError, match="looks like a credential") as caught:
        check_parts(changed)
    assert KEY not in str(caught.value)
    assert not any(tmp_path.iterdir())


def test_message_can_be_read_by_a_person() -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_no_credentials("policy 'openai'", {"extra": {"api_key": KEY}}, "OPENAI_API_KEY")
    assert str(caught.value) == (
        "The option extra (api_key) of the policy 'openai' looks like a credential. Options are "
        "saved and shown: put the key into an environment variable, and pass the name of that "
        "variable: key_variable=OPENAI_API_KEY."
    )
