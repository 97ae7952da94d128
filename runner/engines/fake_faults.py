"""What may be planted in the fake engine, as its recipe's `options.faults` say it. Knows no model and no trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from driftpin.errors import ConfigError

BLOCKS = 4  # of the fake model
VOCAB = 258  # 256 bytes, end, padding
ROUNDINGS = 2**16  # kernels to choose from

Block = Annotated[int, Field(ge=0, lt=BLOCKS)]
Size = Annotated[float, Field(allow_inf_nan=False)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Weight(_Table):
    """A block whose gate is off by that much."""

    block: Block
    by: Size = 0.25


class AtBlock(_Table):
    """A block."""

    block: Block


class Noise(_Table):
    """Every logit moves by `by` up or down, as a hash of its place says."""

    by: Size


class Faults(_Table):
    """In which ways the fake engine fails; where nothing else is said, in both arms.

    Those of the native path move logits and are not seen in the reference arm: they stand for kernels, not for weights.
    """

    weight: Weight | None = None
    nan: AtBlock | None = None  # the block's gate is not a number
    tokenizer: Literal["digits"] | None = None  # splits digits otherwise
    one_token: Annotated[int, Field(ge=0, lt=VOCAB)] | None = None  # this id, over and over
    missing_keys: Annotated[tuple[str, ...], Field(strict=False)] = ()  # refuses to load
    not_greedy: Annotated[int, Field(ge=0)] | None = None  # a decode emits the runner-up at that position
    unmeasured: str | None = None  # a canary that cannot be measured
    crash: str | None = None  # a canary at which the engine raises
    exit: str | None = None  # a canary at which the process ends
    slow: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0  # seconds per canary
    facts: Mapping[Literal["model", "stack", "behaviour", "context"], Mapping[str, Any]] = {}  # replaced or added
    rounding: Annotated[int, Field(ge=0, lt=ROUNDINGS)] = 0  # native path: another kernel, which rounds other logits up
    native_noise: Noise | None = None  # native path: a defect; microprobes do not see it
    logit_noise: Size = 0.0  # native path: every logit moves by as much, so no probability does
    flaky: Literal[True, "process"] | None = None  # native path: as `logit_noise`, another per execution or process

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Faults:
        """From a recipe's options; `ConfigError` names what is wrong and the faults there are."""
        try:
            return cls.model_validate(options.get("faults", {}))
        except ValidationError as error:
            raise ConfigError(
                f"The fake engine's faults are not valid: {_listed(error)}.",
                remedy=f"Known faults are: {', '.join(cls.model_fields)}.",
            ) from error


def _listed(error: ValidationError) -> str:
    return "; ".join(_sentence(one["loc"], one["type"], one["msg"]) for one in error.errors(include_url=False))


def _sentence(place: tuple[int | str, ...], kind: str, said: str) -> str:
    where = ".".join(str(part) for part in ("faults", *place))
    return f"{where}: unknown" if kind == "extra_forbidden" else f"{where}: {said[:1].lower()}{said[1:]}"
