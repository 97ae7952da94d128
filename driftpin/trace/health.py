"""What is wrong with one trace by itself: non-finite numbers, one token for ever, a choice that was not greedy.

Knows one trace, never a baseline.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from driftpin.trace.head import Head
from driftpin.trace.layers import Layers
from driftpin.trace.probe import Greedy, Probe

ONE_TOKEN_LEAST = 8  # outputs of at least this many equal ids and nothing else count as one token for ever


class Ill(StrEnum):
    """A finding about a single trace."""

    NONFINITE = "nonfinite"  # a NaN or an infinity in a hidden state, or a NaN or +infinity among the logits
    ONE_TOKEN = "one_token"  # the whole decode is one id, repeated
    NOT_GREEDY = "not_greedy"  # an emitted token is not an arg-max of the processed logits


def ills(head: Head, layers: Layers | None) -> tuple[Ill, ...]:
    """Everything that is wrong with the trace, in the order of `Ill`."""
    found = {
        Ill.NONFINITE: has_nonfinite_logits(head) or (layers is not None and bool(layers.nonfinite.any())),
        Ill.ONE_TOKEN: is_one_token(head),
        Ill.NOT_GREEDY: bool((head.greedy == Greedy.VIOLATED).any()),
    }
    return tuple(ill for ill, holds in found.items() if holds)


def has_nonfinite_logits(head: Head) -> bool:
    """True for a NaN or a positive infinity; a vocabulary masked with minus infinity keeps its log-sum-exp finite."""
    return bool(((head.nonfinite > 0) & ~np.isfinite(head.logsumexp)).any())


def is_one_token(head: Head) -> bool:
    """True when a decode emitted the same id every time, at least `ONE_TOKEN_LEAST` times."""
    ids = head.output_ids
    return head.declared.probe is Probe.DECODE and len(ids) >= ONE_TOKEN_LEAST and bool((ids == ids[0]).all())


def first_nonfinite_block(layers: Layers) -> tuple[str, int] | None:
    """Module path of the earliest block with a non-finite hidden state, and its first sequence position there.

    By block, then by position: masked attention carries a NaN back to positions before the one where it arose.
    """
    hit = np.argwhere(layers.nonfinite > 0)  # [n, 2] of (block, position)
    if not len(hit):
        return None
    block, position = hit[0]
    return layers.blocks[block], int(position) + layers.first_position
