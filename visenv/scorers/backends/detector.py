"""Defines `DetectorBackend`, open-vocabulary detection with transformers, in this process."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from visenv.images import channels_first
from visenv.pretrained import load_pretrained
from visenv.scorers.backend import ServiceLimits
from visenv.scorers.backends.local_model import LocalModelBackend
from visenv.scorers.request import Detect
from visenv.types import Image

_MOST_BOXES = 900


class DetectorBackend(LocalModelBackend):
    """Answers `Detect` with any zero-shot detector of transformers.

    Grounding DINO, MM-Grounding-DINO, OWLv2 and OWL-ViT are loaded by
    ``AutoModelForZeroShotObjectDetection``. A query contains one phrase, in lower case and with a
    final full stop, because for several phrases Grounding DINO returns parts of them as labels. A
    phrase with more tokens than the model reads (OWL: 16) is cut.

    Args:
        model: A folder, or a name on the Hugging Face hub.
        threshold: The minimum score of a box.
        text_threshold: The minimum score of a word, for models with such scores.
        device: PyTorch device.
    """

    requests = (Detect,)
    title = "detector"
    limits = ServiceLimits(max_batch_size=16, max_delay=0.005, timeout=600.0)

    def __init__(
        self,
        model: str,
        threshold: float = 0.25,
        text_threshold: float = 0.25,
        device: str = "cpu",
    ) -> None:
        super().__init__(model, device)
        self._threshold = threshold
        self._text_threshold = text_threshold

    @override
    def _load(self) -> None:
        import transformers

        self._processor = load_pretrained(transformers.AutoProcessor, self._name)
        made = transformers.AutoModelForZeroShotObjectDetection
        self._model = load_pretrained(made, self._name).to(self._device).eval()
        self._most_tokens = _most_tokens(self._processor.tokenizer, self._model.config)

    @override
    def compute(self, requests: Sequence[Detect]) -> Sequence[Any]:
        """Detect each phrase; requests with images of the same size form one batch."""
        sizes: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for place, request in enumerate(requests):
            sizes[request.image.size].append(place)
        values: list[Any] = [None] * len(requests)
        for places in sizes.values():
            found = self._detect([requests[place] for place in places])
            for place, boxes in zip(places, found, strict=True):
                values[place] = boxes
        return values

    def _detect(self, requests: Sequence[Detect]) -> list[list[list[float]]]:
        import torch

        phrases = [as_query(each.phrase) for each in requests]
        images = [channels_first(each.image) for each in requests]
        # OWL takes a list of phrases for each image.
        nested = "input_ids" not in inspect.signature(self._post_process).parameters
        text = [[phrase] for phrase in phrases] if nested else phrases
        inputs = self._processor(
            images=images,
            text=text,
            padding=True,
            truncation=True,
            max_length=self._most_tokens,
            return_tensors="pt",
        )
        inputs = inputs.to(self._device)
        with torch.inference_mode():
            outputs = self._model(**inputs)
        sizes = [(each.image.size[1], each.image.size[0]) for each in requests]
        options: dict[str, Any] = {"threshold": self._threshold, "target_sizes": sizes}
        if not nested:
            options |= {"input_ids": inputs.input_ids, "text_threshold": self._text_threshold}
        elif "text_labels" in inspect.signature(self._post_process).parameters:
            options["text_labels"] = text
        results = self._post_process(outputs, **options)
        return [_boxes(found, each.image) for found, each in zip(results, requests, strict=True)]

    @property
    def _post_process(self) -> Any:
        return self._processor.post_process_grounded_object_detection


def as_query(phrase: str) -> str:
    """Return a phrase as Grounding DINO expects it: lower case, with one full stop at the end."""
    words = " ".join(phrase.lower().replace(".", " ").split())
    return f"{words}."


def _most_tokens(tokenizer: Any, config: Any) -> int:
    """Return the maximum number of tokens of a phrase."""
    text = getattr(config, "text_config", None)
    limits = [
        tokenizer.model_max_length,  # may be missing in a saved tokenizer, and is then very large
        getattr(text, "max_position_embeddings", None),
        getattr(config, "max_text_len", None),
    ]
    return int(min(each for each in limits if each))


def _boxes(found: Any, image: Image) -> list[list[float]]:
    """Return the boxes clipped to the image, best first, without those that are not finite."""
    import torch

    boxes, scores = found["boxes"].float(), found["scores"].float()
    width, height = image.size
    limits = torch.tensor([width, height, width, height], device=boxes.device)
    boxes = torch.minimum(boxes.clamp_min(0), limits)
    usable = torch.isfinite(boxes).all(-1) & torch.isfinite(scores)
    usable &= (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
    boxes, scores = boxes[usable], scores[usable]
    order = scores.argsort(descending=True)[:_MOST_BOXES]
    rows = torch.cat([boxes[order], scores[order, None]], dim=-1)  # [boxes, 5]
    return [[round(value, 2) for value in row[:4]] + [round(row[4], 4)] for row in rows.tolist()]
