"""What would not show, or would play tricks, is spelt out."""

from __future__ import annotations

import math

import pytest
from markupsafe import Markup

from driftpin.report.visible import LONGEST_PIECE, marked, piece_text, short, spelt


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain é 日本 👍", "plain é 日本 👍"),
        ("a\u200bb", "a\\u200bb"),
        ("\u202eevil", "\\u202eevil"),
        ("\x1b[31m\x00", "\\x1b[31m\\x00"),
        ("\ufeff\ud800", "\\ufeff\\ud800"),
        ("<b>", "<b>"),  # markup is the template's business
    ],
)
def test_spelt_shows_every_character(text: str, seen: str) -> None:
    assert spelt(text) == seen
    seen.encode("utf-8")


def test_marked_escapes_markup_and_sets_odd_characters_apart() -> None:
    assert marked("<i>\u200b\n") == Markup('&lt;i&gt;<i class="odd">\\u200b↵</i>')


def test_marked_tells_a_written_escape_from_a_spelt_one() -> None:
    assert "odd" not in marked("\\u200b")


@pytest.mark.parametrize(
    ("piece", "seen"),
    [(b" the", " the"), (b"\xf0\x9f", "⟨f0 9f⟩"), ("é".encode(), "é"), (b"", ""), (b"  ", "␣␣"), (b"\n", "\n")],
)
def test_a_piece_is_text_or_hex_and_a_blank_one_can_be_seen(piece: bytes, seen: str) -> None:
    assert piece_text(piece) == seen


def test_a_long_piece_is_cut() -> None:
    assert piece_text(b"x" * 500) == "x" * LONGEST_PIECE + "…"
    assert len(piece_text(b"\xff" * 500)) == LONGEST_PIECE + 1


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (0.0123456, "0.0123"),
        (93293.87, "93,294"),
        (999.6, "1,000"),
        (999.4, "999"),
        (2e9, "2e+09"),
        (3.2e-05, "3.2e-05"),
        (0.0, "0"),
        (7, "7"),
        ("NaN", "NaN"),
        (math.inf, "inf"),
        (None, ""),
    ],
)
def test_numbers_are_short(value: object, seen: str) -> None:
    assert short(value) == seen
