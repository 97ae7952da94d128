"""The report in a real browser: quiet, readable in both schemes and at a telephone's width, usable by keyboard."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from report_samples import HOSTILE, drifted, rewritten, suite

from driftpin.report.report import report
from driftpin.store import Store

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no browser: install Debian's package `chromium`, or name one in CHROMIUM"
)
PHONE, DESK = (360, 740), (1280, 900)
VIEWS = [(scheme, size) for scheme in ("light", "dark") for size in (PHONE, DESK)]

# Text that is seen, with its colour and the colour under it; sizes in pixels. SVG text is filled, HTML text coloured.
CONTRASTS = """() => {
  const parse = (c) => { const [r, g, b, a = 1] = c.match(/[\\d.]+/g).map(Number); return { r, g, b, a }; };
  const over = (top, under) => { const mix = (x, y) => x * top.a + y * (1 - top.a);
    return { r: mix(top.r, under.r), g: mix(top.g, under.g), b: mix(top.b, under.b), a: 1 }; };
  const ground = (node) => { const layers = [];
    for (let e = node; e; e = e.parentElement) layers.unshift(parse(getComputedStyle(e).backgroundColor));
    return layers.reduce((under, layer) => over(layer, under), { r: 255, g: 255, b: 255, a: 1 }); };
  const linear = (v) => { const c = v / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const light = ({ r, g, b }) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) {
    const e = node.parentElement;
    if (!node.textContent.trim() || !e.checkVisibility() || ["SCRIPT", "STYLE", "OPTION"].includes(e.tagName)) continue;
    const style = getComputedStyle(e), svg = e instanceof SVGElement;
    const under = ground(e), colour = over(parse(svg ? style.fill : style.color), under);
    const [a, b] = [light(colour), light(under)].sort((x, y) => y - x);
    const size = [parseFloat(style.fontSize), Number(style.fontWeight)];
    found.push([(a + 0.05) / (b + 0.05), ...size, node.textContent.trim().slice(0, 40)]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a damaged fake model whose output means harm."""
    root = tmp_path_factory.mktemp("browser")
    with Store.open(f"sqlite:///{root / 'store.db'}", migrate=True) as store:
        found = drifted(store, suite(4))
        (root / "report.html").write_text(
            report(store, rewritten(store, found, *HOSTILE, b"\xff", "ש", " word")), "utf-8"
        )
    return root / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: install the dev group")
    with playwright.sync_playwright() as driver:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]  # root has none
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Browser, file: Path) -> Iterator[Any]:
    """Opens the report; at the end nothing was asked for but the file, and the console is empty."""
    noise: list[str] = []
    contexts = []

    def opened(scheme: str = "light", size: tuple[int, int] = DESK, **words: Any) -> Page:
        context = browser.new_context(
            color_scheme=scheme, viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce", **words
        )
        contexts.append(context)
        page: Page = context.new_page()
        page.on("console", lambda message: noise.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: noise.append(f"error: {error}"))
        page.on("dialog", lambda dialog: noise.append(f"dialog: {dialog.message}"))
        page.on(
            "request",
            lambda request: noise.append(f"request: {request.url}") if "report.html" not in request.url else None,
        )
        page.goto(file.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert noise == []


def unfolded(page: Page) -> Page:
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    return page


@pytest.mark.parametrize(("scheme", "size"), VIEWS)
def test_nothing_sticks_out_sideways(visit: Any, scheme: str, size: tuple[int, int]) -> None:
    page = unfolded(visit(scheme, size))
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]
    wide = page.evaluate(
        """() => [...document.querySelectorAll('main *')]
             .filter((e) => !e.closest('.scroll') && !(e instanceof SVGElement))
             .filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.className || e.tagName)"""
    )
    assert wide == []


@pytest.mark.parametrize(("scheme", "size"), VIEWS)
def test_all_text_meets_the_contrast_of_wcag_aa(visit: Any, scheme: str, size: tuple[int, int]) -> None:
    found = unfolded(visit(scheme, size)).evaluate(CONTRASTS)
    assert len(found) > 300
    weak = [(text, round(ratio, 2)) for ratio, pixels, weight, text in found if ratio < least(pixels, weight)]
    assert weak == []


def least(pixels: float, weight: float) -> float:
    """WCAG 1.4.3: large text is 24 px, or 18.66 px in bold."""
    return 3.0 if pixels >= 24 or (pixels >= 18.66 and weight >= 700) else 4.5


def test_the_two_schemes_differ(visit: Any) -> None:
    grounds = [
        visit(scheme).evaluate("getComputedStyle(document.body).backgroundColor") for scheme in ("light", "dark")
    ]
    assert grounds[0] != grounds[1]


def test_hostile_output_is_shown_and_did_nothing(visit: Any) -> None:
    page = unfolded(visit())
    assert page.evaluate("window.pwned") is None
    assert page.evaluate("document.scripts.length") == 1
    assert page.evaluate("document.images.length") == 0
    assert "window.pwned = 1" in page.inner_text("#canaries")


def test_tab_reaches_every_control_and_shows_where_it_is(visit: Any) -> None:
    page = unfolded(visit())
    page.evaluate(
        """() => { const all = 'a[href], button, input, select, summary, [tabindex="0"]';
             [...document.querySelectorAll(all)].filter((e) => e.checkVisibility())
               .forEach((e, n) => { e.dataset.stop = n; }); }"""
    )
    count = page.evaluate("document.querySelectorAll('[data-stop]').length")
    assert count > 30
    stops, bare = [], []
    for _ in range(count):
        page.keyboard.press("Tab")
        stop, outline, name = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
                 const width = s.outlineStyle === 'none' ? 0 : parseFloat(s.outlineWidth);
                 return [e.dataset.stop ?? e.tagName, width, e.outerHTML.slice(0, 60)]; }"""
        )
        stops.append(stop)
        if outline < 2:
            bare.append(name)
    assert stops == [str(n) for n in range(count)]
    assert bare == []


def test_arrow_keys_walk_along_a_chart_and_say_what_stands_there(visit: Any) -> None:
    page = visit()
    chart = page.locator("[data-figure='c0-score'] .plots")
    readout = page.locator("[data-figure='c0-score'] .readout")
    rows = page.locator("#c0-score-table tbody tr").all_text_contents()
    chart.focus()
    page.keyboard.press("Home")
    first = readout.text_content()
    page.keyboard.press("ArrowRight")
    second = readout.text_content()
    page.keyboard.press("End")
    last = readout.text_content()
    assert first.startswith("position 0 ")
    assert second.startswith("position 1 ")
    assert last.startswith(f"position {len(rows) - 1} ")
    cells = page.locator("#c0-score-table tbody tr").nth(1).locator("th, td").all_text_contents()
    assert all(cell.strip() in second for cell in cells)
    assert chart.get_attribute("role") == "slider"
    assert chart.get_attribute("aria-valuetext") == last
    assert page.locator("[data-figure='c0-score'] .cursor").first.get_attribute("visibility") == "visible"


def test_a_chart_starts_at_its_divergence_and_follows_the_pointer(visit: Any) -> None:
    page = visit()
    chart = page.locator("[data-figure='c0-decode'] .plots")
    marked = float(page.locator("[data-figure='c0-decode'] .plot .mark").first.get_attribute("x1").rstrip("%"))
    count = page.locator("#c0-decode-table tbody tr").count()
    readout = page.locator("[data-figure='c0-decode'] .readout")
    chart.focus()
    assert readout.text_content().startswith(f"position {int(marked / 100 * count)} ")
    area = page.locator("[data-figure='c0-decode'] .plot").first.bounding_box()
    page.mouse.move(area["x"] + area["width"] - 2, area["y"] + 20)
    assert readout.text_content().startswith(f"position {count - 1} ")


def test_filter_and_buttons_work(visit: Any) -> None:
    page = visit()
    page.fill("#filter", "CANARY-2")
    assert page.locator("details.canary:visible").count() == 1
    assert page.text_content("#filtered") == "1 of 4"
    page.fill("#filter", "")
    page.click("#open-all")
    assert page.locator("details.canary[open]").count() == 4
    page.click("#close-all")
    assert page.locator("details.canary[open]").count() == 0


def test_commands_can_be_copied(visit: Any) -> None:
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    page.locator(".copy").first.click()
    page.wait_for_function("document.querySelector('.copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == page.locator(".command").first.text_content()


def test_without_scripts_everything_is_still_there(visit: Any) -> None:
    page = visit("dark", PHONE, java_script_enabled=False)
    assert not page.is_visible(".tools")
    assert not page.is_visible(".readout")
    page.locator("details.canary > summary").nth(1).click()
    table = page.locator("#c1-score-table")
    page.locator("details", has=table).locator("summary", has_text="as a table").last.click()
    assert table.is_visible()
    assert page.locator("[data-figure='c1-score'] .stem").count() > 10


def test_printing_opens_the_canaries_and_closes_them_again(visit: Any) -> None:
    page = visit("dark")
    before = page.locator("details.canary[open]").count()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("details.canary[open]").count() == 4
    assert not page.is_visible("nav")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details.canary[open]").count() == before < 4
