"""Trace blobs: what is written is read again, and damage is either refused or seen in the digest."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from store_samples import head, layers

from driftpin.canonical import canonical_json, sha256_hex
from driftpin.errors import CorruptBlobError
from driftpin.trace import columns
from driftpin.trace.columns import ALLOWED, Columns, decode, encode
from driftpin.trace.head import Head
from driftpin.trace.health import Ill
from driftpin.trace.layers import Layers
from driftpin.trace.probe import Probe, Shape, TraceKey
from driftpin.trace.text import TraceText
from driftpin.trace.traceset import Entry, TraceSet

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ARRAYS = st.sampled_from(ALLOWED).flatmap(
    lambda dtype: hnp.arrays(np.dtype(dtype), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
)
CONTAINERS = st.dictionaries(NAMES, ARRAYS, max_size=4)

SET = TraceSet.of(
    Entry(
        key=TraceKey(canary=name, probe=probe, shape=Shape.FILLED, repeat=2),
        input_digest="ab" * 32,
        head="cd" * 32,
        text="ef" * 32,
        layers_absent="quota",
        ills=(Ill.NONFINITE,),
    )
    for name in ("a", "é")
    for probe in Probe
)
TEXT = TraceText(rendered="Hi \ud800\0é", pieces=(b"4", b"\xff\xfe", b"", "é".encode()))
KINDS: list[tuple[bytes, Callable[[bytes], Any]]] = [
    (head().to_bytes(), Head.from_bytes),
    (layers().to_bytes(), Layers.from_bytes),
    (TEXT.to_bytes(), TraceText.from_bytes),
    (SET.to_bytes(), TraceSet.from_bytes),
]
IDS = ["head", "layers", "text", "trace_set"]


def same(a: Any, b: Any) -> bool:
    """Equal in type, shape and every bit."""
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    return bool(a == b)


@given(CONTAINERS, st.dictionaries(NAMES, st.integers(-9, 9) | NAMES, max_size=3))
def test_any_arrays_come_back_bit_by_bit(arrays: dict[str, Any], meta: dict[str, Any]) -> None:
    data = encode(Columns(kind="k", meta=meta, arrays=arrays))
    read = decode(data, "k")
    assert read.meta == meta
    assert set(read.arrays) == set(arrays)
    assert all(same(read.arrays[name], array) for name, array in arrays.items())
    assert encode(read) == data


@given(ARRAYS)
def test_neither_byte_order_nor_memory_layout_reaches_the_bytes(array: Any) -> None:
    plain = encode(Columns(kind="k", meta={}, arrays={"a": array}))
    swapped = array.astype(array.dtype.newbyteorder(">"))
    strided = np.asfortranarray(np.stack([array, array], axis=-1))[..., 1]
    assert encode(Columns(kind="k", meta={}, arrays={"a": swapped})) == plain
    assert encode(Columns(kind="k", meta={}, arrays={"a": strided})) == plain


@pytest.mark.parametrize("value", [head(3), layers(3)], ids=["head", "layers"])
def test_heads_and_layers_come_back_field_by_field(value: Head | Layers) -> None:
    again = type(value).from_bytes(value.to_bytes())
    assert all(same(getattr(value, f.name), getattr(again, f.name)) for f in fields(value))
    assert again.sha256 == value.sha256


@given(st.none() | st.text(st.characters()), st.lists(st.binary(max_size=6)))
def test_any_text_comes_back(rendered: str | None, pieces: list[bytes]) -> None:
    text = TraceText(rendered=rendered, pieces=tuple(pieces))
    assert TraceText.from_bytes(text.to_bytes()) == text


def test_a_trace_set_comes_back_and_its_order_does_not_count() -> None:
    again = TraceSet.from_bytes(SET.to_bytes())
    assert again.entries == SET.entries
    assert TraceSet.of(reversed(SET.entries)).digest == SET.digest
    with pytest.raises(ValueError, match="share one key"):
        TraceSet.of([SET.entries[0], SET.entries[0]])


@pytest.mark.parametrize(("data", "read"), KINDS, ids=IDS)
def test_every_truncation_is_refused(data: bytes, read: Callable[[bytes], Any]) -> None:
    for length in range(len(data)):
        with pytest.raises(CorruptBlobError):
            read(data[:length])


@pytest.mark.parametrize("which", range(len(KINDS)), ids=IDS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_flipped_byte_is_refused_or_changes_the_digest(which: int, data: st.DataObject) -> None:
    good, read = KINDS[which]
    at = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[at] ^= data.draw(st.integers(1, 255))
    try:
        value = read(bytes(bad))
    except CorruptBlobError:
        return
    assert sha256_hex(value.to_bytes()) != sha256_hex(good)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    for blob in (data, columns.MAGIC + data):
        for _, read in KINDS:
            with pytest.raises(CorruptBlobError):
                read(blob)


@pytest.mark.parametrize(
    "header",
    [
        "[]",
        "1",
        "{}",
        '{"kind": "head"}',
        '{"kind": "head", "meta": {}, "columns": []}',
        '{"kind": "head", "meta": [], "columns": [1]}',
        '{"kind": "head", "meta": {}, "columns": [{"name": "a", "dtype": "|O", "shape": [1]}]}',
        '{"kind": "head", "meta": {}, "columns": [{"name": "a", "dtype": "<f4", "shape": [-1]}]}',
        '{"kind": "head", "meta": {}, "columns": [{"name": "a", "dtype": "<f4", "shape": [Infinity]}]}',
        '{"kind": "head", "meta": {}, "columns": [{"name": "a", "dtype": "<f4", "shape": [4294967296, 4294967296]}]}',
        "[" * 100_000,
    ],
)
def test_a_header_that_lies_is_refused(header: str) -> None:
    raw = header.encode()
    with pytest.raises(CorruptBlobError):
        Head.from_bytes(columns.MAGIC + len(raw).to_bytes(4, "little") + raw)
    for read in (TraceText.from_bytes, TraceSet.from_bytes):
        with pytest.raises(CorruptBlobError):
            read(raw)


def test_a_head_without_one_of_its_columns_is_refused() -> None:
    read = decode(head().to_bytes(), "head")
    lacking = {name: array for name, array in read.arrays.items() if name != "margin"}
    with pytest.raises(CorruptBlobError, match="margin"):
        Head.from_bytes(encode(replace(read, arrays=lacking)))


def test_another_kind_of_blob_is_refused() -> None:
    with pytest.raises(CorruptBlobError, match="it holds 'layers'"):
        Head.from_bytes(layers().to_bytes())


@pytest.mark.parametrize("dtype", ["float64", "int64", "object", "bool"])
def test_types_outside_the_format_are_not_written(dtype: str) -> None:
    with pytest.raises(TypeError):
        encode(Columns(kind="k", meta={}, arrays={"a": np.zeros(2, dtype)}))


def test_the_text_is_canonical_json_and_keeps_what_is_no_utf8() -> None:
    body = json.loads(TEXT.to_bytes())
    assert canonical_json(body) == TEXT.to_bytes()
    assert body["pieces"] == ["4", {"base64": "//4="}, "", "é"]
    assert TEXT.output == "4\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}é"
