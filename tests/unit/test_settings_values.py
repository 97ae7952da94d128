"""Durations, sizes, and the policy's default table."""

from __future__ import annotations

import pytest

from driftpin.settings.policy import Policy, Severity
from driftpin.settings.quantity import bytes_of, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("45m", 2700), ("1h", 3600), ("1d", 86400), ("1h30m", 5400), ("3650d", 315360000)],
)
def test_durations_in_seconds(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "0s", "-1h", "1", "1w", "h", "1.5h", "1h ", " 1h", "3651d", "١h", 60, None, True])
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("text", "size"), [("200MB", 200_000_000), ("1GiB", 2**30), ("1 KB", 1000), ("5B", 5), ("2TiB", 2**41)]
)
def test_sizes_in_bytes(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "0MB", "200", "200mb", "1.5GB", "-1MB", "1GBs", 200])
def test_what_is_no_size(text: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        bytes_of(text)


# The table of the design, section 7: verdict, severity on the same stack, on a new one.
TABLE = [
    ("incomparable", "page", "ticket"),
    ("invalid", "page", "page"),
    ("broken", "page", "page"),
    ("unstable", "ticket", "ticket"),
    ("drift", "page", "ticket"),
    ("check_changed", "page", "page"),
    ("incomplete", "ticket", "ticket"),
    ("numeric", "ticket", "info"),
    ("unblessed", "info", "info"),
    ("match", "none", "none"),
]


@pytest.mark.parametrize(("subject", "same", "new"), TABLE)
def test_the_default_policy_is_the_designs_table(subject: str, same: str, new: str) -> None:
    policy = Policy()
    assert policy.severity(subject, same_stack=True) is Severity(same)
    assert policy.severity(subject, same_stack=False) is Severity(new)


def test_the_default_policy_has_no_other_subject_and_confirms_twice() -> None:
    assert set(Policy().same_stack) == set(Policy().new_stack) == {row[0] for row in TABLE}
    assert Policy().confirm == 2


def test_a_policy_survives_json() -> None:
    policy = Policy(name="x", confirm=0, same_stack={**Policy().same_stack, "drift": Severity.INFO})
    assert Policy.from_json(policy.to_json()) == policy


def test_severities_are_ranked() -> None:
    assert sorted(Severity, key=lambda s: s.rank) == ["none", "info", "ticket", "page"]
