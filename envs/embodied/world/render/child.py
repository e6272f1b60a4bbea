"""Renders houses in the child process of `RenderProcess`."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from typing import Any

import numpy as np
from typing_extensions import override

from visenv.errors import ConfigurationError

from .apart import HOUSES
from .renderer import HouseRenderer


class RenderTarget:
    """Renders houses in the child (`visenv.child_process.program.Target`)."""

    def start(self, options: Any) -> dict[str, Any]:
        """Create the list of houses."""
        self.houses: OrderedDict[int, Any] = OrderedDict()
        return {}

    def answer(self, calls: list[Any], arrays: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Answer one call: ``frame`` or ``ids``, of a house that was sent before or is sent now."""
        ((method, request),) = calls
        key = request["house"]
        if "house" in arrays:
            self.houses[key] = pickle.loads(bytes(arrays["house"]))  # noqa: S301  the host wrote it
            while len(self.houses) > HOUSES:
                self.houses.popitem(last=False)
        if key not in self.houses:
            return [{"unknown": True}], {}
        self.houses.move_to_end(key)
        state = _Reader(io.BytesIO(bytes(arrays["state"])), self.houses[key]).load()
        renderer = HouseRenderer(self.houses[key])
        try:
            if method == "frame":
                frame = renderer.frame(state, request["side"], request["antialias"])
                return [{}], {"frame": frame}
            ids, names = renderer.ids(state, request["side"])
        except ConfigurationError as error:
            return [{"setup": str(error)}], {}
        return [{"names": names}], {"ids": ids.astype(np.int64)}

    def close(self) -> None:
        """Do nothing; the contexts are freed when the child ends."""


class _Reader(pickle.Unpickler):
    """Reads a state that `RenderProcess` wrote."""

    def __init__(self, file: io.BytesIO, house: Any) -> None:
        super().__init__(file)
        self._house = house

    @override
    def persistent_load(self, pid: Any) -> Any:
        return self._house
