"""Bytes that a new trace takes in the store, compressed as stored: a real decode and the score of its tokens.

    python benchmarks/trace_bytes.py [MODEL_FOLDER] [--dtype bfloat16] [--tokens 128] [--format json]

Budget for 128 tokens and 30 blocks: at most 16 KiB for a head and 32 KiB for layers. A score records its prompt's
positions too, so its layers are scaled to 128 positions; the blob as stored is shown beside it.
"""

from __future__ import annotations

from pathlib import Path

from _bench import Line, parser, report

from driftpin.settings.recipe import Recipe
from driftpin.store.packed import pack
from driftpin.suite.canary import Canary, CanarySettings, Message, Suite
from driftpin.trace.probe import Arm, Probe, TraceKey
from driftpin.trace.traceset import Trace
from runner.demo_weights import ensure_smollm2
from runner.engines.registry import build

HEAD, LAYERS = 16, 32  # KiB
ASKED = "Write a long story about a lighthouse and its keeper, in great detail."


def traces(folder: Path, dtype: str, tokens: int) -> list[Trace]:
    messages = (Message(role="user", content=ASKED),)
    canary = Canary(id="story", messages=messages, settings=CanarySettings(max_new_tokens=tokens))
    recipe = Recipe(engine="transformers", model=folder.name, path=str(folder), dtype=dtype)
    engine = build(recipe, Arm.NATIVE, Suite(name="bench", canaries=(canary,)))
    engine.load()
    rendered = engine.render(canary, None)
    decoded = engine.decode(TraceKey(canary=canary.id, probe=Probe.DECODE), canary, rendered)
    output_ids = decoded.head.output_ids.tolist()
    return [decoded, engine.score(TraceKey(canary=canary.id, probe=Probe.SCORE), canary, rendered, output_ids)]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("folder", nargs="?", type=Path)
    options.add_argument("--dtype", default="bfloat16")
    options.add_argument("--tokens", type=int, default=128)
    given = options.parse_args()
    lines = []
    for trace in traces(given.folder or ensure_smollm2(given.dtype), given.dtype, given.tokens):
        assert trace.layers is not None
        size = f"{len(trace.head.output_ids)} tokens x {len(trace.layers.blocks)} blocks"
        for part, budget in (("head", HEAD), ("layers", LAYERS)):
            stored = len(pack(getattr(trace, part).to_bytes())) / 1024
            positions = trace.layers.cells.shape[1]
            if part == "layers" and positions > given.tokens:
                lines.append(
                    Line(what=f"{trace.key.probe} layers as stored, {positions} positions", measured=stored, unit="KiB")
                )
                stored *= given.tokens / positions
            lines.append(Line(what=f"{trace.key.probe} {part}, {size}", measured=stored, unit="KiB", budget=budget))
    report(lines, given.format, dtype=given.dtype)


if __name__ == "__main__":
    main()
