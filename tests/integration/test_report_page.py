"""The report of real comparisons: its words are the JSON's, its numbers the store's, and nothing in it acts."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from replaying import Lab
from report_samples import DAMAGE, HOSTILE, Page, drifted, lab, page_of, rewritten, suite

from driftpin.report import report as report_module
from driftpin.report.report import report
from driftpin.settings.policy import Policy
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.suite.canary import Canary, CanarySettings, Suite
from driftpin.trace.probe import Probe
from driftpin.trace.traceset import KIND, Entry, TraceSet
from driftpin.workflow import shapes
from driftpin.workflow.assess import Assessment, assess
from driftpin.workflow.bless import bless
from driftpin.workflow.references import of_replay


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store for everything that only reads one comparison."""
    with Store.open(f"sqlite:///{tmp_path_factory.mktemp('report') / 'store.db'}", migrate=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def found(shared: Store) -> Assessment:
    """Three canaries, one damaged weight."""
    return drifted(shared)


@pytest.fixture(scope="module")
def page(shared: Store, found: Assessment) -> Page:
    return page_of(shared, found)


def folded(text: object) -> str:
    return " ".join(str(text).split())


def test_every_word_of_the_json_is_on_the_page(page: Page, found: Assessment) -> None:
    body = shapes.assessment(found)
    sentences = [body["headline"], body["localisation"]["sentence"], *body["remarks"], *body["unseen"], *body["next"]]
    sentences += [f["why"] for told in body["outcomes"].values() for f in told["findings"]]
    assert len(sentences) > 8
    assert [s for s in sentences if folded(s).replace("'", "’") not in page.text.replace("'", "’")] == []


def test_the_first_screen_holds_verdict_severity_and_counts(page: Page, found: Assessment) -> None:
    top = page.text[: page.text.index("How far")]
    assert found.verdict.headline in top
    assert "page: somebody is woken" in top
    assert "3 flip" in top
    assert f"{found.candidate.label} against" in top


def test_d_and_f_and_the_margins_stand_at_the_first_divergence(page: Page, found: Assessment) -> None:
    first = found.verdict.first
    assert first is not None
    part = page.text[page.text.index("First divergence Canary") :]
    assert f"parts at output token {first.divergence.position}" in part
    assert f"{first.divergence.movement:.3g}" in part.partition("logits")[0]
    assert f"baseline's margin {first.divergence.baseline_margin:.3g}" in part


def test_the_chips_are_the_tokens_in_order(page: Page, shared: Store, found: Assessment) -> None:
    first = found.verdict.first
    assert first is not None
    assert found.baseline is not None
    entry = next(
        e
        for e in shared.traces.set(found.baseline.trace_set).entries
        if e.key.canary == first.canary and e.key.probe is Probe.DECODE
    )
    ids = shared.traces.head(entry).output_ids
    titles = [a["title"] for a in page.of_class("chip") if "ended" not in (a["class"] or "")]
    at = first.divergence.position
    start = max(0, at - 40)
    expected = [f"output token {n}, id {ids[n]}" for n in range(start, len(ids))]
    assert titles[: len(expected)] == expected
    assert len(page.of_class("parted")) >= 2


def test_the_named_block_is_marked_in_the_profile(page: Page, found: Assessment) -> None:
    assert found.verdict.place is not None
    assert found.verdict.place.block == "blocks.1"
    assert "the verdict names blocks.1" in page.text
    assert len(page.of_class("named")) == 1


def test_the_numbers_behind_a_chart_are_the_store_s(page: Page, shared: Store, found: Assessment) -> None:
    rows = page.table("c0-score-table")
    canary = re.search(r"<h3><bdi>(.*?)</bdi>", page.source)
    assert canary is not None
    sides = [found.baseline.trace_set if found.baseline else "", found.candidate.trace_set]
    heads = []
    for digest in sides:
        entries = shared.traces.set(digest).entries
        wanted = (e for e in entries if e.key.canary == canary[1] and e.key.probe is Probe.SCORE and not e.key.repeat)
        heads.append(shared.traces.head(next(e for e in wanted if e.key.shape.value == "alone")))
    a, b = heads
    assert len(rows) == len(a.output_ids)
    for index, row in enumerate(rows):
        delta = abs(float(b.logprob[index]) - float(a.logprob[index]))
        shown = [f"{x:.3g}" for x in (delta, a.logprob[index], b.logprob[index], a.margin[index], b.margin[index])]
        assert row[2:] == shown


def test_the_policy_allows_the_page_s_own_style_and_script_by_hash_and_nothing_else(page: Page) -> None:
    [policy] = [a["content"] or "" for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    for kind in ("style", "script"):
        [text] = ["".join(page.raw[kind])]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert directives[f"{kind}-src"] == f"'sha256-{digest}'"
    assert directives["default-src"] == "'none'"
    assert directives["img-src"] == "data:"
    assert not page.tags() & {"img", "iframe", "object", "embed", "base", "form", "audio", "video"}
    assert set(page.attributes("href")) >= {"data:,"}
    assert [h for h in page.attributes("href") if not h.startswith(("#", "data:,"))] == []
    assert page.attributes("src") + page.attributes("style") == []


def test_links_within_the_page_lead_somewhere_and_ids_are_unique(page: Page) -> None:
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    assert {h[1:] for h in page.attributes("href") if h.startswith("#")} <= set(ids)


def test_the_same_input_gives_the_same_bytes(shared: Store, found: Assessment) -> None:
    assert report(shared, found) == report(shared, found)


def test_hostile_output_is_shown_and_does_nothing(shared: Store, found: Assessment) -> None:
    page = page_of(shared, rewritten(shared, found, *HOSTILE))
    assert page.tags() & {"img"} == set()
    assert len(page.raw["script"]) == 1 or "pwned" not in "".join(page.raw["script"])
    assert len([t for t, _ in page.elements if t == "script"]) == 1
    assert not [n for _, a in page.elements for n in a if n.startswith("on")]
    assert "window.pwned = 1" in page.text
    assert "{{ 7 * 7 }}{% raw %}" in page.text
    assert "\\u202e" in page.text
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\ufeff\x00\x1b]", page.source)


def test_hostile_names_reasons_and_facts_are_shown_and_do_nothing(sqlite_store: Store) -> None:
    evil = HOSTILE[0] + "\u202e" + HOSTILE[2]
    canary = Canary(id=evil, prompt="x", settings=CanarySettings(max_new_tokens=4))
    made = Lab(store=sqlite_store, recipe=Recipe(engine="fake", model="m"), suite=Suite(name="s", canaries=(canary,)))
    bless(sqlite_store, made.blessing(), "tester" + HOSTILE[1], HOSTILE[0])
    facts = {"stack": {"library." + HOSTILE[1]: HOSTILE[0]}}
    page = page_of(sqlite_store, made.assess(options={"faults": {"weight": {"block": 1, "by": 1}, "facts": facts}}))
    assert page.tags() & {"img"} == set()
    assert len([t for t, _ in page.elements if t == "script"]) == 1
    assert not [n for _, a in page.elements for n in a if n.startswith("on")]
    assert page.text.count("window.pwned = 1") >= 3
    assert "\u202e" not in page.source
    assert HOSTILE[0] + "\\u202e" in page.attributes("data-name")[0]


def test_bytes_that_are_no_text_survive(shared: Store, found: Assessment) -> None:
    page = page_of(shared, rewritten(shared, found, b"\xf0\x9f", b"\xff\xfe", "ש".encode(), b"   "))
    assert "⟨f0 9f⟩" in page.text
    assert "⟨ff fe⟩" in page.text
    assert "␣␣␣" in page.text
    page.source.encode("utf-8")


def test_hidden_text_shows_neither_text_nor_ids(shared: Store, found: Assessment) -> None:
    shown, hidden = page_of(shared, found), page_of(shared, found, text=False)
    assert shown.of_class("chip")
    assert not hidden.of_class("chip")
    first = found.verdict.first
    assert first is not None
    secrets = [first.divergence.baseline_text, first.divergence.candidate_text]
    assert [s for s in secrets if folded(s) in shown.text] == secrets
    assert [s for s in secrets if s.strip() and folded(s) in hidden.text] == []
    assert "id " not in " ".join(hidden.attributes("title"))
    assert "Prompts and outputs are hidden for this suite" in hidden.text
    assert len(hidden.of_class("stem")) == len(shown.of_class("stem")) > 0
    assert not re.search(r"<th>token", hidden.source)


def test_numbers_that_are_not_finite_survive(sqlite_store: Store) -> None:
    made = lab(sqlite_store)
    made.bless()
    page = page_of(sqlite_store, made.assess(options={"faults": {"nan": {"block": 2}}}))
    assert "broken" in page.text
    assert page.of_class("lost")
    assert "nan" in page.source


def test_a_match_is_short_and_says_so(sqlite_store: Store) -> None:
    made = lab(sqlite_store)
    made.bless()
    page = page_of(sqlite_store, made.assess())
    assert "match: 3 canaries identical" in page.text
    assert "3 canaries are identical in every bit that decides" in page.text
    assert "No canary changed" in page.text
    assert not page.of_class("canary")


def test_what_cannot_be_held_against_each_other_is_said(sqlite_store: Store) -> None:
    made = lab(sqlite_store)
    made.bless()
    changed = made.suite.canaries[0]
    other = replace(made, suite=replace(made.suite, canaries=(replace(changed, id="fresh"), *made.suite.canaries[1:])))
    page = page_of(sqlite_store, other.assess(options=DAMAGE))
    assert "new" in [word.removeprefix("outcome-") for a in page.of_class("tag") for word in (a["class"] or "").split()]
    assert "not in the baseline's suite" in page.text


def test_a_comparison_without_a_baseline_has_no_floors_and_still_a_page(sqlite_store: Store) -> None:
    made = lab(sqlite_store)
    made.bless()
    plain, damaged = made.run(), made.run(options=DAMAGE)
    found = assess(sqlite_store, of_replay(plain), of_replay(damaged), Policy())
    page = page_of(sqlite_store, found)
    assert "the baseline has no yardstick to hold it against" in page.text
    assert not page.of_class("within")


def test_a_thousand_canaries_stay_bounded_and_none_is_lost(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four real canaries, multiplied: every trace is stored once, as a store would hold them."""
    assert report_module.BUDGET <= 3_000_000
    monkeypatch.setattr(report_module, "BUDGET", 500_000)
    found = drifted(sqlite_store, suite(4, tokens=64))
    many = _multiplied(sqlite_store, found, 250)
    source = report(sqlite_store, many)
    page = Page.parse(source)
    names = [f"canary-{n}-{copy}" for n in range(4) for copy in range(250)]
    assert len(page.attributes("data-name")) == 1000
    assert set(page.attributes("data-name")) == set(names)
    drawn = len(page.of_class("canary"))
    assert 5 < drawn < 50
    assert f"these {1000 - drawn} have their words only" in page.text
    assert len(source) < report_module.BUDGET + 600_000


def test_named_canaries_are_drawn_first(shared: Store, found: Assessment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_module, "BUDGET", 1)
    page = page_of(shared, found, first=("canary-2",))
    assert [a["data-name"] for a in page.of_class("canary")] == ["canary-2"]
    assert "these 2 have their words only" in page.text


def _multiplied(store: Store, found: Assessment, copies: int) -> Assessment:
    assert found.baseline is not None
    old = store.suites.get(found.baseline.suite_digest).suite
    canaries = [replace(c, id=f"{c.id}-{n}") for c in old.canaries for n in range(copies)]
    digest = store.suites.put(replace(old, canaries=tuple(canaries))).digest

    def side(trace_set: str) -> str:
        entries = store.traces.set(trace_set).entries
        copied = [_renamed(entry, n) for entry in entries for n in range(copies)]
        return store.blobs.put(TraceSet.of(copied).to_bytes(), KIND)

    sides = (found.baseline, found.candidate)
    a, b = (replace(s, suite_digest=digest, trace_set=side(s.trace_set)) for s in sides)
    return assess(store, a, b, Policy())


def _renamed(entry: Entry, number: int) -> Entry:
    return replace(entry, key=replace(entry.key, canary=f"{entry.key.canary}-{number}"))


def test_the_blocks_of_a_page_do_not_hold_numbers_as_markup(page: Page) -> None:
    """Places are plain numbers: a NaN in an attribute would leave a drawing empty without a word."""
    numbers = [
        v for _, a in page.elements for n, v in a.items() if n in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r")
    ]
    assert len(numbers) > 100
    assert [n for n in numbers if not re.fullmatch(r"-?\d+(\.\d+)?%?", n or "")] == []
    assert np.isfinite([float((n or "").rstrip("%")) for n in numbers]).all()
