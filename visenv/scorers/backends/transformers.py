"""Defines `TransformersBackend`, a language model in this process, with or without images."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import override

from visenv.decoding.templates import render_chat_template
from visenv.errors import DataError
from visenv.images import channels_first
from visenv.pretrained import load_pretrained
from visenv.scorers.backend import ServiceLimits
from visenv.scorers.backends.local_model import LocalModelBackend
from visenv.scorers.request import Generate, LogProbs
from visenv.scorers.retry import RefusedError
from visenv.types import Message, all_images


class TransformersBackend(LocalModelBackend):
    """Answers `Generate` and `LogProbs` with a model of transformers.

    Requests of one batch are padded on the left and computed together, so that the last bits of
    their values may depend on the batch; a deterministic service sends one request at a time. A
    blank is inserted into special tokens in the text of a message, so that a candidate answer
    cannot end its turn.

    Args:
        model: A folder, or a name on the Hugging Face hub.
        device: PyTorch device.
        dtype: Data type of the weights, for example ``"bfloat16"``; ``"auto"`` uses the
            checkpoint's.
    """

    requests = (Generate, LogProbs)
    limits = ServiceLimits(max_batch_size=8, max_delay=0.005, timeout=600.0)

    def __init__(self, model: str, device: str = "cpu", dtype: str = "auto") -> None:
        super().__init__(model, device)
        self._dtype = dtype
        self._tokenizer: Any = None
        self._reads_images = False
        self._special = re.compile(r"(?!)")

    @override
    def _load(self) -> None:
        import transformers

        config = load_pretrained(transformers.AutoConfig, self._name)
        self._reads_images = type(config) in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
        made: Any
        if self._reads_images:
            made = transformers.AutoModelForImageTextToText
            self._processor = load_pretrained(transformers.AutoProcessor, self._name)
            self._tokenizer = self._processor.tokenizer
        else:
            made = transformers.AutoModelForCausalLM
            self._processor = load_pretrained(transformers.AutoTokenizer, self._name)
            self._tokenizer = self._processor
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        model = load_pretrained(made, self._name, dtype=self._dtype)
        self._model = model.to(self._device).eval()
        tokens = self._tokenizer.added_tokens_decoder.values()
        special = sorted((token.content for token in tokens if token.special), key=len)
        if special:
            self._special = re.compile("|".join(map(re.escape, reversed(special))))

    # ------------------------------------------------------------------------------- requests

    @override
    def compute(self, requests: Sequence[Generate | LogProbs]) -> Sequence[Any]:
        """Answer the requests, batched by kind and length."""
        groups: defaultdict[Any, list[int]] = defaultdict(list)
        for place, request in enumerate(requests):
            alike = (request.max_tokens, request.stop) if isinstance(request, Generate) else ()
            groups[alike].append(place)
        values: list[Any] = [None] * len(requests)
        for places in groups.values():
            chosen: list[Any] = [requests[place] for place in places]
            answer: Callable[[list[Any]], list[Any]]
            answer = self._generate if isinstance(chosen[0], Generate) else self._log_probs
            for place, value in zip(places, answer(chosen), strict=True):
                values[place] = value
        return values

    def _generate(self, requests: list[Generate]) -> list[Any]:
        import torch

        from visenv.scorers.backends.local_model import SeededSampling

        first = requests[0]  # the others have the same length and stop strings
        inputs = self._inputs([self._prompt(each.messages) for each in requests], requests)
        sampling = SeededSampling([(each.temperature, each.seed) for each in requests])
        with torch.inference_mode():
            written = self._model.generate(
                **inputs,
                max_new_tokens=first.max_tokens,
                do_sample=False,  # `sampling` adds noise without the global generator
                logits_processor=[sampling],
                stop_strings=list(first.stop) or None,
                tokenizer=self._tokenizer,
            )
        start = inputs["input_ids"].shape[1]  # output: [batch, prompt + reply]
        return [self._reply(row[start:].tolist(), first.stop) for row in written]

    def _reply(self, tokens: list[int], stop: Sequence[str]) -> dict[str, str]:
        ends = self._model.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        count = next((place for place, token in enumerate(tokens) if token in ends), len(tokens))
        text = self._tokenizer.decode(tokens[:count], skip_special_tokens=True)
        cuts = [text.index(each) for each in stop if each in text]
        ended = count < len(tokens) or bool(cuts)
        return {
            "text": text[: min(cuts, default=len(text))],
            "finish_reason": "stop" if ended else "length",
        }

    def _log_probs(self, requests: list[LogProbs]) -> list[Any]:
        import torch

        replies = [self._plain(each.continuation) for each in requests]
        prompts = [self._prompt(each.messages) for each in requests]
        whole = [prompt + reply for prompt, reply in zip(prompts, replies, strict=True)]
        inputs = self._inputs(whole, requests)
        tokens = [self._tokenizer(each, add_special_tokens=False).input_ids for each in replies]
        for row, tail in zip(inputs["input_ids"].tolist(), tokens, strict=True):
            if not tail or row[-len(tail) :] != tail:
                raise RefusedError(
                    "the continuation is empty, or its first token merges with the prompt"
                )
        longest = max(map(len, tokens))
        with torch.inference_mode():
            logits = self._model(**inputs, logits_to_keep=longest + 1).logits
            # [batch, longest, vocabulary]: the logits at a position predict the next token.
            logs = torch.log_softmax(logits[:, -longest - 1 : -1].float(), dim=-1)
            ids = inputs["input_ids"][:, -longest:, None]
            chosen = logs.gather(-1, ids).squeeze(-1).tolist()
        return [row[longest - len(tail) :] for row, tail in zip(chosen, tokens, strict=True)]

    # ----------------------------------------------------------------------------------- inputs

    def _inputs(self, texts: list[str], requests: Sequence[Generate | LogProbs]) -> Any:
        arguments: dict[str, Any] = {"text": texts}
        images = [[channels_first(each) for each in all_images(item.messages)] for item in requests]
        if any(images):
            if not self._reads_images:
                raise RefusedError(f"the model {self._name} reads no images")
            arguments["images"] = images
        inputs = self._processor(
            **arguments,
            padding=True,
            padding_side="left",
            add_special_tokens=False,  # the chat template has added them
            return_tensors="pt",
        )
        return inputs.to(self._device)

    def _prompt(self, messages: Sequence[Message]) -> str:
        chat = [{"role": each.role, "content": self._content(each)} for each in messages]
        try:
            return render_chat_template(self._processor, chat, add_generation_prompt=True)
        except DataError as error:
            raise RefusedError(str(error)) from error

    def _content(self, message: Message) -> Any:
        if not self._reads_images:  # templates of text models expect a string
            return self._plain("".join(part for part in message.parts if isinstance(part, str)))
        return [
            {"type": "text", "text": self._plain(part)}
            if isinstance(part, str)
            else {"type": "image"}
            for part in message.with_frames().parts
        ]

    def _plain(self, text: str) -> str:
        """Return the text without special tokens, and without lone surrogates."""
        text = text.encode("utf-8", "replace").decode("utf-8")
        return self._special.sub(lambda token: f"{token[0][0]} {token[0][1:]}", text)
