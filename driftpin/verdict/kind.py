"""The verdicts of a replay, in order of precedence, and the exit code of each."""

from __future__ import annotations

from enum import StrEnum


class VerdictKind(StrEnum):
    """What a comparison comes to. The first member that holds is the verdict."""

    INCOMPARABLE = "incomparable"  # an identity fact differs for all canaries
    INVALID = "invalid"  # the candidate was not greedy
    BROKEN = "broken"  # some canary is broken
    UNSTABLE = "unstable"  # the candidate does not repeat itself, or its change did not reproduce
    DRIFT = "drift"  # some canary flipped, shifted or changed a check; or the model itself changed
    INCOMPLETE = "incomplete"  # some canary could not be measured
    NUMERIC = "numeric"  # only numbers moved, within the floor
    UNBLESSED = "unblessed"  # there is no baseline
    MATCH = "match"  # everything is identical


RANK = {kind: rank for rank, kind in enumerate(VerdictKind)}

# What shows a change that can be repeated: an unstable replay proves itself, the others show none.
CHANGES = frozenset(
    {VerdictKind.INCOMPARABLE, VerdictKind.INVALID, VerdictKind.BROKEN, VerdictKind.DRIFT, VerdictKind.NUMERIC}
)

_EXIT = {
    VerdictKind.INCOMPARABLE: 3,
    VerdictKind.INVALID: 3,
    VerdictKind.BROKEN: 1,
    VerdictKind.UNSTABLE: 1,
    VerdictKind.DRIFT: 1,
    VerdictKind.INCOMPLETE: 3,
    VerdictKind.NUMERIC: 0,
    VerdictKind.UNBLESSED: 0,
    VerdictKind.MATCH: 0,
}


def exit_code(kind: VerdictKind, *, strict: bool = False, comparing: bool = False) -> int:
    """0 nothing to worry about, 1 drift, 3 no statement; `comparing` is `compare`, which needs a baseline."""
    if kind is VerdictKind.NUMERIC and strict:
        return 1
    if kind is VerdictKind.UNBLESSED and comparing:
        return 3
    return _EXIT[kind]
