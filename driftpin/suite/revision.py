"""What changed between two revisions of a suite. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from driftpin.suite.canary import Suite


@dataclass(frozen=True, kw_only=True)
class SuiteChanges:
    """Canary ids by what happened to them, in suite order."""

    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()  # prompt or settings differ: the old baseline says nothing about it
    checks_changed: tuple[str, ...] = ()  # only its checks differ: its baseline still holds


def suite_changes(old: Suite, new: Suite) -> SuiteChanges:
    """From the older revision to the newer one."""
    if old == new:
        return SuiteChanges()
    before, after = {c.id: c for c in old.canaries}, {c.id: c for c in new.canaries}
    both = [canary for canary in new.canaries if canary.id in before]
    return SuiteChanges(
        new=tuple(i for i in after if i not in before),
        removed=tuple(i for i in before if i not in after),
        changed=tuple(c.id for c in both if c.definition() != before[c.id].definition()),
        checks_changed=tuple(c.id for c in both if c.checks != before[c.id].checks),
    )
