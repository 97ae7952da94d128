"""Real comparisons for the report's tests: the fake engine, damaged, and text that means harm."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser

from replaying import Lab

from driftpin.report.report import report
from driftpin.settings.policy import Policy
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.suite.canary import Canary, CanarySettings, Message, Suite
from driftpin.trace.text import TraceText
from driftpin.trace.traceset import KIND, Entry, TraceSet
from driftpin.workflow.assess import Assessment, assess
from driftpin.workflow.references import of_baseline

DAMAGE = {"faults": {"weight": {"block": 1, "by": 1 / 64}}}
QUIET = {"faults": {"logit_noise": 0.25}}  # moves every logit alike: tokens stay
HOSTILE = (
    "</script><script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 2'>",
    "\" autofocus onfocus='window.pwned = 3",
    "{{ 7 * 7 }}{% raw %}",
    "a\u202egnp.exe\u200bb\x1b[31m\x00\ufeff",
    "]]><!-- -->",
)


def suite(count: int = 3, tokens: int = 24) -> Suite:
    """Prompts that differ in their last word."""
    words = ("sky", "sea", "sun", "day", "way", "fog")
    canaries = [
        Canary(
            id=f"canary-{n}",
            messages=(Message(role="user", content=f"Tell of the {words[n % len(words)]} {n}"),),
            settings=CanarySettings(max_new_tokens=tokens),
        )
        for n in range(count)
    ]
    return Suite(name="report", canaries=tuple(canaries))


def lab(store: Store, of: Suite | None = None) -> Lab:
    """A target on the fake engine."""
    return Lab(store=store, recipe=Recipe(engine="fake", model="arithmetic"), suite=of or suite())


def drifted(store: Store, of: Suite | None = None) -> Assessment:
    """A blessed target and a replay of it with one damaged weight."""
    made = lab(store, of)
    made.bless()
    return made.assess(options=DAMAGE)


def rewritten(store: Store, found: Assessment, *texts: str | bytes) -> Assessment:
    """The same comparison, the candidate's output pieces replaced by `texts`, one after another."""
    pieces = [t if isinstance(t, bytes) else t.encode("utf-8", "surrogatepass") for t in texts]
    entries = store.traces.set(found.candidate.trace_set).entries
    changed = TraceSet.of(_rewritten(store, entry, pieces) for entry in entries)
    candidate = replace(found.candidate, trace_set=store.blobs.put(changed.to_bytes(), KIND))
    assert found.baseline is not None
    return assess(store, found.baseline, candidate, Policy())


def _rewritten(store: Store, entry: Entry, pieces: list[bytes]) -> Entry:
    text = store.traces.text(entry)
    filled = tuple(pieces[n % len(pieces)] for n in range(len(text.pieces)))
    made = TraceText(rendered=text.rendered, pieces=filled)
    return replace(entry, text=store.blobs.put(made.to_bytes(), "text"))


def page_of(store: Store, found: Assessment, **words: object) -> Page:
    """The report, parsed."""
    return Page.parse(report(store, found, **words))  # type: ignore[arg-type]


def current_baseline(store: Store, found: Assessment) -> Assessment:
    """The same candidate against the baseline that is current now."""
    blessed = store.baselines.list(found.candidate.replay.target)[0]
    return assess(store, of_baseline(store, blessed), found.candidate, Policy())


@dataclass
class Page(HTMLParser):
    """What a browser would find: elements with their attributes, and the text outside style and script."""

    source: str = ""
    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    raw: dict[str, list[str]] = field(default_factory=lambda: {"style": [], "script": []})

    @classmethod
    def parse(cls, source: str) -> Page:
        made = cls(source=source)
        HTMLParser.__init__(made, convert_charrefs=True)
        made._inside = ""
        made.feed(source)
        made.close()
        return made

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in self.raw:
            self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.raw[self._inside].append(data)
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        """Everything that is read, blanks folded."""
        return " ".join("".join(self.words).split())

    def attributes(self, name: str) -> list[str]:
        """Values of one attribute, of all elements."""
        return [attrs[name] or "" for _, attrs in self.elements if name in attrs]

    def of_class(self, word: str) -> list[dict[str, str | None]]:
        """Attributes of the elements that carry a class."""
        return [a for _, a in self.elements if word in (a.get("class") or "").split()]

    def table(self, name: str) -> list[list[str]]:
        """Cells of the rows of one table of numbers."""
        body = self.source.partition(f'id="{name}"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
        return [[cell.strip() for cell in re.split(r"<t[hd]>", row)[1:]] for row in body.split("<tr>")[1:]]

    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}
