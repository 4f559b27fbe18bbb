"""Models of a few thousand random weights, saved as transformers saves real ones."""

from pathlib import Path

LENGTH = 16
"""Pictures in a clip."""
CLASSES = ("a cat", "a dog", "the sea")


def save_tokenizer(path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<s>", "</s>", "<unk>", "a", "photo", "of", "cat", "dog", "the", "sea"]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=12,
    ).save_pretrained(path)


def make_model(path: Path, kind: str, seed: int = 0) -> Path:
    """CLIP or SigLIP on 32 x 32 pictures in patches of 8."""
    import torch
    from transformers import (
        CLIPConfig,
        CLIPImageProcessorPil,
        CLIPModel,
        SiglipConfig,
        SiglipImageProcessorPil,
        SiglipModel,
    )

    torch.manual_seed(seed)
    tower = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    text = {**tower, "vocab_size": 11, "max_position_embeddings": 12, "eos_token_id": 2}
    text |= {"bos_token_id": 1, "pad_token_id": 0}
    vision = {**tower, "image_size": 32, "patch_size": 8}
    if kind == "clip":
        config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
        model, processor = (
            CLIPModel(config),
            CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=32),
        )
    else:
        model = SiglipModel(SiglipConfig(text_config=text, vision_config=vision))
        processor = SiglipImageProcessorPil(size={"height": 32, "width": 32})
    model.save_pretrained(path)
    processor.save_pretrained(path)
    save_tokenizer(path)
    return path


def make_clip_model(path: Path, kind: str) -> Path:
    """VideoMAE (two ways of pooling) or TimeSformer with three classes."""
    import torch
    from transformers import (
        TimesformerConfig,
        TimesformerForVideoClassification,
        VideoMAEConfig,
        VideoMAEForVideoClassification,
        VideoMAEImageProcessorPil,
    )

    torch.manual_seed(3)
    small = {
        "image_size": 32,
        "patch_size": 16,
        "num_frames": LENGTH,
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "id2label": {0: "wave", 1: "jump", 2: "sit"},
    }
    if kind == "timesformer":
        model = TimesformerForVideoClassification(TimesformerConfig(**small))
    else:
        pooling = kind == "videomae"
        model = VideoMAEForVideoClassification(VideoMAEConfig(**small, use_mean_pooling=pooling))
    model.save_pretrained(path)
    size = {"shortest_edge": 32}
    VideoMAEImageProcessorPil(size=size, crop_size=32).save_pretrained(path)
    return path
