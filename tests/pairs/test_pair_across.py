"""Drift across library versions, for real: blessed under the environment's transformers, replayed under the pair's.

Both run in child processes; the weights are one folder, which the older library saved and both read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pair_suite import CHAT, LONG, recipe
from replaying import Lab, outcomes

from driftpin.environment.environment import Equality, Section
from driftpin.store import Store
from driftpin.suite.canary import Suite
from driftpin.verdict.kind import VerdictKind
from driftpin.workflow.assess import Assessment


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, mixture_folder: Path) -> Iterator[Assessment]:
    """A mixture of experts: version 5 multiplies the experts' matrices in groups, version 4 one after another."""
    url = f"sqlite:///{tmp_path_factory.mktemp('across') / 'driftpin.db'}"
    with Store.open(url, migrate=True) as store:
        lab = Lab(
            store=store, url=url, suite=Suite(name="across", canaries=(CHAT, LONG)), recipe=recipe(mixture_folder)
        )
        with pytest.MonkeyPatch.context() as environment:
            environment.delenv("PYTHONPATH")  # without the pair's folder the children find the environment's own
            lab.bless()
        yield lab.assess()


def test_an_upgrade_moves_numbers_and_is_not_called_drift(found: Assessment) -> None:
    assert found.verdict.kind is VerdictKind.NUMERIC, found.verdict.headline
    assert set(outcomes(found).values()) <= {"numeric", "tie_flip"}


def test_the_library_is_named_first(found: Assessment, pair_transformers: str) -> None:
    first = found.differences[0]
    assert (first.name, first.after) == ("library.transformers", pair_transformers)
    assert str(first.before).startswith("5.")
    assert found.attribution is not None
    assert found.attribution.suspects[0].name == "library.transformers"
    assert "library.torch" not in [fact.name for fact in found.differences]


def test_the_model_is_not_accused_for_its_layout(found: Assessment) -> None:
    assert found.equalities is not None
    assert found.equalities[Section.MODEL] is Equality.UNDETERMINED
    model = [fact for fact in found.differences if fact.section is Section.MODEL]
    assert [fact.name for fact in model] == ["parameters.total"]
    assert found.equalities[Section.STACK] is Equality.DIFFERENT
    assert any("lays the parameters out otherwise" in unseen for unseen in found.verdict.unseen)
