"""Text from outside made visible and harmless: what a browser would hide, reorder or obey is spelt out.

Escaping of markup is the template's (autoescape); this is about characters that look like something else or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

from markupsafe import Markup, escape

MARKS = {"\n": "↵", "\t": "⇥", "\r": "␍"}
THOUSAND, MILLION = 999.5, 999_999.5  # written out with a comma between
LONGEST_PIECE = 64  # characters of one token that are shown


def spelt(text: object) -> str:
    """Control, zero-width, bidirectional and unassigned characters as escapes (`\\u200b`); fit for attributes."""
    return "".join(c if c.isprintable() else _escape(c) for c in str(text))


def marked(text: object) -> Markup:
    """The same, with what was spelt out set apart from the same letters in the text itself."""
    plain = str(text)
    if plain.isprintable():  # nearly all of a page's cells
        return escape(plain)
    return Markup("").join(_set_apart(run) if odd else escape(run) for odd, run in _runs(plain))


def piece_text(piece: bytes) -> str:
    """One token as text, cut at `LONGEST_PIECE`; bytes that are no character by themselves as hex, such as ⟨f0 9f⟩.

    A token of blanks alone shows each as ␣: nothing else would.
    """
    try:
        text = piece.decode("utf-8")
    except UnicodeDecodeError:
        text = f"⟨{piece[:LONGEST_PIECE].hex(' ')}⟩"
    if not text.strip(" "):
        text = "␣" * len(text)
    return text if len(text) <= LONGEST_PIECE else text[:LONGEST_PIECE] + "…"


def short(value: object) -> str:
    """A number of a JSON body in three digits, a non-finite one by its name, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:,.0f}" if THOUSAND <= abs(value) < MILLION else f"{value:.3g}"
    return str(value)


def _set_apart(run: str) -> Markup:
    return Markup('<i class="odd">{}</i>').format("".join(MARKS.get(c, _escape(c)) for c in run))


def _runs(text: str) -> Iterator[tuple[bool, str]]:
    for odd, run in groupby(text, key=lambda c: not c.isprintable()):
        yield odd, "".join(run)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
