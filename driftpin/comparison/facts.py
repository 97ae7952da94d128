"""The facts a comparison states. Frozen values only; nothing here judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from driftpin.trace.health import Ill
from driftpin.trace.probe import TraceKey


@dataclass(frozen=True, kw_only=True)
class PromptDifference:
    """The two sides did not ask the same; `index` is the first differing prompt id, None where only text differs."""

    index: int | None
    baseline_ids: tuple[int, ...]  # up to 8 ids from `index` on, or the first 8
    candidate_ids: tuple[int, ...]
    lengths: tuple[int, int]
    text_differs: bool


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """The first output position at which the emitted ids differ. Logits are raw; movements are in logits.

    `movement` is D = (l_a − l_b) in the baseline − (l_a − l_b) in the candidate, a and b being the ids emitted by
    baseline and candidate; None, with `missing` saying why, where a side's kept alternatives lack one of them.
    """

    position: int
    baseline_id: int | None  # None: the baseline's output ended here
    candidate_id: int | None
    baseline_margin: float | None  # top-1 minus top-2 logit at that position
    candidate_margin: float | None
    movement: float | None
    missing: str | None
    before: str  # up to 60 characters of shared output before it
    baseline_text: str  # the baseline's continuation from it on, up to 60 characters
    candidate_text: str
    both_top: bool = False  # each side emitted an arg-max of its own raw logits
    ulp: float | None = None  # one unit in the last place of the larger of the four logits, in the candidate's dtype


@dataclass(frozen=True, kw_only=True)
class TopMoved:
    """The first position at which two scores of the same tokens have another arg-max; `movement` is D as above."""

    position: int
    movement: float | None  # None: one of the two tokens was not kept by the other side
    ulp: float | None


@dataclass(frozen=True, kw_only=True)
class Movement:
    """How far numbers moved over the positions where both sides saw the same context."""

    positions: int
    moved: int  # positions whose raw logits differ in any bit
    first_moved: int | None
    mean_abs_logprob: float  # mean |Δ log-probability| of the emitted id, in nats
    max_abs_logprob: float
    max_pair: float | None  # largest movement of the baseline's top-1/top-2 logit difference; None: never both kept


@dataclass(frozen=True, kw_only=True)
class Depth:
    """Where, by bits, two traces part: the earliest position and there the earliest block whose output differs.

    Every earlier position agreed in every block, and so did the block's inputs at that position. Where numbers that
    are not finite spread, it is the earliest block, and there the earliest position.
    """

    block: str | None  # None: every block agrees, the difference lies behind the last one (final norm or head)
    index: int | None  # its number among the blocks
    blocks: int
    position: int | None  # sequence index; None for a whole prefill digest
    ratio_rms: float | None  # candidate's RMS over the baseline's at that cell
    note: str | None = None  # how the two models' blocks differ, where they were brought together by path


@dataclass(frozen=True, kw_only=True)
class Rerouted:
    """One router of a mixture of experts that chose otherwise."""

    module: str  # its module path, inside a block
    position: int  # sequence index of its first changed choice
    count: int  # positions at which its choice changed


@dataclass(frozen=True, kw_only=True)
class Routing:
    """Routers that chose other experts, in module order; never empty."""

    positions: int  # compared
    changed: tuple[Rerouted, ...]

    @property
    def first(self) -> Rerouted:
        """The earliest position's, and there the earliest block's."""
        return min(self.changed, key=lambda one: one.position)  # min keeps the module order among equals

    def inside(self, block: str) -> Rerouted | None:
        """What a block's own router did."""
        return next((one for one in self.changed if f"{one.module}.".startswith(f"{block}.")), None)


@dataclass(frozen=True, kw_only=True)
class CheckChange:
    """A check whose answer differs; None stands for could not be evaluated."""

    check: Mapping[str, object]
    baseline: bool | None
    candidate: bool | None
    detail: str


@dataclass(frozen=True, kw_only=True)
class TraceComparison:
    """Everything known about one execution present on both sides whose heads are not equal by content."""

    key: TraceKey
    identical: bool
    tokens_equal: bool
    mismatched: tuple[str, ...] = ()  # identity facts of the declaration that differ, as sentences
    prompt: PromptDifference | None = None
    divergence: Divergence | None = None
    movement: Movement | None = None
    depth: Depth | None = None
    depth_absent: str | None = None  # why no depth can be given
    deviation: tuple[tuple[str, float], ...] = ()  # score: by block, relative deviation of the sketched states
    sinks: int = 0  # sketched positions that the deviation leaves out
    routing: Routing | None = None  # where other experts were chosen, in the shared context
    reproduces: bool | None = None  # score: shows what its decode showed at the divergence; None: nothing to show
    checks: tuple[CheckChange, ...] = ()
    baseline_ills: tuple[Ill, ...] = ()
    candidate_ills: tuple[Ill, ...] = ()
    first_nonfinite: str | None = None  # in the candidate, for people
    tokens: int = 0  # output tokens of the candidate


@dataclass(frozen=True, kw_only=True)
class Unmeasured:
    """An execution that one side lacks or could not do."""

    key: TraceKey
    reason: str


@dataclass(frozen=True, kw_only=True)
class RepeatMovement:
    """How far one repeat of the candidate lies from its own repeat 0."""

    key: TraceKey
    tokens_equal: bool
    mean_abs_logprob: float  # in nats, over the shared context
    max_pair: float | None  # largest movement of the top pair, in logits


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two replays canary by canary. Every canary of either suite revision appears exactly once or more."""

    order: tuple[str, ...]  # canary ids in suite order, candidate's first, then removed ones
    identical: tuple[TraceKey, ...] = ()
    changed: tuple[TraceComparison, ...] = ()
    unmeasured: tuple[Unmeasured, ...] = ()
    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    repeats_differ: tuple[TraceKey, ...] = ()  # candidate executions that differ from their own repeat 0
    repeat_movements: tuple[RepeatMovement, ...] = ()  # of the same executions, where their heads were read
    identical_ills: Mapping[TraceKey, tuple[Ill, ...]] = field(default_factory=dict)
