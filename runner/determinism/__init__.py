"""Makes the process as repeatable as the framework can, and says what is really in force."""

from runner.determinism.applied import Applied
from runner.determinism.attention import attention_context, prove_attention
from runner.determinism.prepare import prepare
from runner.determinism.refusals import cannot_run, deterministic_error

__all__ = [
    "Applied",
    "attention_context",
    "cannot_run",
    "deterministic_error",
    "prepare",
    "prove_attention",
]
