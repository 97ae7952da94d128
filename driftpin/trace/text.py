"""The display copy of a trace: the rendered prompt and the pieces of the output. Ids are the record, this is for eyes.

Pieces are bytes, since a token need not be whole characters; rendered text is kept as UTF-8 with surrogates passed
through, so that any text a template makes survives.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

from driftpin.canonical import canonical_json, sha256_hex
from driftpin.trace.columns import reading

KIND = "text"


@dataclass(frozen=True, kw_only=True)
class TraceText:
    """Rendered prompt (None where only ids were given) and one byte string per output token."""

    rendered: str | None
    pieces: tuple[bytes, ...]

    @property
    def output(self) -> str:
        """The output as text; bytes that are not UTF-8 show as U+FFFD."""
        return b"".join(self.pieces).decode("utf-8", errors="replace")

    def to_bytes(self) -> bytes:
        """The canonical uncompressed bytes."""
        body = {
            "kind": KIND,
            "rendered": None if self.rendered is None else _armour(self.rendered.encode("utf-8", "surrogatepass")),
            "pieces": [_armour(piece) for piece in self.pieces],
        }
        return canonical_json(body)

    @property
    def sha256(self) -> str:
        """The name under which the blob is stored."""
        return sha256_hex(self.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> TraceText:
        """Read a blob; raises `CorruptBlobError`."""
        with reading(KIND):
            body = json.loads(data)
            if body["kind"] != KIND:
                raise ValueError(f"it holds {body['kind']!r}")
            rendered = body["rendered"]
            text = None if rendered is None else _strip(rendered).decode("utf-8", "surrogatepass")
            return cls(rendered=text, pieces=tuple(_strip(piece) for piece in body["pieces"]))


def _armour(data: bytes) -> str | dict[str, str]:
    """Valid UTF-8 as a string, other bytes tagged as base64."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def _strip(value: str | dict[str, str]) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8")
    data = base64.b64decode(value["base64"], validate=True)
    if base64.b64encode(data).decode("ascii") != value["base64"]:  # the last digit may hold bits that nobody reads
        raise ValueError("its base64 is not canonical")
    return data
