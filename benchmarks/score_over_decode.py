"""How much faster a score is than the decode of the same tokens, both recorded.

    python benchmarks/score_over_decode.py [MODEL_FOLDER] [--dtype bfloat16] [--tokens 64] [--rounds 5] [--format json]

Budget: at least 10 times faster for 64 tokens.
"""

from __future__ import annotations

import torch
from _bench import Line, report
from recording_overhead import PROMPT, default_folder, load, model_parser, seconds

from driftpin.trace.probe import Shape
from runner.engines.bench import decode, score

BUDGET = 10.0


def main() -> None:
    options = model_parser(__doc__).parse_args()
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
