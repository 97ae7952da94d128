"""Every verdict that a scenario leads to has a page, and the page says it."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from report_samples import Page, page_of
from rich.console import Console
from test_scenarios import FOLDERS, Scene, play

from driftpin.cli import screens
from driftpin.store import Store
from driftpin.verdict.diagnosis import ChangeClass
from driftpin.verdict.kind import VerdictKind
from driftpin.workflow import shapes

ASKED = (  # at least one for each verdict and each class
    "identical",
    "unblessed",
    "tie_flip",
    "flip",
    "check_changed",
    "native_path_defect_below_the_yardstick",
    "weight_moved_on_a_new_stack",
    "broken_nan",
    "invalid_not_greedy",
    "input_changed_for_all",
    "unstable_not_reproduced",
    "unmeasured",
    "removed_canary",
)
TOLD = [folder for folder in FOLDERS if folder.name in ASKED]


def folded(text: object) -> str:
    return " ".join(str(text).split())


@pytest.mark.parametrize("folder", TOLD, ids=[folder.name for folder in TOLD])
def test_the_page_says_what_the_scenario_ends_in(folder: Path, sqlite_store: Store) -> None:
    found = play(sqlite_store, Scene.of(folder))
    page, body = page_of(sqlite_store, found), shapes.assessment(found)
    assert folded(body["headline"]) in page.text
    assert f"severity-{body['severity']}" in " ".join(page.attributes("class"))
    assert [s for s in (*body["unseen"], *body["next"], *body["remarks"]) if folded(s) not in page.text] == []
    if body["texts"] and body["texts"]["changed"]:
        counts = [f"{one['count']} of {one['asked']} {one['what']}" for one in body["texts"]["counts"] if one["count"]]
        assert [said for said in counts if said not in page.text] == []
        assert counts or folder.name != "flip"
    drawn = {name: word for name, word in _outcomes(page).items() if name in body["outcomes"]}
    expected = {name: told["outcome"] for name, told in body["outcomes"].items() if told["outcome"] != "identical"}
    assert drawn == expected
    if body["class"]:
        assert body["class"].replace("_", " ") in page.text
        assert folded(body["diagnosis"]["sentence"]) in page.text


def test_how_many_texts_changed_stands_on_the_page_and_on_the_screen(sqlite_store: Store) -> None:
    found = play(sqlite_store, Scene.of(next(folder for folder in TOLD if folder.name == "tie_flip")))
    body = shapes.assessment(found)
    counts = body["texts"].pop("counts")
    assert len(counts) == 3  # early, beyond the limit, far
    assert body["texts"] == {"decoded": 4, "changed": 1, "by_rounding": 0.25}
    for counted in counts:  # a seed parts that text as early, and no decode moved beyond its limit or jumped
        assert {**counted, "what": ""} == {
            "what": "",
            "count": 0,
            "asked": 4,
            "p_value": 1.0,
            "significant": False,
            "doubtful": False,
        }
    page = page_of(sqlite_store, found)
    assert "1 of 4 texts changed; rounding alone changes 0.25 of them on average." in page.text
    printed = StringIO()
    screens.assessment(Console(file=printed, width=200), found, body, found.candidate.replay)
    assert "texts   1 of 4 changed; rounding alone changes 0.25 of them on average" in printed.getvalue()
    unread = [line.strip() for line in printed.getvalue().splitlines() if line.endswith("recorded on neither side")]
    assert len(unread) == 1  # a reason that several parts of the model share is said once
    assert "tokenizer, chat template" in unread[0]


def test_every_verdict_and_every_class_is_among_them() -> None:
    expected = [Scene.of(folder).table("expect") for folder in TOLD]
    assert {told["verdict"] for told in expected} == {kind.value for kind in VerdictKind}
    assert {told["class"] for told in expected if told.get("class")} == {word.value for word in ChangeClass}


def _outcomes(page: Page) -> dict[str, str]:
    names, words = page.attributes("data-name"), page.attributes("data-outcome")
    return dict(zip(names, words, strict=True))
