"""What changed between two revisions of a suite. Compares definitions, knows nothing of token ids or baselines."""

from __future__ import annotations

from dataclasses import dataclass

from driftpin.suite.canary import Suite


@dataclass(frozen=True, kw_only=True)
class SuiteChanges:
    """Canary ids by what happened to them: new and changed ones in the new suite's order, removed ones in the old's."""

    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()  # prompt or settings differ: outputs cannot be compared
    checks_changed: tuple[str, ...] = ()  # only the questions asked of the output differ
    clock_changed: bool = False  # templates render under another time: prompts may differ though definitions agree

    def __bool__(self) -> bool:
        return any((self.new, self.removed, self.changed, self.checks_changed, self.clock_changed))


def suite_changes(old: Suite, new: Suite) -> SuiteChanges:
    """What a reader of `new` must know who knew `old`; order and comments do not count."""
    if old is new:
        return SuiteChanges()
    before = {canary.id: canary for canary in old.canaries}
    both = [(before[canary.id], canary) for canary in new.canaries if canary.id in before]
    kept = set(new.ids)
    return SuiteChanges(
        new=tuple(i for i in new.ids if i not in before),
        removed=tuple(i for i in old.ids if i not in kept),
        changed=tuple(b.id for a, b in both if a.definition() != b.definition()),
        checks_changed=tuple(b.id for a, b in both if a.checks != b.checks),
        clock_changed=old.clock != new.clock,
    )
