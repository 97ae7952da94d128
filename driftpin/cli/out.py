"""How the command line shows things: text for people, JSON for machines, and nothing that a terminal would obey."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


class Format(StrEnum):
    """The form of a command's output."""

    TEXT = "text"  # for people
    JSON = "json"  # for machines, one document on standard output


FormatOption = Annotated[Format, typer.Option("--format", help="text for people, json for machines")]


def console() -> Console:
    """Standard output for people; made late, since rich takes a while to import."""
    from rich.console import Console  # noqa: PLC0415 - see above

    return Console(highlight=False, emoji=False)


def errors() -> Console:
    """Standard error for people."""
    from rich.console import Console  # noqa: PLC0415 - see above

    return Console(stderr=True, highlight=False, emoji=False)


def emit(form: Format, body: Mapping[str, Any], text: Callable[[Console], None]) -> None:
    """Write one document, or let `text` draw on a console."""
    if form is Format.JSON:
        sys.stdout.write(json.dumps(body, indent=2, ensure_ascii=True, allow_nan=False) + "\n")
        sys.stdout.flush()  # a closed pipe shows here, not while the interpreter ends
    else:
        text(console())


def plain(text: object) -> str:
    """Text from outside made harmless: control characters are spelt out, markup is escaped."""
    from rich.markup import escape  # noqa: PLC0415 - see above

    return escape("".join(c if _shows(c) else _spelt(c) for c in str(text)))


def lines(text: str) -> str:
    """The same for a text that has lines of its own, such as a list of problems."""
    return "\n".join(plain(line) for line in text.split("\n"))


def _shows(character: str) -> bool:
    return character.isprintable()


def _spelt(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
