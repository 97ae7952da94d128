"""Lengths at which a model computes otherwise, read from its configuration, and which canaries lie on which side. Pure.

Knows configurations as the transformers library completes them (`to_dict`), of both generations: `rope_parameters` or
`rope_scaling`, whole or per layer type. A length that is only in a model's code is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from driftpin.suite.finding import Finding, FindingKind, Level
from driftpin.suite.warnings import CHARACTERS_PER_TOKEN

TILES = (128, 256)  # rows of a prefill at which matrix multiplications and attention commonly take another tile
COSTLY = 32_768  # tokens: a canary of this length is more than most suites can pay for
MARGIN = 16  # a suggested prompt is longer than the length by a part in 16: canaries shrink with the tokenizer
DYNAMIC = "rope dynamic"  # the one length that may equal the model's own: it is made to go beyond
MAX_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length")

Config = Mapping[str, Any]


class Side(StrEnum):
    """Where a canary lies, seen from a length."""

    BELOW = "below"  # prompt and output together do not exceed it
    ACROSS = "across"  # the prompt does not, the output goes beyond
    BEYOND = "beyond"  # the prompt alone exceeds it


@dataclass(frozen=True, kw_only=True)
class Length:
    """Tokens of one canary: of its prompt, and in all that the model was fed (the last output token never is)."""

    canary: str
    prompt: int
    fed: int


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """A number of tokens beyond which the model computes otherwise, and how."""

    name: str  # the configuration's own word
    at: int
    why: str  # what happens beyond, as the end of a sentence
    level: Level = Level.WARNING  # of a suite that does not cross it
    prefill_only: bool = False  # only the prompt's length matters


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """A threshold and the canaries on its sides."""

    threshold: Threshold
    sides: Mapping[Side, tuple[str, ...]]

    @property
    def crossed(self) -> bool:
        """True when the suite sees the model on both sides."""
        return bool(self.sides[Side.BELOW]) and bool(self.sides[Side.ACROSS] or self.sides[Side.BEYOND])

    def to_json(self) -> dict[str, Any]:
        """As `driftpin suite check --format json` shows it."""
        return {
            "name": self.threshold.name,
            "at": self.threshold.at,
            "why": self.threshold.why,
            "crossed": self.crossed,
            **{side.value: list(canaries) for side, canaries in self.sides.items()},
        }


def thresholds(config: Config) -> tuple[Threshold, ...]:
    """The lengths of one configuration, shortest first; the tiles of prefills are among them whatever it says."""
    found = [*_tiles(), *_windows(config), *_ropes(config), *_temperature(config)]
    limit = max_positions(config)
    within = {(t.name, t.at): t for t in found if limit is None or t.at < limit or t.name == DYNAMIC}
    return tuple(sorted(within.values(), key=lambda threshold: (threshold.at, threshold.name)))


def max_positions(config: Config) -> int | None:
    """How many positions the model has, or None where its configuration does not say."""
    return next((limit for name in MAX_POSITIONS if (limit := _whole(config.get(name))) is not None), None)


def crossings(found: Iterable[Threshold], lengths: Sequence[Length]) -> tuple[Crossing, ...]:
    """Each threshold with its sides."""
    return tuple(
        Crossing(
            threshold=threshold,
            sides={side: tuple(n.canary for n in lengths if side_of(n, threshold) is side) for side in Side},
        )
        for threshold in found
    )


def side_of(length: Length, threshold: Threshold) -> Side:
    """Where a canary lies; the output does not count where only prefills matter."""
    if length.prompt > threshold.at:
        return Side.BEYOND
    return Side.ACROSS if length.fed > threshold.at and not threshold.prefill_only else Side.BELOW


def length_findings(found: Iterable[Crossing], lengths: Sequence[Length], config: Config) -> Iterator[Finding]:
    """What is not crossed, with a length to add; and canaries that are longer than the model's positions."""
    for crossing in found:
        if not crossing.crossed and lengths:
            yield _not_crossed(crossing, lengths)
    limit = max_positions(config)
    stretched = any(rope.get("rope_type") == "dynamic" for _, rope in _rope_tables(config))  # made to go beyond
    long = () if limit is None or stretched else tuple(n.canary for n in lengths if n.fed > limit)
    if long:
        yield Finding(
            kind=FindingKind.TOO_LONG,
            level=Level.WARNING,
            sentence=f"{_listed(long)}: longer than the {limit} positions that the model has "
            f"(at most {max(n.fed for n in lengths)} tokens).",
            remedy=f"Shorten prompt or max_new_tokens to {limit} tokens in all.",
            canaries=long,
        )


def remembered(config: Config) -> str | None:
    """What a model of that configuration keeps between prompts, as a sentence; None where nothing is known of any."""
    kinds = {str(rope.get("rope_type") or rope.get("type")) for _, rope in _rope_tables(config)}
    if "dynamic" in kinds:
        return "The model keeps the rotary frequencies of its longest prompt for shorter ones (rope_type dynamic)."
    if "longrope" in kinds:
        return "The model may keep the long table of rotary frequencies for a shorter prompt (rope_type longrope)."
    return None


