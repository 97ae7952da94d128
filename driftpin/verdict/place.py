"""Localisation: the block where a difference enters, by bits or by deviation, or why that cannot be said. Pure.

The reference arm is asked first: what moved there is a change of model or input, told without native rounding. A
place is read off scores only where they reproduce what the decode showed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from driftpin.comparison.facts import Comparison, TraceComparison
from driftpin.counting import counted
from driftpin.environment.environment import Equality
from driftpin.trace.probe import Arm, Probe, TraceKey
from driftpin.verdict.floors import Floors
from driftpin.verdict.outcome import is_tie, tie_limit
from driftpin.verdict.place_by_bits import by_bits
from driftpin.verdict.place_by_deviation import by_deviation
from driftpin.verdict.place_value import How, Place, not_localisable

__all__ = ["How", "Place", "localise"]

CHOICE = "behind the logits: {agree} up to the divergence, so the choice differs, not the model"
IN_BITS, IN_ROUNDING = "they agree in every bit", "they agree but for rounding"
INPUT = "the input changed, so nothing after it can be held against the baseline"
DECLARED = "the two sides were declared differently"
DECODE_ONLY = (
    "the divergence shows in decode only; a score of the same tokens does not reproduce it (cache or decode kernel)"
)
EITHER = "; bits part from the first block on, as on another stack, and whether it is the same is undetermined"
Traces = Sequence[TraceComparison]


def localise(
    comparison: Comparison,
    stack: Equality,
    floors: Floors | None = None,
    *,
    reference: Comparison | None = None,
    reference_floors: Floors | None = None,
    reference_stack: Equality | None = None,
) -> Place | None:
    """The place of what moved in the native arm; None when nothing did.

    `reference` is the reference arm's own comparison, where it ran; its stack is the native one's unless given.
    """
    native = _of_arm(comparison, stack, floors)
    if native is None or native.how is How.CHOICE:
        return native and replace(native, arm=Arm.NATIVE.value)
    if reference is not None:
        found = _of_arm(reference, reference_stack or stack, reference_floors)
        if found is not None and found.found:
            return replace(found, arm=Arm.REFERENCE.value)
    return replace(native, arm=Arm.NATIVE.value)


def _of_arm(comparison: Comparison, stack: Equality, floors: Floors | None) -> Place | None:
    moved = [t for t in comparison.changed if not t.identical and not t.prompt and not t.mismatched]
    if not moved:
        return _not_asked(comparison)
    moved = [t for t in moved if t.key.repeat == 0] or moved  # a repeat is no witness of its own
    chosen = [trace for trace in moved if _only_chosen_otherwise(trace, floors)]
    if len(chosen) == len(moved):
        return _choice(chosen)
    flipped = _flipped(moved, floors) - {_score_of(trace) for trace in chosen}
    if _decode_only(moved, comparison, flipped):
        return _in_decode(moved, stack)
    scored = [t for t in moved if t.key.probe is Probe.SCORE and (t.reproduces is not False or t.key not in flipped)]
    found = _in_scores(scored, moved, stack, floors)
    if chosen and not flipped and not found.found:
        return replace(_choice(chosen), sentence=f"{_choice(chosen).sentence}; beside it, {found.sentence}")
    return found


def _in_scores(scored: Traces, moved: Traces, stack: Equality, floors: Floors | None) -> Place:
    if stack is Equality.DIFFERENT:
        return by_deviation(scored, floors)
    either = _on_either_stack(scored, floors) if stack is Equality.UNDETERMINED else None
    return either or by_bits(scored or moved)


def _on_either_stack(scored: Traces, floors: Floors | None) -> Place | None:
    """A block that stands out does so on either stack; None where the bits may be trusted.

    Bits that part from the first block on are what another stack does to all of them.
    """
    found = by_deviation(scored, floors)
    if found.found:
        return found
    if by_bits(scored).index != 0 or floors is None or not floors.blocks:
        return None
    return replace(found, sentence=f"{found.sentence}{EITHER}")


def _not_asked(comparison: Comparison) -> Place | None:
    """Nothing moved that could be compared; said where nothing at all could be."""
    if comparison.identical:
        return None
    if any(trace.prompt for trace in comparison.changed):
        return not_localisable(INPUT)
    if any(trace.mismatched for trace in comparison.changed):
        return not_localisable(DECLARED)
    return None


def _only_chosen_otherwise(trace: TraceComparison, floors: Floors | None) -> bool:
    """Tokens part at logits that did not move, or by no more than rounding moves them, without being a tie.

    A processor or a setting did it.
    """
    at, moved = trace.divergence, trace.movement
    if at is None or moved is None:
        return False
    within = floors is not None and at.movement is not None and abs(at.movement) <= tie_limit(at, floors)
    return moved.moved == 0 or (within and not at.both_top)


def _say(count: int) -> str:
    return f"{counted(count, 'execution')} {'says' if count == 1 else 'say'}"


def _choice(traces: Traces) -> Place:
    exact = all(trace.movement and trace.movement.moved == 0 for trace in traces)
    where = CHOICE.format(agree=IN_BITS if exact else IN_ROUNDING)
    return Place(
        found=True,
        sentence=f"the difference enters {where} (see the sampling settings); {_say(len(traces))} so",
        canary=traces[0].key.canary,
        agreeing=len(traces),
        asked=len(traces),
        how=How.CHOICE,
    )


def _flipped(moved: Traces, floors: Floors | None) -> set[TraceKey]:
    """Keys of the scores that have to reproduce their decode's divergence: a flip at a tie is rounding and has not."""
    return {_score_of(t) for t in moved if t.divergence and not (floors and is_tie(t.divergence, floors))}


def _score_of(trace: TraceComparison) -> TraceKey:
    return replace(trace.key, probe=Probe.SCORE)


def _decode_only(moved: Traces, comparison: Comparison, flipped: set[TraceKey]) -> bool:
    """Decodes moved, and what they showed is in no score of the same tokens."""
    same = {key for key in comparison.identical if key.probe is Probe.SCORE}
    same |= {t.key for t in comparison.changed if t.identical and t.key.probe is Probe.SCORE}
    scores = {t.key: t.reproduces for t in moved if t.key.probe is Probe.SCORE}
    if not scores:
        return bool(same)
    told = [False if key in same else scores.get(key) for key in flipped]
    return False in told and True not in told


def _in_decode(moved: Traces, stack: Equality) -> Place:
    """By the decode's own bits where the stack is the same."""
    decodes = [t for t in moved if t.key.probe is Probe.DECODE]
    if stack is Equality.DIFFERENT:
        return not_localisable(DECODE_ONLY)
    found = by_bits(decodes)
    return replace(found, sentence=f"{found.sentence}; {DECODE_ONLY}")
