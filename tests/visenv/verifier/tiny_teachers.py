"""Builds tiny detectors and segmenters of real architectures from their configurations."""

from __future__ import annotations

from pathlib import Path

WORDS = "a red green blue yellow purple orange cube ball cone diamond bar region chest of drawers"


def tiny_grounding_dino(folder: Path) -> Path:
    """Save a Grounding DINO of 157,391 parameters; it needs 2 decoder layers."""
    import torch
    import transformers as t

    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "?", *WORDS.split()]
    tokenizer = t.BertTokenizer(vocab={word: number for number, word in enumerate(words)})
    backbone = t.SwinConfig(
        image_size=32,
        patch_size=4,
        embed_dim=16,
        depths=[1, 1, 1],
        num_heads=[1, 2, 4],
        window_size=4,
        out_features=["stage2", "stage3"],  # type: ignore[call-arg]  # of every backbone
    )
    text = t.BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    config = t.GroundingDinoConfig(
        backbone_config=backbone,
        text_config=text,
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        num_queries=20,
        num_feature_levels=2,
        max_text_len=32,
    )
    images = t.GroundingDinoImageProcessor(size={"shortest_edge": 64, "longest_edge": 96})
    t.GroundingDinoForObjectDetection(config).save_pretrained(folder)
    t.GroundingDinoProcessor(images, tokenizer).save_pretrained(folder)
    return folder


def tiny_owlv2(folder: Path) -> Path:
    """Save an OWLv2 of 52,392 parameters that finds one box at each of 16 patches."""
    import torch
    import transformers as t

    torch.manual_seed(0)
    letters = "abcdefghijklmnopqrstuvwxyz."
    pieces = [
        *letters,
        *(f"{each}</w>" for each in letters),
        "<|startoftext|>",
        "<|endoftext|>",
        "!",
    ]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = t.CLIPTokenizer(vocab=vocabulary, merges=[], pad_token="!", model_max_length=16)
    shared = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    text = shared | {
        "vocab_size": len(vocabulary),
        "max_position_embeddings": 16,
        "pad_token_id": vocabulary["!"],
        "bos_token_id": vocabulary["<|startoftext|>"],
        "eos_token_id": vocabulary["<|endoftext|>"],
    }
    config = t.Owlv2Config(
        text_config=text,
        vision_config=shared | {"image_size": 64, "patch_size": 16},
        projection_dim=32,
    )
    model = t.Owlv2ForObjectDetection(config)
    for parameter in model.box_head.dense2.parameters():  # so that a box is the box of its patch
        torch.nn.init.zeros_(parameter)
    images = t.Owlv2ImageProcessor(size={"height": 64, "width": 64})
    model.save_pretrained(folder)
    t.Owlv2Processor(images, tokenizer).save_pretrained(folder)
    return folder


def tiny_sam2(folder: Path) -> Path:
    """Save a SAM 2 of 297,792 parameters; no global block pools."""
    import torch
    import transformers as t

    torch.manual_seed(0)
    backbone = t.Sam2HieraDetConfig(
        hidden_size=16,
        num_attention_heads=1,
        image_size=[64, 64],
        blocks_per_stage=[1, 1, 1, 1],
        embed_dim_per_stage=[16, 32, 64, 128],
        num_attention_heads_per_stage=[1, 2, 4, 8],
        window_size_per_stage=[8, 4, 4, 2],
        global_attention_blocks=[],
        window_positional_embedding_background_size=[4, 4],
    )
    vision = t.Sam2VisionConfig(
        backbone_config=backbone,
        backbone_channel_list=[128, 64, 32, 16],
        backbone_feature_sizes=[[16, 16], [8, 8], [4, 4]],
        fpn_hidden_size=32,
    )
    prompts = t.Sam2PromptEncoderConfig(
        hidden_size=32, image_size=64, patch_size=16, mask_input_channels=4
    )
    masks = t.Sam2MaskDecoderConfig(
        hidden_size=32,
        mlp_dim=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        attention_downsample_rate=2,
        iou_head_hidden_dim=32,
    )
    config = t.Sam2Config(
        vision_config=vision, prompt_encoder_config=prompts, mask_decoder_config=masks
    )
    images = t.Sam2ImageProcessor(
        size={"height": 64, "width": 64}, mask_size={"height": 16, "width": 16}
    )
    t.Sam2Model(config).save_pretrained(folder)
    t.Sam2Processor(images, target_size=64).save_pretrained(folder)
    return folder
