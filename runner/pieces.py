"""The bytes that each token adds to a text. Reads a tokenizer's own description of its decoder; knows no model.

Follows the decoders of the `tokenizers` library, so that the pieces joined are what `decode` shows, except that bytes
which are not UTF-8 are kept. For decoders that are not token by token, pieces are what decoding one token more adds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

Pieces = list[bytes]
Step = Callable[[Pieces], Pieces]

BYTE_TOKEN = re.compile(rb"<0x([0-9A-Fa-f]{2})>")


def token_pieces(tokenizer: Any, ids: Sequence[int]) -> tuple[bytes, ...]:
    """One byte string per id; joined and decoded they equal `tokenizer.decode` with nothing skipped or cleaned up.

    An id without a token (models pad their vocabulary) adds nothing. The first piece lacks the space that the
    tokenizer's own decoder takes off the beginning of a text.
    """
    ids = [int(i) for i in ids]
    steps = _steps(tokenizer)
    if steps is None:
        return tuple(_grown(tokenizer, ids))
    tokens = [tokenizer.convert_ids_to_tokens(i) for i in ids]
    known = [index for index, token in enumerate(tokens) if token is not None]
    pieces = [tokens[index].encode("utf-8") for index in known]
    for step in steps:
        pieces = step(pieces)
    placed = dict(zip(known, pieces, strict=True))
    return tuple(placed.get(index, b"") for index in range(len(ids)))


def _steps(tokenizer: Any) -> list[Step] | None:
    """The decoder as steps over all pieces, or None where it is not one that works token by token."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    described = json.loads(backend.to_str())["decoder"] if hasattr(backend, "to_str") else None
    if described is None:
        return None
    parts = described["decoders"] if described["type"] == "Sequence" else [described]
    steps, fused = [], False
    for part in parts:
        fused = fused or part["type"] == "Fuse"
        step = _step(part, fused=fused)
        if step is None:
            return None
        steps.append(step)
    return steps


def _step(part: Mapping[str, Any], *, fused: bool) -> Step | None:
    match part:
        case {"type": "ByteLevel" | "ByteFallback" | "Fuse" as kind}:
            return EACH[kind]
        case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)}:
            return lambda pieces: [piece.replace(old.encode(), new.encode()) for piece in pieces]
        case {"type": "Metaspace", "replacement": str(mark)}:
            prefixed = part.get("prepend_scheme", "always") != "never"
            return lambda pieces: _metaspace(pieces, mark.encode(), prefixed=prefixed)
        case {"type": "Strip", "content": str(char), "start": int(start), "stop": int(stop)}:
            return lambda pieces: _strip(pieces, char.encode(), (start, stop), fused=fused)
    return None


EACH: dict[str, Step] = {
    "ByteLevel": lambda pieces: [_byte_level(piece) for piece in pieces],
    "ByteFallback": lambda pieces: [_byte_fallback(piece) for piece in pieces],
    "Fuse": lambda pieces: pieces,
}


@cache
def _byte_of() -> dict[str, int]:
    """The byte behind each character of byte-level vocabularies: printable ones are themselves, others shifted to 256+.

    Source: GPT-2's encoder.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def _byte_level(piece: bytes) -> bytes:
    """The bytes of one token; a token with a character outside the map (an added one) is its own text."""
    text, table = piece.decode("utf-8"), _byte_of()
    return bytes(table[char] for char in text) if all(char in table for char in text) else piece


def _byte_fallback(piece: bytes) -> bytes:
    found = BYTE_TOKEN.fullmatch(piece)
    return bytes([int(found[1], 16)]) if found else piece


def _metaspace(pieces: Pieces, mark: bytes, *, prefixed: bool) -> Pieces:
    return [piece.replace(mark, b"" if prefixed and index == 0 else b" ") for index, piece in enumerate(pieces)]


def _strip(pieces: Pieces, char: bytes, counts: tuple[int, int], *, fused: bool) -> Pieces:
    """Take up to `counts` characters off the start and end of the whole text once it is fused, else of each piece."""
    if not fused:
        return [_strip_one(piece, char, counts) for piece in pieces]
    stripped = list(pieces)
    for _ in range(counts[0]):
        _change_first(stripped, range(len(stripped)), lambda piece: piece.removeprefix(char))
    for _ in range(counts[1]):
        _change_first(stripped, range(len(stripped) - 1, -1, -1), lambda piece: piece.removesuffix(char))
    return stripped


def _change_first(pieces: Pieces, order: Iterable[int], change: Callable[[bytes], bytes]) -> None:
    """Change, in place, the first piece in `order` that is not empty."""
    for index in order:
        if pieces[index]:
            pieces[index] = change(pieces[index])
            return


def _strip_one(piece: bytes, char: bytes, counts: tuple[int, int]) -> bytes:
    for _ in range(counts[0]):
        piece = piece.removeprefix(char)
    for _ in range(counts[1]):
        piece = piece.removesuffix(char)
    return piece


def _grown(tokenizer: Any, ids: Sequence[int]) -> Pieces:
    """What each further token adds to the decoded text; where earlier text changes, the token by itself."""
    pieces, before = [], ""
    for index, token in enumerate(ids):
        after = _decode(tokenizer, ids[: index + 1])
        added = after[len(before) :] if after.startswith(before) else _decode(tokenizer, [token])
        pieces.append(added.encode("utf-8", errors="surrogatepass"))
        before = after
    return pieces


def _decode(tokenizer: Any, ids: Sequence[int]) -> str:
    text: str = tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return text
