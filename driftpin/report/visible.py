"""Text from outside made visible and harmless: what a browser would hide, reorder or obey is spelt out.

Escaping of markup is the template's (autoescape); this is about characters that look like something else or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

from markupsafe import Markup, escape

MARKS = {"\n": "↵", "\t": "⇥", "\r": "␍"}
LONGEST_PIECE = 64  # characters of one token that are shown


def spelt(text: object) -> str:
    """Control, zero-width, bidirectional and unassigned characters as escapes (`\\u200b`); fit for attributes."""
    return "".join(c if c.isprintable() else _escape(c) for c in str(text))


def marked(text: object) -> Markup:
    """The same, with what was spelt out set apart from the same letters in the text itself."""
    return Markup("").join(
        Markup('<i class="odd">{}</i>').format("".join(MARKS.get(c, _escape(c)) for c in run)) if odd else escape(run)
        for odd, run in _runs(str(text))
    )


def piece_text(piece: bytes) -> str:
    """One token as text, cut at `LONGEST_PIECE`; bytes that are no character by themselves as hex, such as ⟨f0 9f⟩."""
    try:
        text = piece.decode("utf-8")
    except UnicodeDecodeError:
        text = f"⟨{piece[:LONGEST_PIECE].hex(' ')}⟩"
    return text if len(text) <= LONGEST_PIECE else text[:LONGEST_PIECE] + "…"


def short(value: object) -> str:
    """A number of a JSON body in three digits, a non-finite one by its name, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.3g}"
    return str(value)


def _runs(text: str) -> Iterator[tuple[bool, str]]:
    for odd, run in groupby(text, key=lambda c: not c.isprintable()):
        yield odd, "".join(run)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
