"""How much faster a score is than the decode of the same tokens, both recorded.

    python benchmarks/score_over_decode.py [MODEL_FOLDER] [--dtype bfloat16] [--tokens 64] [--rounds 5] [--device cpu]

Prints a line and JSON. Budget: at least 10 times faster for 64 tokens.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from recording_overhead import PROMPT, default_folder, load, seconds

from driftpin.trace.probe import Shape
from runner.engines.bench import decode, score

BUDGET = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    folder = options.folder or default_folder(options.dtype)
    bench = load(folder, options.dtype, options.device)
    ids = bench.vocabulary.filler(0, PROMPT)
    arguments = {"max_new_tokens": options.tokens, "do_sample": False, "pad_token_id": 0}
    output_ids = decode(bench, ids, Shape.ALONE, arguments).output_ids
    score(bench, ids, Shape.ALONE, output_ids, options.tokens)
    pairs = [
        (
            seconds(lambda: decode(bench, ids, Shape.ALONE, arguments)),
            seconds(lambda: score(bench, ids, Shape.ALONE, output_ids, options.tokens)),
        )
        for _ in range(options.rounds)
    ]
    times = {"decode": min(a for a, _ in pairs), "score": min(b for _, b in pairs)}
    ratio = times["decode"] / times["score"]
    print(f"score is {ratio:.1f} x faster than decode   budget {BUDGET:.0f} x   {'ok' if ratio >= BUDGET else 'SLOW'}")
    print(json.dumps({"model": folder.name, "dtype": options.dtype, "seconds": times, "ratio": ratio}))


if __name__ == "__main__":
    main()
