"""Defines `EMPTY`, an empty mapping that is the default value of fields.

A dict as default would be shared by all values, which could change it, and Gymnasium warns if two
steps share data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from typing_extensions import override


class _Empty(Mapping[Any, Any]):
    @override
    def __getitem__(self, key: Any) -> NoReturn:
        raise KeyError(key)

    @override
    def __iter__(self) -> Iterator[Any]:
        return iter(())

    @override
    def __len__(self) -> int:
        return 0

    @override
    def __repr__(self) -> str:
        return "{}"

    @override
    def __reduce__(self) -> str:
        return "EMPTY"


EMPTY: Mapping[Any, Any] = _Empty()
"""An empty mapping that cannot be changed; it equals ``{}``."""
