"""Tests that the bridges refuse models other than Qwen2.5-VL and Qwen3-VL, by their name."""

from __future__ import annotations

from pathlib import Path

import pytest

from visenv.errors import ConfigurationError
from visenv.registration import load

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("torchvision")

from tests.policies.transformers import families

pytestmark = [pytest.mark.component("torch", "transformers"), pytest.mark.slow]


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return families.build("gemma3", tmp_path_factory.mktemp("gemma3"))


def test_bridge_to_trl_names_the_type_of_a_model_that_it_refuses(gemma: Path) -> None:
    from visenv.algos.bridges.trl.model import parts

    policy = load("policy", "transformers")(gemma, threads=1)
    with pytest.raises(ConfigurationError, match=r"TRL supports Qwen.*and this is a gemma3 model"):
        parts(policy)


def test_bridge_to_verl_names_the_type_of_a_model_that_it_refuses(gemma: Path) -> None:
    from visenv.algos.bridges.verl.policy import codec_of

    with pytest.raises(ConfigurationError, match=r"verl supports Qwen.*and this is a gemma3 model"):
        codec_of(str(gemma))
