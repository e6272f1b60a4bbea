"""Tests the table of models that the benchmark of the families writes."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("torchvision")

from benchmarks import model_families
from tests.policies.transformers import families

pytestmark = [pytest.mark.component("torch", "transformers"), pytest.mark.slow]


def test_table_replaces_the_old_one() -> None:
    page = f"a\n{model_families.BEGIN}| old |\n{model_families.END}b\n"
    expected = f"a\n{model_families.BEGIN}| new |\n{model_families.END}b\n"
    assert model_families.with_table(page, "| new |\n") == expected


def test_table_of_the_page_has_a_row_for_each_family() -> None:
    page = model_families.PAGE.read_text()
    table = page.partition(model_families.BEGIN)[2].partition(model_families.END)[0]
    assert table.startswith(model_families.HEAD)
    rows = table.removeprefix(model_families.HEAD).splitlines()
    assert [row.split("`")[1] for row in rows] == [*families.FAMILIES]
