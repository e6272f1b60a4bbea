"""Defines `RecordedBackend`, which replays the values in a file, and records another scorer."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock
from typing_extensions import override

from visenv.decoding.files import read_regular
from visenv.decoding.json_text import read_json
from visenv.errors import ConfigurationError, DataError
from visenv.files import check_no_link, open_output
from visenv.scorers.backend import ScorerBackend, ServiceLimits
from visenv.scorers.request import ScoreRequest, digest
from visenv.scorers.retry import RefusedError
from visenv.scorers.values import from_json, normalized, to_json

if TYPE_CHECKING:
    from visenv.scorers.scorer import Scorer

_logger = logging.getLogger(__name__)
_BROKEN = (DataError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


class RecordedBackend(ScorerBackend):
    """Answers a request whose digest is in the file, and any other with the inner scorer, if any.

    The file has one JSON object per line: ``{"digest", "model", "value"}``. All lines must have the
    same model.

    Args:
        file: The file; if it does not exist and there is an inner scorer, the file is created.
        inner: The scorer to record, as its description or as a string for `Scorer.parse`. If None,
            the file is only replayed.

    Raises:
        ConfigurationError: If there is neither a file nor an inner scorer.
        DataError: If a line cannot be read; the message contains the file and the line number.
    """

    main_option = "file"
    limits = ServiceLimits(max_concurrency=64, timeout=3600.0)  # the inner scorer limits itself
    shared_with_children = True  # one process writes the file

    def __init__(self, file: str, inner: str | Mapping[str, Any] | None = None) -> None:
        self._file = Path(file)
        self._inner = None if inner is None else _scorer(inner)
        if self._inner is None and not self._file.is_file():
            raise ConfigurationError(f"There is no file of recorded replies {file}.")
        self._model = ""  # until a line or the inner scorer determines it
        self._values = self._read() if self._file.is_file() else {}

    @property
    @override
    def model(self) -> str:
        """Return the name of the model whose values are in the file."""
        return self._model

    @override
    async def score_batch(self, requests: Sequence[ScoreRequest]) -> Sequence[Any]:
        """Look up the requests, and record the missing ones."""
        return await asyncio.gather(*map(self._score, requests))

    async def _score(self, request: ScoreRequest) -> Any:
        name = digest(request)
        if name not in self._values:
            if self._inner is None:
                raise RefusedError(
                    f"{self._file} holds no reply to the request {name}: record it with inner="
                )
            verdict = await self._inner.score(request)
            if verdict.model != (self._model or verdict.model):
                raise RefusedError(
                    f"{self._file} holds replies of {self._model}, not of {verdict.model}"
                )
            self._model = verdict.model
            await asyncio.to_thread(self._append, name, verdict.value)
            self._values[name] = verdict.value
        return self._values[name]

    def _read(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        models: set[str] = set()
        lines = read_regular(self._file).split(b"\n")
        if lines[-1]:
            _logger.warning("%s ends with half a line, which is left out.", self._file)
        for number, line in enumerate(lines[:-1], start=1):
            try:
                row = read_json(line)
                values[str(row["digest"])] = normalized(from_json(row["value"]))
                models.add(str(row["model"]))
            except _BROKEN as error:
                raise DataError(
                    f"{self._file}, line {number} is not a recorded reply: {error}"
                ) from error
        if len(models) > 1:
            raise DataError(
                f"{self._file} must contain replies of one model, got {sorted(models)}: split it "
                "into a file for each model."
            )
        self._model = next(iter(models), self._model)
        return values

    def _append(self, name: str, value: Any) -> None:
        line = json.dumps({"digest": name, "model": self._model, "value": to_json(value)})
        self._file.parent.mkdir(parents=True, exist_ok=True)
        lock = self._file.with_name(f"{self._file.name}.lock")
        check_no_link(lock)
        with FileLock(lock), open_output(self._file, "a+b") as file:
            file.seek(0)
            written = file.read()
            if not written.endswith(b"\n") and written:  # a killed process wrote half a line
                file.truncate(written.rfind(b"\n") + 1)
            file.write(line.encode("ascii") + b"\n")


def _scorer(inner: str | Mapping[str, Any]) -> Scorer:
    from visenv.scorers.scorer import Scorer

    return Scorer.parse(inner) if isinstance(inner, str) else Scorer.from_description(inner)
