"""Makes folders of models of ``transformers`` of several architectures, with random weights and small sizes, and with
tokenizers that are trained on the toy language."""

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
import tokenizers
import torch
import transformers

from tests import marian_folder, toy

VOCABULARY_SIZE = 45
SIZES = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 128,
    "init_std": 0.4,
}  # fmt: skip


def _sentencepiece(kind: str = "unigram") -> sentencepiece.SentencePieceProcessor:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(toy.sentences(300, seed=5) + ["translate English to French: "] * 5),
        model_writer=model,
        vocab_size=VOCABULARY_SIZE,
        model_type=kind,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def _pieces() -> list[tuple[str, float]]:
    processor = _sentencepiece()
    return [(processor.id_to_piece(n), processor.get_score(n)) for n in range(processor.get_piece_size())]


def nllb(folder: Path) -> tuple[Any, Any]:
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False
    )
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    bpe.train_from_iterator(toy.sentences(300, seed=5), trainer)
    model = json.loads(bpe.to_str())["model"]
    tokenizer = transformers.NllbTokenizer(
        vocab=model["vocab"],
        merges=list(map(tuple, model["merges"])),
        extra_special_tokens=["eng_Latn", "fra_Latn", "zho_Hans", "zho_Hant"],
    )
    return tokenizer, _m2m100(len(tokenizer))


def m2m100(folder: Path) -> tuple[Any, Any]:
    processor = _sentencepiece()
    names = ["<s>", "<pad>", "</s>", "<unk>", *(piece for piece, _ in _pieces()[3:])]
    (folder / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    (folder / "sentencepiece.bpe.model").write_bytes(processor.serialized_model_proto())
    files = str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model")
    languages = list(transformers.M2M100Tokenizer(*files).lang_token_to_id)
    tokenizer = transformers.M2M100Tokenizer(*files, additional_special_tokens=languages)
    return tokenizer, _m2m100(max(tokenizer.lang_code_to_id.values()) + 9)  # with made-up words


def _m2m100(vocabulary_size: int) -> Any:
    config = transformers.M2M100Config(vocab_size=vocabulary_size, **SIZES)
    model = transformers.M2M100ForConditionalGeneration(config)
    model.generation_config.update(max_length=24, num_beams=3, early_stopping=True)
    return model


def mbart50(folder: Path) -> tuple[Any, Any]:
    tokenizer = transformers.MBart50Tokenizer(vocab=_pieces())
    config = transformers.MBartConfig(vocab_size=len(tokenizer), **SIZES, scale_embedding=True)
    model = transformers.MBartForConditionalGeneration(config)
    model.generation_config.update(max_length=24, num_beams=4, decoder_start_token_id=2, forced_eos_token_id=2)
    return tokenizer, model


def madlad(folder: Path) -> tuple[Any, Any]:
    return _t5([("<2fr>", 0.0), ("<2de>", 0.0), ("<2zh_Latn>", 0.0)])


def t5(folder: Path) -> tuple[Any, Any]:
    return _t5([])


def _t5(languages: list[tuple[str, float]]) -> tuple[Any, Any]:
    special = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    tokenizer = transformers.T5Tokenizer(vocab=[*special, *languages, *_pieces()[3:]], extra_ids=0)
    config = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=16, d_ff=48, num_layers=2, num_heads=2, initializer_factor=5.0,
        decoder_start_token_id=0, tie_word_embeddings=not languages, feed_forward_proj="gated-gelu",
    )  # fmt: skip
    return tokenizer, transformers.T5ForConditionalGeneration(config)


ARCHITECTURES: dict[str, Callable[[Path], tuple[Any, Any]]] = {
    "nllb": nllb, "m2m100": m2m100, "mbart50": mbart50, "madlad": madlad, "t5": t5,
}  # fmt: skip


LANGUAGES: dict[str, Any] = {
    "nllb": ("eng_Latn", "fra_Latn"), "m2m100": ("en", "fr"), "mbart50": ("en_XX", "fr_XX"), "madlad": "<2fr> ",
    "t5": "translate English to French: ", "marian": ">>xx<< ",
}  # fmt: skip
"""What selects English to French in each architecture (MarianMT: xx): by its codes, or by the beginning of a source."""


def write_folder(folder: Path, architecture: str) -> Path:
    """Write a folder with a tokenizer and random weights, and return its path."""
    folder.mkdir(parents=True)
    torch.manual_seed(3)
    if architecture == "marian":
        marian_folder.write_folder(folder)
        path = folder / "generation_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"max_length": 24}))
        return folder
    tokenizer, model = ARCHITECTURES[architecture](folder)
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def generated(folder: Path, lines: Sequence[str], beam_size: int | None = None) -> list[str]:
    """Return what ``generate`` writes for each line by itself, from English to French; "" for a blank line.

    Args:
        folder: A folder of ``write_folder``, with the name of its architecture.
        lines: The lines.
        beam_size: The size of the beam; None: that of the folder.
    """
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    prefix, settings = "", {} if beam_size is None else {"num_beams": beam_size}
    match LANGUAGES[folder.name]:
        case (source, target):
            tokenizer.src_lang = source
            is_m2m100 = folder.name == "m2m100"
            settings["forced_bos_token_id"] = (
                tokenizer.get_lang_id(target) if is_m2m100 else tokenizer.convert_tokens_to_ids(target)
            )
        case text:
            prefix = text
    texts = []
    for line in lines:
        encoded = tokenizer(prefix + line, return_tensors="pt")
        if model.generation_config.max_length is None:  # then ours: twice the tokens of the line, and 20
            settings["max_new_tokens"] = 2 * (encoded.input_ids.shape[1] - 1) + 21
        tokens = model.generate(**encoded, **settings)
        texts += tokenizer.batch_decode(tokens, skip_special_tokens=True) if line.strip() else [""]
    return [text.strip() for text in texts]
