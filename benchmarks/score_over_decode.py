"""How much faster a score is than the decode of the same tokens, both recorded.

    python benchmarks/score_over_decode.py [MODEL_FOLDER] [--dtype bfloat16] [--tokens 64] [--rounds 5] [--format json]

Budget: at least 10 times faster for 64 tokens.
"""

from __future__ import annotations

from pathlib import Path

import torch
from _bench import Line, parser, report
from recording_overhead import PROMPT, default_folder, load, seconds

from driftpin.trace.probe import Shape
from runner.engines.bench import decode, score

BUDGET = 10.0


def main() -> None:
    given = parser(__doc__)
    given.add_argument("folder", nargs="?", type=Path)
    given.add_argument("--dtype", default="bfloat16")
    given.add_argument("--device", default="cpu")
    given.add_argument("--tokens", type=int, default=64)
    given.add_argument("--rounds", type=int, default=5)
    given.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = given.parse_args()
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
    line = Line(what="score over decode", measured=ratio, unit="x", budget=BUDGET, at_least=True)
    report([line], options.format, model=folder.name, dtype=options.dtype, seconds=times)


if __name__ == "__main__":
    main()
