#!/usr/bin/env python3
"""Byte-pair vocabularies and ids from the libraries that others use: tiktoken, tokenizers and, if there, transformers.

    byte_pairs.py golden                         writes tests/golden/byte_pairs/, which tests/byte_pair_test.cpp reads
    byte_pairs.py compare ZEROTRAIN [RANKS] [--megabytes N] [--text FILE]
                                                 trains vocabularies with the program and with tokenizers, and encodes
                                                 mixed texts with all; ends with 1 where one id differs. RANKS: a tiktoken
                                                 file, as GPT-2's, to do the same with

Needs Python with tiktoken, tokenizers and regex (golden was written with tiktoken 0.14.0, tokenizers 0.23.3).
"""

import argparse
import base64
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import tiktoken
import tokenizers
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden" / "byte_pairs"
SIGN = "<|endoftext|>"
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""

WORDS = ["the", " quick", "brown ", "fox's", "they're", "I'VE", "we'll", "don't", " 'tis", "''s", "it'd", "'m",
         "can't've", "\u2019s"]
SCRIPTS = [(0x20, 0x7e), (0xa0, 0x24f), (0x300, 0x36f), (0x370, 0x3ff), (0x400, 0x4ff), (0x531, 0x58a), (0x591, 0x5f4),
           (0x600, 0x6ff), (0x900, 0x97f), (0xb80, 0xbff), (0xe01, 0xe5b), (0x10a0, 0x10ff), (0x1100, 0x11ff),
           (0x1200, 0x137c), (0x13a0, 0x13f5), (0x1c80, 0x1c8a), (0x1e00, 0x1eff), (0x2000, 0x206f), (0x2070, 0x209c),
           (0x20a0, 0x20c0), (0x2100, 0x218b), (0x2190, 0x23ff), (0x2460, 0x24ff), (0x2600, 0x27bf), (0x2c00, 0x2c5f),
           (0x3000, 0x30ff), (0x3200, 0x32ff), (0x4e00, 0x9fff), (0xa7c0, 0xa7ff), (0xac00, 0xd7a3), (0xe000, 0xe010),
           (0xfb00, 0xfb4f), (0xff00, 0xffef), (0x10100, 0x1013f), (0x10d40, 0x10d8f), (0x11380, 0x113e2),
           (0x12000, 0x1247f), (0x13460, 0x13500), (0x16100, 0x1613a), (0x1d400, 0x1d7ff), (0x1f300, 0x1faff),
           (0x20000, 0x20100), (0x2ebf0, 0x2ee60), (0x3d000, 0x3d010), (0xe0000, 0xe007f), (0x10ffff, 0x10ffff)]
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n", "\n ", "\x0b", "\x0c", "\x85", "\xa0", "\u1680", "\u2003",
          "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u200b", "\ufeff", "\x1c", "\x1f", "\x00", " " * 40,
          "\n" * 30, "\t \t"]
CLUSTERS = ["\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f3f3\ufe0f\u200d\U0001f308", "\U0001f1e9\U0001f1ea",
            "\U0001f44d\U0001f3fd", "e\u0301", "n\u0303o", "\u0915\u094d\u0937\u093f", "\u0e01\u0e33"]


