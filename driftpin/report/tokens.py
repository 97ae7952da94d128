"""The token-level diff of two outputs: what they share, where they part, both continuations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from driftpin.report.strand import Strand, Voice
from driftpin.report.visible import piece_text

BEFORE, AFTER = 40, 60  # tokens shown before the divergence, and from it on


class Kind(StrEnum):
    """What one token is in the diff; the values are css classes."""

    SHARED = "shared"  # the same token after the same tokens
    PARTED = "parted"  # the first one that differs
    OTHER = "other"  # only this side has it
    AGAIN = "again"  # both sides have it again, after different contexts


@dataclass(frozen=True, kw_only=True)
class Chip:
    """One token; `ended` stands for the end of a side's output."""

    position: int
    text: str
    id: int | None
    kind: Kind

    @property
    def ended(self) -> bool:
        """No token: the output stopped here."""
        return self.id is None


@dataclass(frozen=True, kw_only=True)
class TokenDiff:
    """Chips of a diff; where nothing parts, `baseline` and `candidate` are empty."""

    left_out: int  # shared tokens before the ones shown
    shared: tuple[Chip, ...]
    baseline: tuple[Chip, ...]
    candidate: tuple[Chip, ...]
    baseline_left_out: int  # tokens behind the ones shown
    candidate_left_out: int


def token_diff(strand: Strand) -> TokenDiff | None:
    """None where text is hidden: ids would give it away."""
    if not strand.text:
        return None
    at, (a, b) = strand.shared, (strand.baseline, strand.candidate)
    start = max(0, at - BEFORE)
    parted = strand.divergence is not None
    again = _again(a.ids[at : at + AFTER], b.ids[at : at + AFTER]) if parted else (set(), set())
    return TokenDiff(
        left_out=start,
        shared=tuple(_chip(a, i, Kind.SHARED) for i in range(start, at)),
        baseline=tuple(_continued(a, at, again[0])) if parted else (),
        candidate=tuple(_continued(b, at, again[1])) if parted else (),
        baseline_left_out=max(0, len(a.ids) - at - AFTER),
        candidate_left_out=max(0, len(b.ids) - at - AFTER),
    )


def _again(a: Sequence[int], b: Sequence[int]) -> tuple[set[int], set[int]]:
    """Offsets of the tokens that the two continuations have in common, in order."""
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    left = {block.a + n for block in blocks for n in range(block.size)}
    right = {block.b + n for block in blocks for n in range(block.size)}
    return left, right


def _continued(voice: Voice, at: int, again: set[int]) -> Iterator[Chip]:
    for offset, index in enumerate(range(at, min(at + AFTER, len(voice.ids)))):
        kind = Kind.AGAIN if offset in again else Kind.OTHER
        yield _chip(voice, index, Kind.PARTED if offset == 0 else kind)
    if len(voice.ids) <= at + AFTER:
        kind = Kind.PARTED if len(voice.ids) == at else Kind.OTHER
        yield Chip(position=len(voice.ids), text="end of the output", id=None, kind=kind)


def _chip(voice: Voice, index: int, kind: Kind) -> Chip:
    return Chip(position=index, text=text_at(voice, index), id=voice.ids[index], kind=kind)


def text_at(voice: Voice, index: int) -> str:
    """The token's text; its id where no piece was kept for it."""
    if index < len(voice.pieces):
        return piece_text(voice.pieces[index])
    return f"#{voice.ids[index]}" if index < len(voice.ids) else ""
