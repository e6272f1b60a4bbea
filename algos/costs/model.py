"""Describes the sizes of Qwen2.5-VL models, and computes their numbers of parameters."""

from __future__ import annotations

from dataclasses import dataclass

_PATCH_VALUES = 3 * 2 * 14 * 14
"""The number of values in a patch: colors, frames, rows and columns."""


@dataclass(frozen=True)
class ModelSize:
    """Holds the sizes of a Qwen2.5-VL model, from its published ``config.json``.

    Attributes:
        name: The usual name of the size, such as ``"3B"``.
        hidden: Width of the language model, and of all its query heads together.
        layers: Depth of the language model.
        key_value: Width of the keys of all heads, and of the values; a head has 128 channels.
        mlp: Width inside the MLP.
        vocabulary: Number of rows of the embedding.
        tied: Whether the language-model head shares the weights of the embedding.
        vision_mlp: Width inside the MLP of the vision tower.
        vision: Width of the vision tower.
        vision_layers: Depth of the vision tower.
        vision_full: Number of layers of the vision tower that attend to the whole image; the others
            attend to windows of 8 x 8 patches.
    """

    name: str
    hidden: int
    layers: int
    key_value: int
    mlp: int
    vocabulary: int
    tied: bool
    vision_mlp: int
    vision: int = 1280
    vision_layers: int = 32
    vision_full: int = 4

    @property
    def layer_matrices(self) -> int:
        """Return the number of weights in the matrices of a layer: q, o, k, v, three of the MLP."""
        return self.hidden * (2 * self.hidden + 2 * self.key_value + 3 * self.mlp)

    @property
    def language(self) -> int:
        """Return the number of parameters of the language model."""
        vectors = self.hidden + 2 * self.key_value + 2 * self.hidden  # biases of q, k, v; two norms
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return self.layers * (self.layer_matrices + vectors) + self.hidden + embeddings

    @property
    def vision_matrices(self) -> int:
        """Return the number of weights in the matrices of a vision layer: q, k, v, o and MLP."""
        return 4 * self.vision**2 + 3 * self.vision * self.vision_mlp

    @property
    def embedding_matrix(self) -> int:
        """Return the number of weights that embed a patch."""
        return _PATCH_VALUES * self.vision

    @property
    def merger_matrices(self) -> int:
        """Return the number of weights that merge four patches into a token."""
        return (4 * self.vision) ** 2 + 4 * self.vision * self.hidden

    @property
    def tower(self) -> int:
        """Return the number of parameters of the vision tower with its merger."""
        # Biases of q, k, v and o, of gate and up, and of down; two norms.
        vectors = 4 * self.vision + 2 * self.vision_mlp + self.vision + 2 * self.vision
        merger_vectors = self.vision + 4 * self.vision + self.hidden
        layers = self.vision_layers * (self.vision_matrices + vectors)
        return layers + self.embedding_matrix + self.merger_matrices + merger_vectors

    @property
    def parameters(self) -> int:
        """Return the number of all parameters."""
        return self.language + self.tower

    def lora(self, rank: int) -> int:
        """Return the number of parameters of LoRA adapters on the matrices of all layers."""
        square, narrow = 2 * 2 * self.hidden, 2 * (self.hidden + self.key_value)
        return self.layers * rank * (square + narrow + 3 * (self.hidden + self.mlp))

    @property
    def key_value_bytes(self) -> int:
        """Return the bytes of the keys and values of one token in bf16."""
        return 2 * self.layers * self.key_value * 2


QWEN2_5_VL = {
    model.name: model
    for model in (
        ModelSize("3B", 2048, 36, 2 * 128, 11008, 151936, True, 3420),
        ModelSize("7B", 3584, 28, 4 * 128, 18944, 152064, False, 3420),
        ModelSize("72B", 8192, 80, 8 * 128, 29568, 152064, False, 3456),
    )
}
"""Sizes from the ``config.json`` of ``Qwen/Qwen2.5-VL-{3B,7B,72B}-Instruct``."""
