"""Comparing two heads: prompt, declaration, first divergence and movement. Pure functions of arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from driftpin.comparison.facts import Divergence, Movement, PromptDifference, TopMoved
from driftpin.trace.head import Head
from driftpin.trace.probe import Probe
from driftpin.trace.text import TraceText

SHOWN_IDS = 8
MANTISSA_BITS = {"bfloat16": 7, "float16": 10, "float32": 23}
SHOWN_CHARACTERS = 60


def mismatched_declaration(a: Head, b: Head) -> tuple[str, ...]:
    """One sentence per identity fact that differs, for example 'k: 20 in the baseline, 5 in the candidate'."""
    old, new = a.declared.to_json(), b.declared.to_json()
    if _class(a.declared.cache) != _class(b.declared.cache):
        # Another cache class is another stack (`cache.class`), to be judged like any; another length of one is not.
        del old["cache"]
    differing = [f"{n}: {old[n]} in the baseline, {new[n]} in the candidate" for n in old if old[n] != new[n]]
    if a.declared.probe is b.declared.probe is Probe.SCORE and not np.array_equal(a.output_ids, b.output_ids):
        differing.append("the two scores were forced on different tokens")
    return tuple(differing)


def _class(cache: str) -> str:
    """The class in "StaticCache:512"."""
    return cache.partition(":")[0]


def prompt_difference(a: Head, b: Head, text_a: TraceText, text_b: TraceText) -> PromptDifference | None:
    """None where prompt ids and rendered text agree."""
    index = first_difference(a.prompt_ids, b.prompt_ids)
    text_differs = text_a.rendered != text_b.rendered
    if index is None and not text_differs:
        return None
    start = index or 0
    return PromptDifference(
        index=index,
        baseline_ids=tuple(int(i) for i in a.prompt_ids[start : start + SHOWN_IDS]),
        candidate_ids=tuple(int(i) for i in b.prompt_ids[start : start + SHOWN_IDS]),
        lengths=(len(a.prompt_ids), len(b.prompt_ids)),
        text_differs=text_differs,
    )


def first_difference(a: NDArray[np.int32], b: NDArray[np.int32]) -> int | None:
    """The first index at which two id rows differ, the shorter one's end included; None where they are equal."""
    common = min(len(a), len(b))
    differing = np.flatnonzero(a[:common] != b[:common])
    if len(differing):
        return int(differing[0])
    return None if len(a) == len(b) else common


def identical(a: Head, b: Head) -> bool:
    """Equal prompt ids, output ids and logit digests; nothing derived is asked."""
    return (
        np.array_equal(a.prompt_ids, b.prompt_ids)
        and np.array_equal(a.output_ids, b.output_ids)
        and np.array_equal(a.digest, b.digest)
        and (a.dtype, a.vocab) == (b.dtype, b.vocab)
    )


def divergence(a: Head, b: Head, text_a: TraceText, text_b: TraceText) -> Divergence | None:
    """The first differing output position with its margins, movement and the text around it."""
    at = first_difference(a.output_ids, b.output_ids)
    if at is None:
        return None
    id_a, id_b = _at(a.output_ids, at), _at(b.output_ids, at)
    moved, missing = _pair_movement(a, b, at, id_a, id_b)
    return Divergence(
        position=at,
        baseline_id=id_a,
        candidate_id=id_b,
        baseline_margin=_float_at(a.margin, at),
        candidate_margin=_float_at(b.margin, at),
        movement=moved,
        missing=missing,
        both_top=is_top(a, at, id_a) and is_top(b, at, id_b),
        ulp=_ulp(a, b, at),
        before=_text(text_a.pieces[:at])[-SHOWN_CHARACTERS:],
        baseline_text=_text(text_a.pieces[at:])[:SHOWN_CHARACTERS],
        candidate_text=_text(text_b.pieces[at:])[:SHOWN_CHARACTERS],
    )


def is_top(head: Head, at: int, emitted: int | None) -> bool:
    """True when an id is among the arg-maxes of the raw logits."""
    if emitted is None or at >= len(head.topk_ids):
        return False
    tops = head.topk_ids[at][head.topk_logits[at] == head.topk_logits[at][0]]
    return bool((tops == emitted).any())


def _ulp(a: Head, b: Head, at: int) -> float | None:
    if at >= min(len(a.topk_logits), len(b.topk_logits)):
        return None
    largest = max(abs(float(a.topk_logits[at][0])), abs(float(b.topk_logits[at][0])))
    return None if not np.isfinite(largest) else unit_in_last_place(largest, b.dtype)


