"""Templates, style and script put together into one file that asks nothing of any network.

A content security policy holds the file to that: no source is allowed but its own style and script, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from driftpin.report import visible

POLICY = (
    "default-src 'none'; style-src '{style}'; script-src '{script}'; img-src data:; base-uri 'none'; form-action 'none'"
)
LONGEST_VALUE, SHOWN_DIGEST = 300, 16  # characters
DIGEST = re.compile("[0-9a-f]{40,}")


def render(template: str, **values: Any) -> str:
    """One template; every value is escaped, and characters that would not show are spelt out."""
    return environment().get_template(template).render(**values)


def whole_page(**values: Any) -> str:
    """The page with its style, script and policy."""
    style, script = (_source(name) for name in ("style.css", "script.js"))
    policy = POLICY.format(style=_hash(style), script=_hash(script))
    return render("page.html.j2", style=Markup(style), script=Markup(script), policy=policy, **values)  # noqa: S704


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates of this package."""
    made = Environment(
        loader=PackageLoader("driftpin.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"marked": visible.marked, "short": visible.short, "value": fact_value, "execution": execution}
    return made


def fact_value(fact: Any) -> str:
    """One side of an environment fact as text, a digest by its beginning; `driftpin env diff` has it whole."""
    if fact is None:
        return "absent"
    text = f"unknown ({fact['unknown']})" if "unknown" in fact else str(fact["value"])
    most = SHOWN_DIGEST if DIGEST.fullmatch(text) else LONGEST_VALUE
    return text if len(text) <= most else text[:most] + "…"


def execution(key: str) -> str:
    """Probe, shape and, where it is not the first, repeat of an execution's key; its canary is known."""
    _, probe, shape, repeat = key.rsplit("/", 3)
    return f"{probe} {shape}" + ("" if repeat == "0" else f", repeat {repeat}")


def _finalize(value: Any) -> Any:
    """What a template puts down: markup as it is, everything else without characters that play tricks."""
    return value if isinstance(value, Markup) else visible.spelt(value)


def _source(name: str) -> str:
    loader = environment().loader
    assert loader is not None  # noqa: S101 - given above
    return loader.get_source(environment(), name)[0]


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
