"""The scorers against others on the same texts, taking turns; best of several passes each.

Called by scripts/bench-scorers, which sets BENCH to the program of examples/bench_scorers.rs. Texts come from the folder
that HEADWATER_DATA names (../shared/data). Parts: builtin (against VADER in Python), roberta (speed against torch and
onnxruntime at base size), logits (base size) and tokens (every tweet there) against transformers.
"""

import csv
import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time

DATA = os.environ.get("HEADWATER_DATA", "../shared/data")
csv.field_size_limit(1 << 24)


class Ours:
    """Our program, one pass per line."""

    def __init__(self, *arguments):
        command = [os.environ["BENCH"], *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline().strip() == "ready"

    def __call__(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def timed(function):
    def run():
        started = time.perf_counter()
        function()
        return time.perf_counter() - started

    return run


def turns(rounds, **sides):
    """Best time of each side; the sides take turns, so that a busy machine is busy for all."""
    best = {}
    for _ in range(rounds):
        for name, side in sides.items():
            best[name] = min(best.get(name, float("inf")), side())
    return best


def dump(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)
    return path


def semeval():
    with open(os.path.join(DATA, "sentiment/semeval2013_2016_train.csv"), encoding="utf-8", newline="") as file:
        return [row["text"] for row in csv.DictReader(file)]


def every_tweet():
    texts = semeval()
    with open(os.path.join(DATA, "sentiment/vader_tweets_rated.csv"), encoding="utf-8", newline="") as file:
        texts += [row["text"] for row in csv.DictReader(file)]
    for path in sorted(glob.glob(os.path.join(DATA, "*/*.csv*"))):
        opened = gzip.open if path.endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if "sentiment" not in path and "text" in (reader.fieldnames or []):
                texts += [row["text"] for row in reader]
    return texts


def builtin(folder):
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    texts = semeval()
    ours = Ours("builtin", dump(folder, "texts.json", texts))
    few = texts[::20]
    vader = SentimentIntensityAnalyzer()
    best = turns(7, ours=ours, vader=timed(lambda: [vader.polarity_scores(text) for text in few]))
    ours.close()
    rates = {"ours": len(texts) / best["ours"], "vader": len(few) / best["vader"]}
    print(f"builtin: {rates['ours']:.0f} posts/s, VADER in Python: {rates['vader']:.0f} posts/s, "
          f"ratio {rates['ours'] / rates['vader']:.1f}")


def tweet_tokenizer(folder):
    """A tokenizer trained on the tweets."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaTokenizerFast

    from make_roberta_fixture import SPECIAL

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(semeval()[:20000], vocab_size=20000, special_tokens=SPECIAL, show_progress=False)
    trained.save_model(folder)
    tokenizer = RobertaTokenizerFast.from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return tokenizer


def base_model(folder, positions):
    """A random model of base size with that tokenizer."""
    import torch
    from transformers import RobertaConfig

    from make_roberta_fixture import random_model

    tokenizer = tweet_tokenizer(folder)
    config = RobertaConfig(vocab_size=50265, max_position_embeddings=positions, type_vocab_size=1, layer_norm_eps=1e-5,
                           num_labels=3)
    model = random_model(config, 2)
    model.save_pretrained(folder)
    torch.set_num_threads(2)
    return model, tokenizer


def roberta(folder):
    import torch

    # 66 positions cut every text to 64 tokens.
    model, tokenizer = base_model(folder, 66)
    tweets = semeval()
    texts = [" ".join(tweets[8 * i : 8 * i + 8]) for i in range(16)]
    logits = os.path.join(folder, "logits.json")
    ours = Ours("roberta", dump(folder, "texts.json", texts), folder, logits)
    with open(logits, encoding="utf-8") as file:
        found = json.load(file)
    ids = torch.tensor(found["tokens"])
    assert ids.shape == (16, 64) and len({tuple(row) for row in found["tokens"]}) == 16
    mask = torch.ones_like(ids)

    def torch_pass():
        with torch.no_grad():
            return model(input_ids=ids, attention_mask=mask).logits

    worst = (torch_pass() - torch.tensor(found["logits"])).abs().max().item()
    sides = {"ours": ours, "torch": timed(torch_pass)}
    try:
        import onnxruntime

        path = os.path.join(folder, "model.onnx")
        torch.onnx.export(model, (ids, mask), path, input_names=["ids", "mask"], output_names=["logits"], dynamo=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        inputs = {name.name: value.numpy() for name, value in zip(session.get_inputs(), (ids, mask))}
        sides["onnxruntime"] = timed(lambda: session.run(None, inputs))
    except Exception as error:  # the exporter needs more packages on some versions
        print(f"onnxruntime not measured: {type(error).__name__}: {str(error)[:200]}")
    best = turns(int(os.environ.get("ROUNDS", "12")), **sides)
    ours.close()
    rates = {name: 16 / seconds for name, seconds in best.items()}
    print("roberta base, 16 distinct texts of 64 tokens, two threads, texts/s: "
          + ", ".join(f"{name} {rate:.1f}" for name, rate in rates.items()))
    print(", ".join(f"{100 * rates['ours'] / rate:.0f} % of {name}" for name, rate in rates.items() if name != "ours")
          + f"; largest difference of logits {worst:.1e}")


def logits(folder):
    from make_roberta_fixture import logits as transformers_logits

    model, tokenizer = base_model(folder, 514)
    texts = sorted(set(every_tweet()))
    few = texts[:: len(texts) // 89][:89]
    path = os.path.join(folder, "found.json")
    Ours("roberta", dump(folder, "few.json", few), folder, path).close()
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    worst = 0.0
    right = transformers_logits(model, tokenizer, few, 512)
    for (tokens, values), ours, numbers in zip(right, found["logits"], found["tokens"]):
        assert tokens == numbers
        worst = max(worst, max(abs(a - b) for a, b in zip(values, ours)))
    print(f"logits at base size: {len(few)} tweets, largest difference {worst:.1e}")


def tokens(folder):
    from transformers import RobertaConfig

    from make_roberta_fixture import normalised, random_model

    tokenizer = tweet_tokenizer(folder)
    # One small layer: only the tokens are looked at.
    config = RobertaConfig(vocab_size=20000, hidden_size=4, num_hidden_layers=1, num_attention_heads=1,
                           intermediate_size=4, max_position_embeddings=514, type_vocab_size=1, num_labels=3)
    random_model(config, 3).save_pretrained(folder)
    texts = every_tweet()
    path = os.path.join(folder, "found.json")
    Ours("roberta", dump(folder, "all.json", texts), folder, path).close()
    with open(path, encoding="utf-8") as file:
        found = json.load(file)["tokens"]
    assert len(found) == len(texts)
    different = 0
    for start in range(0, len(texts), 10000):
        block = [normalised(text) for text in texts[start : start + 10000]]
        right = tokenizer(block, truncation=True, max_length=512)["input_ids"]
        different += sum(a != b for a, b in zip(right, found[start:]))
    print(f"tokens: {len(texts)} tweets, {different} different")


if __name__ == "__main__":
    parts = {"builtin": builtin, "roberta": roberta, "logits": logits, "tokens": tokens}
    for part in sys.argv[1:] or parts:
        with tempfile.TemporaryDirectory() as scratch:
            parts[part](scratch)
