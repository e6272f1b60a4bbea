"""Defines `LocalModelBackend`, the base class of backends with a transformers model; samples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from visenv.decoding.files import check_folder
from visenv.errors import ConfigurationError
from visenv.packages import missing_package, require_version
from visenv.scorers.backend import InProcessBackend

if TYPE_CHECKING:
    import torch


class SeededSampling:
    """Adds Gumbel noise, so that the maximum score is a sample (Gumbel-max trick).

    This is a logits processor of transformers.

    argmax(logits / T + Gumbel noise) has the distribution softmax(logits / T). The noise of each
    row comes from a separate generator; PyTorch's global generator, which training uses, is not
    used.

    Args:
        settings: Temperature and seed of each row; a temperature of 0 adds no noise.
    """

    def __init__(self, settings: Sequence[tuple[float, int]]) -> None:
        import torch

        self._temperatures = [temperature for temperature, _ in settings]
        self._generators = [torch.Generator().manual_seed(seed) for _, seed in settings]

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Return the scores with noise, float32 ``[rows, vocabulary]``."""
        import torch

        noisy = scores.float().clone()
        rows = zip(self._temperatures, self._generators, strict=True)
        for row, (temperature, generator) in enumerate(rows):
            if temperature > 0:
                uniform = torch.rand(scores.shape[-1], generator=generator, dtype=torch.float64)
                gumbel = -torch.log(-torch.log(uniform.clamp_min(1e-300)))
                noisy[row] = noisy[row] / temperature + gumbel.to(noisy)
        return noisy  # type: ignore[return-value]


class LocalModelBackend(InProcessBackend):
    """Loads a model of transformers in this process.

    Attributes:
        title: The name of the kind of model in error messages, for example ``"detector"``.

    Args:
        model: A folder, or a name on the Hugging Face hub.
        device: PyTorch device.
    """

    main_option = "model"
    title: ClassVar[str] = "model"

    def __init__(self, model: str, device: str) -> None:
        super().__init__()
        self._name = model
        self._device = device
        self._model: Any = None
        self._processor: Any = None

    @property
    @override
    def model(self) -> str:
        """Return the model's name or folder."""
        return self._name

    @property
    @override
    def version(self) -> str:
        """Return the versions of transformers and PyTorch, and the dates of local weights.

        Raises:
            ConfigurationError: If one of the two packages is missing.
        """
        folder = Path(self._name)
        files = sorted(folder.glob("*")) if folder.is_dir() else []
        stamps = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files]
        packages = [
            f"{package} {require_version(self._subject, package, 'train')}"
            for package in ("transformers", "torch")
        ]
        return "; ".join([*packages, *stamps])

    @override
    def load(self) -> None:
        """Load the model.

        Raises:
            ConfigurationError: If the model, or transformers, is missing.
        """
        try:
            check_folder(self._name)
            self._load()
        except ConfigurationError:
            raise
        except ImportError as error:
            raise missing_package(self._subject, error, "train") from error
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"{self._subject} cannot be loaded: {str(error)[:300]}"
            ) from error

    @property
    def _subject(self) -> str:
        return f"The {self.title} {self._name!r}"

    @abstractmethod
    def _load(self) -> None:
        """Load the model; errors of transformers are raised unchanged."""