def top_moved(a: Head, b: Head) -> TopMoved | None:
    """Where two scores of the same tokens first have another arg-max: there greedy decodes part. None: nowhere."""
    count = min(len(a.topk_ids), len(b.topk_ids))
    at = first_difference(a.topk_ids[:count, :1].ravel(), b.topk_ids[:count, :1].ravel())
    if at is None:
        return None
    moved, _ = _pair_movement(a, b, at, int(a.topk_ids[at, 0]), int(b.topk_ids[at, 0]))
    return TopMoved(position=at, movement=moved, ulp=_ulp(a, b, at))


def unit_in_last_place(value: float, dtype: str) -> float:
    """The distance from |value| to the next number of that dtype above: 2^(exponent − mantissa bits)."""
    if value == 0:
        return 0.0
    return float(2.0 ** (np.floor(np.log2(value)) - MANTISSA_BITS.get(dtype, MANTISSA_BITS["float32"])))


def movement(a: Head, b: Head) -> Movement | None:
    """Movement over the shared context: all positions up to the first divergence; None where there is none.

    A position at which ids differ still had the same context, but two different tokens were emitted: its logits
    count as moved, its log-probability does not count.
    """
    at = first_difference(a.output_ids, b.output_ids)
    shared = min(len(a.output_ids), len(b.output_ids)) if at is None else at
    seen = min(shared + (at is not None), len(a.digest), len(b.digest))
    if not seen:
        return None
    moved = np.flatnonzero(a.digest[:seen] != b.digest[:seen])
    delta = np.abs(a.logprob[:shared].astype(np.float64) - b.logprob[:shared].astype(np.float64))
    pairs = top_pair_movements(a, b, seen)
    return Movement(
        positions=seen,
        moved=len(moved),
        first_moved=int(moved[0]) if len(moved) else None,
        mean_abs_logprob=float(delta.mean()) if len(delta) else 0.0,
        max_abs_logprob=float(delta.max()) if len(delta) else 0.0,
        max_pair=float(pairs.max()) if len(pairs) else None,
    )


def top_pair_movements(a: Head, b: Head, count: int) -> NDArray[np.float64]:
    """|movement| of the baseline's top-1/top-2 difference at each of the first `count` positions that b kept."""
    if a.topk_ids.shape[1] < 2 or not count:
        return np.zeros(0)
    first, second = _logits_of(b, a.topk_ids[:count, 0]), _logits_of(b, a.topk_ids[:count, 1])
    old = a.topk_logits[:count, 0].astype(np.float64) - a.topk_logits[:count, 1]
    moved = np.abs(old - (first - second))
    return moved[np.isfinite(moved)]


def _logits_of(head: Head, ids: NDArray[np.int32]) -> NDArray[np.float64]:
    """Logits of one id per position, NaN where it is not among the kept alternatives; [n]."""
    hit = head.topk_ids[: len(ids)] == ids[:, None]
    logits = np.where(hit, head.topk_logits[: len(ids)].astype(np.float64), 0.0).sum(axis=1)
    return np.where(hit.any(axis=1), logits, np.nan)


def _pair_movement(a: Head, b: Head, at: int, id_a: int | None, id_b: int | None) -> tuple[float | None, str | None]:
    if id_a is None or id_b is None:
        return None, "one output ended here"
    sides = {"baseline": kept_pair(a, at, id_a, id_b), "candidate": kept_pair(b, at, id_a, id_b)}
    for name, pair in sides.items():
        if pair is None:
            return None, f"the {name} kept no logit for one of the two tokens"
    (a_a, a_b), (b_a, b_b) = sides["baseline"] or (0, 0), sides["candidate"] or (0, 0)
    moved = (a_a - a_b) - (b_a - b_b)
    return (moved, None) if np.isfinite(moved) else (None, "a logit is not finite")


def kept_pair(head: Head, at: int, id_a: int, id_b: int) -> tuple[float, float] | None:
    """Logits of two ids at one position, or None where the kept alternatives lack one."""
    kept = dict(zip(head.topk_ids[at].tolist(), head.topk_logits[at].tolist(), strict=True))
    return (kept[id_a], kept[id_b]) if id_a in kept and id_b in kept else None


def _at(ids: NDArray[np.int32], index: int) -> int | None:
    return int(ids[index]) if index < len(ids) else None


def _float_at(values: NDArray[np.float32], index: int) -> float | None:
    return float(values[index]) if index < len(values) else None


def _text(pieces: tuple[bytes, ...]) -> str:
    return b"".join(pieces).decode("utf-8", errors="replace")
