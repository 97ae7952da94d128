"""What a replay recorded, as `driftpin show` tells it: every execution, or one canary in full."""

from __future__ import annotations

from typing import Any

from driftpin.canonical import hex64, json_float
from driftpin.errors import NotFoundError
from driftpin.store import Store
from driftpin.trace.head import Head
from driftpin.trace.text import TraceText
from driftpin.trace.traceset import Entry
from driftpin.workflow import shapes
from driftpin.workflow.references import Reference

SHOW = "driftpin.show/1"


def contents(store: Store, found: Reference, canary: str | None, *, text: bool) -> dict[str, Any]:
    """The replay's row and its executions; with `canary`, that one's text and numbers per output token."""
    entries = store.traces.set(found.trace_set).entries
    wanted = [entry for entry in entries if canary in (None, entry.key.canary)]
    if not wanted:
        known = ", ".join(sorted({entry.key.canary for entry in entries}))
        raise NotFoundError(f"{found.label} has no canary {canary!r}.", remedy=f"It has: {known}.")
    detail = [] if canary is None else [_detail(store, entry, text) for entry in wanted if entry.head]
    return {
        "schema": SHOW,
        **shapes.replay(found.replay),
        "label": found.label,
        "executions": [{**entry.to_json(), "execution": str(entry.key)} for entry in wanted],
        "detail": detail,
    }


def _detail(store: Store, entry: Entry, text: bool) -> dict[str, Any]:
    head, copy = store.traces.head(entry), store.traces.text(entry)
    ids = {"prompt_ids": head.prompt_ids.tolist()} if text else {}  # a tokenizer turns ids back into text
    shown = {"rendered": copy.rendered, "output": copy.output} if text else {}
    return {
        "execution": str(entry.key),
        "declared": head.declared.to_json(),
        "stop": head.stop.value,
        "prompt_tokens": len(head.prompt_ids),
        **ids,
        **shown,
        "tokens": [_token(head, copy, index, text) for index in range(len(head.output_ids))],
    }


def _token(head: Head, copy: TraceText, index: int, text: bool) -> dict[str, Any]:
    piece = copy.pieces[index].decode("utf-8", "replace") if text and index < len(copy.pieces) else None
    return {
        **({"id": int(head.output_ids[index])} if text else {}),
        **({} if piece is None else {"text": piece}),
        "logprob": json_float(float(head.logprob[index])),
        "margin": json_float(float(head.margin[index])),
        "entropy": json_float(float(head.entropy[index])),
        "digest": hex64(int(head.digest[index])),
        "nonfinite": int(head.nonfinite[index]),
    }
