"""The style's colours can be read in both schemes, and nothing in style, script or templates reaches for a network."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).resolve().parents[2] / "driftpin" / "report" / "templates"
STYLE = (TEMPLATES / "style.css").read_text("utf-8")
TEXT_AA, GRAPHIC_AA = 4.5, 3.0  # WCAG 2.2, success criteria 1.4.3 and 1.4.11
GROUNDS = ("page", "card", "sunk")
WORDS = ("ink", "muted", "baseline", "candidate", "page-alarm", "ticket", "info", "calm", "purple", "teal", "link")
STROKES = ("baseline", "candidate", "limit", "yardstick", "purple", "teal", "edge", "focus", "ink")


def palettes() -> dict[str, dict[str, str]]:
    """Colours by name: light, dark, and what printing uses."""
    blocks = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    assert len(blocks) == 3
    light, dark, printed = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in blocks)
    return {"light": light, "dark": light | dark, "print": light | printed}


def luminance(colour: str) -> float:
    """WCAG relative luminance."""
    channels = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    lighter, darker = sorted((luminance(a), luminance(b)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_the_published_one() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_text_and_lines_stand_out_from_every_ground(scheme: str) -> None:
    palette = palettes()[scheme]
    weak = [(w, g) for w, g in product(WORDS, GROUNDS) if contrast(palette[w], palette[g]) < TEXT_AA]
    weak += [(s, g) for s, g in product(STROKES, ("card", "sunk")) if contrast(palette[s], palette[g]) < GRAPHIC_AA]
    fills = ("page-alarm", "ticket", "info", "calm", "baseline", "candidate")
    weak += [("on-alarm", fill) for fill in fills if contrast(palette["on-alarm"], palette[fill]) < TEXT_AA]
    weak += [
        ("ink", f"{s}-wash")
        for s in ("baseline", "candidate")
        if contrast(palette["ink"], palette[f"{s}-wash"]) < TEXT_AA
    ]
    assert weak == []


def test_every_colour_of_a_scheme_is_defined_for_printing_too() -> None:
    blocks = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    assert set(re.findall(r"--([\w-]+):", blocks[1])) <= set(re.findall(r"--([\w-]+):", blocks[2])) | {"focus"}


@pytest.mark.parametrize("path", sorted(TEMPLATES.iterdir()), ids=lambda path: path.name)
def test_nothing_asks_for_anything_from_elsewhere(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"url\(|@import|@font-face|\bsrc=|fetch\(|XMLHttpRequest|https?:|//[\w-]+\.\w", text)


def test_the_script_writes_text_and_never_markup() -> None:
    script = (TEMPLATES / "script.js").read_text("utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script)


def test_templates_carry_no_style_of_their_own_which_the_policy_would_block() -> None:
    pages = [path.read_text("utf-8") for path in TEMPLATES.glob("*.j2")]
    assert len(pages) >= 6
    assert not [page for page in pages if re.search(r"\sstyle=|\son\w+=", page)]
    assert not [page for page in pages if re.search(r"\|\s*safe\b", page)]