def static_cache(lengths: Sequence[Length], limits: Mapping[str, int], padding: int, step: int) -> Finding | None:
    """What a longer canary would do to a target with a static cache: its length is one for the whole suite.

    `limits` are the canaries' max_new_tokens; `padding` and `step` are the runner's: longest + padding, rounded up.
    """
    if not lengths:
        return None
    longest = max(lengths, key=lambda n: n.prompt + limits[n.canary])
    tokens = longest.prompt + limits[longest.canary]
    edge = -(-(tokens + padding) // step) * step
    return Finding(
        kind=FindingKind.CACHE_EDGE,
        level=Level.NOTE,
        sentence=f"The static cache holds {edge} tokens for every canary, because of {longest.canary!r} "
        f"({tokens} tokens, prompt and max_new_tokens).",
        remedy=f"A canary of more than {edge - padding} tokens would change the bits of all: bless again after that.",
        canaries=(longest.canary,),
    )


def _tiles() -> Iterator[Threshold]:
    for at in TILES:
        why = "prefills commonly take other tiles of matrix multiplication and attention"
        yield Threshold(name="prefill tile", at=at, why=why, level=Level.NOTE, prefill_only=True)


def _windows(config: Config) -> Iterator[Threshold]:
    for name, kind, does in WINDOWS:
        at = _whole(config.get(name))
        kinds = config.get("layer_types") or config.get("attention_layers")
        share = [str(k) for k in kinds].count(kind) if kinds else None
        if at is None or share == 0:
            continue
        which = "every layer" if share is None or share == len(kinds or ()) else f"{share} of {len(kinds or ())} layers"
        yield _threshold(name, at, f"{which} {does}")


WINDOWS = (  # the configuration's name, its layers' kind, what such a layer does beyond that many tokens
    ("sliding_window", "sliding_attention", "can no longer see the first tokens"),
    ("attention_chunk_size", "chunked_attention", "begins a new chunk and can no longer see the one before"),
    ("window_size", "local", "can no longer see the first tokens"),
)


def _ropes(config: Config) -> Iterator[Threshold]:
    for part, rope in _rope_tables(config):
        kind = str(rope.get("rope_type") or rope.get("type") or "default")
        at = _whole(rope.get("original_max_position_embeddings") or config.get("original_max_position_embeddings"))
        if kind == "dynamic":  # the library switches at the model's own length, whatever the original one was
            at = max_positions(config)
        if at is None or kind not in ROPES:
            continue
        yield _threshold(f"rope {kind}", at, ROPES[kind] + (f" in {part} layers" if part else ""))


ROPES = {
    "dynamic": "rotary frequencies are computed anew for each longer length",
    "longrope": "the model takes its other table of rotary frequencies",
    "yarn": "positions lie outside the range that was trained before yarn stretched it",
    "llama3": "positions lie outside the range that was trained before the frequencies were stretched",
}


def _rope_tables(config: Config) -> Iterator[tuple[str, Config]]:
    """The tables of rotary parameters, by layer type where they are ("" for all layers)."""
    tables = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(tables, Mapping):
        return
    nested = [(str(name), table) for name, table in tables.items() if isinstance(table, Mapping)]
    if nested and not ("rope_type" in tables or "type" in tables):
        yield from nested
    else:
        yield "", tables


def _temperature(config: Config) -> Iterator[Threshold]:
    at = _whole(config.get("floor_scale"))
    if at is not None and config.get("attn_temperature_tuning"):
        yield _threshold("floor_scale", at, "attention is sharpened by a temperature that grows with the position")
    for _, rope in _rope_tables(config):
        at = _whole(rope.get("original_max_position_embeddings"))
        if at is not None and rope.get("llama_4_scaling_beta"):
            yield _threshold("llama_4_scaling_beta", at, "queries are scaled by a factor that grows with the position")


def _threshold(name: str, at: int, why: str) -> Threshold:
    return Threshold(name=name, at=at, why=why, level=Level.NOTE if at > COSTLY else Level.WARNING)


def _not_crossed(crossing: Crossing, lengths: Sequence[Length]) -> Finding:
    threshold = crossing.threshold
    unit = "prompt" if threshold.prefill_only else "canary"
    if crossing.sides[Side.BELOW]:
        longest = max(n.prompt if threshold.prefill_only else n.fed for n in lengths)
        wanted = threshold.at + threshold.at // MARGIN
        said = f"No {unit} goes beyond {threshold.name} = {threshold.at} tokens (the longest has {longest}), where"
        remedy = f"Add a prompt of about {wanted} tokens, some {wanted * CHARACTERS_PER_TOKEN:,} characters of English."
        if threshold.at > COSTLY:
            remedy += " It is costly; leave it out if your users never send as much."
    else:
        wanted = threshold.at - max(1, threshold.at // MARGIN)
        shortest = min(n.prompt for n in lengths)
        said = f"Every {unit} goes beyond {threshold.name} = {threshold.at} tokens (the shortest has {shortest}), where"
        remedy = f"Add a canary of at most {wanted} tokens, prompt and output together."
    return Finding(
        kind=FindingKind.LENGTH_NOT_CROSSED,
        level=threshold.level,
        sentence=f"{said} {threshold.why}.",
        remedy=remedy,
    )


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