def mixed_text(size, seed):
    """Many scripts, emoji, combining marks, long runs, every kind of space: about `size` bytes in UTF-8."""
    r = random.Random(seed)
    parts, length = [], 0
    longest = max(100, min(6000, size // 20))
    while length < size:
        kind = r.random()
        if kind < .35:
            part = r.choice(WORDS)
        elif kind < .6:
            first, last = r.choice(SCRIPTS)
            part = "".join(chr(r.randint(first, last)) for _ in range(r.randint(1, 12)))
        elif kind < .8:
            part = r.choice(SPACES)
        elif kind < .88:
            part = r.choice(CLUSTERS) * r.randint(1, 3)
        elif kind < .93:
            part = str(r.randint(0, 10 ** r.randint(1, 20)))
        elif kind < .97:
            part = "".join(r.choice("!?.,;:-_#'\"()[]{}<>|/\\") for _ in range(r.randint(1, 9)))
        elif kind < .995:
            part = r.choice("aeA1. \n\u4e2d\u00e9") * r.randint(50, min(400, longest))
        else:
            part = r.choice("ab1=\n ") * r.randint(longest // 3, longest)
        if r.random() < .3:
            part = " " + part
        parts.append(part)
        length += len(part.encode())
    return "".join(parts)


def broken_bytes(size, seed):
    """UTF-8 with bytes that belong to no character, of letters and signs that every version of Unicode knows."""
    r = random.Random(seed)
    parts = []
    while sum(map(len, parts)) < size:
        parts.append(r.choice([b"\xff", b"\x80\x80", b"\xc3", b"\xe4\xb8", b"\xf0\x9f\x98", b"\xc0\xaf", b"\xed\xa0\x80",
                               b"\xf4\x90\x80\x80", b" ", b"  ", b"word", b" word", b"12", b"!?", b"\n", "\u00e9".encode(),
                               "\u4e2d".encode(), "\U0001f600".encode(), b"'s"]))
    return b"".join(parts)


def train(vocab_size, files=None, texts=None, min_frequency=0):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, min_frequency=min_frequency, special_tokens=[SIGN],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    if files is not None:
        tokenizer.train([str(file) for file in files], trainer)
    else:
        tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def bytes_of_signs():
    """What each character in a byte-level vocabulary stands for: ByteLevel cuts a text of one byte into its sign."""
    own = list(range(0x21, 0x7f)) + list(range(0xa1, 0xad)) + list(range(0xae, 0x100))
    signs = {byte: chr(byte) for byte in own}
    for byte in range(256):
        if byte not in signs:
            signs[byte] = chr(0x100 + len([b for b in range(byte) if b not in own]))
    return {sign: byte for byte, sign in signs.items()}


def ranks_of(tokenizer):
    """The vocabulary for tiktoken: token -> rank. The special token is left out; its id stays free."""
    table = bytes_of_signs()
    return {bytes(table[c] for c in token): i for token, i in tokenizer.get_vocab().items() if token != SIGN}


def encoding(ranks):
    taken = set(ranks.values())
    free = next(i for i in range(len(ranks) + 1) if i not in taken)
    return tiktoken.Encoding("ranks", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={SIGN: free})


def encode_broken(enc, data):
    """Each byte that belongs to no character is a character of its own, which is neither letter, number nor space."""
    import regex
    pieces = regex.findall(PATTERN, data.decode("utf-8", "surrogateescape"))
    return [i for piece in pieces for i in enc._core_bpe.encode_single_piece(piece.encode("utf-8", "surrogateescape"))]


def ranges(characters):
    found = []
    for c in sorted(map(ord, characters)):
        if found and found[-1] == c - 1:
            found[-1] = c
        else:
            found += [c, c]
    return found


def classes():
    """First and last code points of letters, numbers and spaces, as tiktoken and tokenizers have them."""
    text = "".join(chr(c) for c in range(0x110000) if not 0xd800 <= c < 0xe000)
    found = {}
    for name, pattern in (("letter", r"\p{L}"), ("number", r"\p{N}"), ("space", r"\s")):
        enc = tiktoken.Encoding("bytes", pat_str=pattern, mergeable_ranks={bytes([i]): i for i in range(256)},
                                special_tokens={})
        by_tiktoken = bytes(enc.encode_ordinary(text)).decode()
        split = pre_tokenizers.Split(Regex(pattern), behavior="removed", invert=True)
        by_tokenizers = "".join(piece for at in range(0, len(text), 100000)
                                for piece, _ in split.pre_tokenize_str(text[at:at + 100000]))
        assert sorted(by_tiktoken) == sorted(by_tokenizers), "the two libraries differ on " + pattern
        found[name] = ranges(by_tiktoken)
    return found


def write_golden():
    GOLDEN.mkdir(exist_ok=True)
    pages = [(ROOT / page).read_text() for page in ("README.md", "docs/zero.md")] if not (
        GOLDEN / "corpus.txt").exists() else None
    if pages:
        (GOLDEN / "corpus.txt").write_bytes("".join(pages).encode()[:24000] + b"\n" + mixed_text(12000, 11).encode())
    corpus = GOLDEN / "corpus.txt"
    by_line = train(1000, files=[corpus])
    whole = train(600, texts=[corpus.read_bytes().decode()], min_frequency=3)
    by_line.save(str(GOLDEN / "tokenizer.json"), pretty=False)
    table = ranks_of(by_line)
    enc = encoding(table)
    mixed, broken = mixed_text(9000, 7), broken_bytes(1500, 8)
    with_sign = "one" + SIGN + "two  " + SIGN + SIGN + "\n" + SIGN[:-1]
    cases = {
        "tokenizers": tokenizers.__version__, "tiktoken": tiktoken.__version__, "classes": classes(),
        "mixed": {"hex": mixed.encode().hex(), "ids": by_line.encode(mixed).ids, "tiktoken": enc.encode_ordinary(mixed)},
        "broken": {"hex": broken.hex(), "ids": encode_broken(enc, broken)},
        "special": {"hex": with_sign.encode().hex(), "ids": by_line.encode(with_sign).ids,
                    "tiktoken": enc.encode(with_sign, allowed_special="all")},
        "whole": json.loads(whole.to_str())["model"],
    }
    if cases["mixed"]["tiktoken"] == cases["mixed"]["ids"]:
        print("tiktoken and tokenizers agree on the mixed text")
    (GOLDEN / "cases.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")


class Comparison:
    def __init__(self, program, folder):
        self.program, self.folder, self.failed = program, pathlib.Path(folder), 0

    def run(self, *arguments):
        subprocess.run([self.program, "tokenize", "--quiet", "--overwrite", *map(str, arguments)], check=True)

    def tell(self, what, same):
        print(("equal    " if same else "DIFFERS  ") + what, flush=True)
        self.failed += not same

    def ids(self, tokenizer, data):
        import array
        (self.folder / "text").write_bytes(data)
        self.run("--tokenizer", tokenizer, "--input", self.folder / "text", "--output", self.folder / "ids.bin",
                 "--format", "megatron", "--no-end-of-text")
        tokens = (self.folder / "ids.bin").read_bytes()
        wide = (self.folder / "ids.idx").read_bytes()[17] == 4
        return array.array("i" if wide else "H", tokens).tolist()

    def train(self, name, vocab_size, corpus):
        text = corpus.decode()
        (self.folder / "corpus.txt").write_bytes(corpus)
        for whole in (False, True):
            theirs = train(vocab_size, texts=[text]) if whole else train(vocab_size, files=[self.folder / "corpus.txt"])
            ours = self.folder / f"{name}-{whole}.json"
            self.run("--train", "--vocab-size", vocab_size, "--input", self.folder / "corpus.txt", "--output", ours,
                     *(["--documents"] if whole else []))
            read = Tokenizer.from_file(str(ours))
            theirs_model, read_model = (json.loads(t.to_str())["model"] for t in (theirs, read))
            what = f"{name}: vocabulary of {vocab_size}, {'whole documents' if whole else 'line by line'}"
            self.tell(what + ", tokens", theirs_model["vocab"] == read_model["vocab"])
            self.tell(what + ", merges", theirs_model["merges"] == read_model["merges"])
        theirs.save(str(self.folder / "theirs.json"))
        return theirs, self.folder / "theirs.json"

    def compare(self, name, tokenizer_path, enc, fast, data):
        ours = self.ids(tokenizer_path, data)
        text = data.decode()
        if enc is not None:
            self.tell(f"{name}: {len(ours)} ids, tiktoken", ours == enc.encode(text, allowed_special="all"))
            self.tell(f"{name}: text decoded by tiktoken", enc.decode_bytes(ours) == data)
        if fast is not None:
            self.tell(f"{name}: {len(ours)} ids, tokenizers", ours == fast.encode(text).ids)
            try:
                from transformers import PreTrainedTokenizerFast
            except ImportError:
                print("         transformers is not installed")
                return
            wrapped = PreTrainedTokenizerFast(tokenizer_object=fast)
            self.tell(f"{name}: {len(ours)} ids, transformers", ours == wrapped(text)["input_ids"])


def compare(arguments):
    size = int(arguments.megabytes * 1e6)
    with tempfile.TemporaryDirectory() as folder:
        c = Comparison(arguments.program, folder)
        corpora = {"mixed": mixed_text(size, 1).encode(), "pages": b"".join(
            page.read_bytes() for page in sorted(ROOT.glob("docs/*.md")))}
        if arguments.text:
            corpora["text"] = pathlib.Path(arguments.text).read_bytes()
        for name, corpus in corpora.items():
            fast, path = c.train(name, 4000, corpus)
            c.compare(f"{name}, own vocabulary", path, encoding(ranks_of(fast)), None, corpora["mixed"])
            c.compare(f"{name}, own vocabulary", path, None, fast, corpora["mixed"])
        if arguments.ranks:
            lines = pathlib.Path(arguments.ranks).read_text().split("\n")
            enc = encoding({base64.b64decode(line.split()[0]): int(line.split()[1]) for line in lines if line})
            for seed in range(3):
                data = (mixed_text(size, 100 + seed) + SIGN).encode()
                c.compare(f"ranks, mixed text {seed}", arguments.ranks, enc, None, data)
            for name, corpus in corpora.items():
                c.compare(f"ranks, {name}", arguments.ranks, enc, None, corpus)
            broken = broken_bytes(size // 10, 5)
            c.tell("ranks, broken bytes", c.ids(arguments.ranks, broken) == encode_broken(enc, broken))
    return 1 if c.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("golden")
    comparison = verbs.add_parser("compare")
    comparison.add_argument("program")
    comparison.add_argument("ranks", nargs="?")
    comparison.add_argument("--megabytes", type=float, default=1.0)
    comparison.add_argument("--text")
    arguments = parser.parse_args()
    if arguments.verb == "golden":
        write_golden()
        return 0
    return compare(arguments)


if __name__ == "__main__":
    sys.exit(main())
