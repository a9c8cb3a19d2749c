"""Writes the tiny RoBERTa that the tests run: a random model, its own tokenizer, and what Hugging Face makes of them.

Usage: python reference/make_roberta_fixture.py crates/headwater-score/tests/fixtures/roberta-tiny
Needs reference/requirements-roberta.txt. Everything is seeded; the text below was written for this file.
"""

import json
import os
import shutil
import sys
import tempfile

import torch
from tokenizers import ByteLevelBPETokenizer
from transformers import RobertaConfig, RobertaForSequenceClassification, RobertaTokenizerFast

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
CORPUS = [
    "The river rises in the hills and nobody asks where the water comes from.",
    "People listen to people, and people repeat what they have heard from people.",
    "I love this, I hate that, I do not care about the other thing at all!",
    "@user what a day, the best day of the week http",
    "Bitcoin goes up, bitcoin goes down, and everybody has an opinion.",
]
TEXTS = [
    "",
    " ",
    "I love the river",
    "nobody asks where the WATER comes from!!!",
    "@someone I do NOT care http://example.org/x?y=1 #opinion",
    "line one\nline two\ttabs  and  spaces ",
    "émigré naïve 日本語 Привет 😀👍🏽 ‘quotes’ — dashes…",
    "a <mask> and a <pad> and </s> in the text",
    "&amp; 'll we've 12345 $3.50",
    "@ alone and http alone, httpfoo, e@mail",
    "people " * 100,
    "x",
    "\u200b\u00a0 odd spaces \u3000 here",
] + [f"number {i}: the water goes {'up' if i % 2 else 'down'} {'and on ' * i}" for i in range(12)]


def normalised(text):
    """The preprocessing that the paper's model was published with."""
    words = []
    for word in text.split(" "):
        word = "@user" if word.startswith("@") and len(word) > 1 else word
        word = "http" if word.startswith("http") else word
        words.append(word)
    return " ".join(words)


def random_model(config, seed):
    torch.manual_seed(seed)
    model = RobertaForSequenceClassification(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Biases and norms start at constants that would hide mistakes.
            if name.endswith("bias") or "LayerNorm" in name:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def logits(model, tokenizer, texts, limit):
    found = []
    for text in texts:
        encoded = tokenizer(normalised(text), return_tensors="pt", truncation=True, max_length=limit)
        with torch.no_grad():
            found.append((encoded["input_ids"][0].tolist(), model(**encoded).logits[0].tolist()))
    return found


def main(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(CORPUS, vocab_size=320, min_frequency=2, special_tokens=SPECIAL)
    trained.save_model(folder)
    # transformers fills a folder with more than is wanted here.
    with tempfile.TemporaryDirectory() as scratch:
        for name in ["vocab.json", "merges.txt"]:
            shutil.copy(os.path.join(folder, name), scratch)
        tokenizer = RobertaTokenizerFast.from_pretrained(scratch)
        tokenizer.save_pretrained(scratch)
        shutil.copy(os.path.join(scratch, "tokenizer.json"), folder)
        config = RobertaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=66,
            type_vocab_size=1,
            layer_norm_eps=1e-5,
            initializer_range=0.3,
            num_labels=3,
            id2label={0: "negative", 1: "neutral", 2: "positive"},
            label2id={"negative": 0, "neutral": 1, "positive": 2},
        )
        model = random_model(config, 1)
        model.save_pretrained(scratch)
        for name in ["config.json", "model.safetensors"]:
            shutil.copy(os.path.join(scratch, name), folder)
    torch.save(model.state_dict(), os.path.join(folder, "pytorch_model.bin"))
    old = os.path.join(folder, "pytorch_model-old.bin")
    torch.save(model.state_dict(), old, _use_new_zipfile_serialization=False)
    cases = [
        {"text": text, "tokens": tokens, "logits": values}
        for text, (tokens, values) in zip(TEXTS, logits(model, tokenizer, TEXTS, 64))
    ]
    with open(os.path.join(folder, "expected.json"), "w", encoding="utf-8") as file:
        lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
        file.write(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main(sys.argv[1])
