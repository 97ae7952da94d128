"""What a replay that reproduces its predecessor adds to the store: rows and bytes, whatever the number of canaries.

    python benchmarks/unchanged_replay.py [--canaries 10 1000] [--replays 16] [--format json]

Budget: at most 3 rows and 2 KiB a replay. The fake engine runs in this process on a new SQLite store. Bytes are
those of the file's used pages, so they grow in steps: the mean over several replays is reported.
"""

from __future__ import annotations

from _bench import Line, parser, report, sqlite

from driftpin.settings.policy import Policy
from driftpin.settings.recipe import Recipe
from driftpin.store import Store
from driftpin.store.replay import Replay
from driftpin.suite.canary import Canary, CanarySettings, Suite
from driftpin.trace.plan import BASELINE, Plan
from driftpin.trace.probe import Shape
from driftpin.workflow.assess import assess_replay
from driftpin.workflow.bless import bless, blessing_plan
from driftpin.workflow.order import Order, place
from runner.worker import run_replay

ROWS, BYTES = 3, 2048


def order_of(count: int) -> Order:
    settings = CanarySettings(max_new_tokens=4)
    canaries = tuple(Canary(id=f"c{n}", prompt=f"prompt {n}", settings=settings) for n in range(count))
    suite = Suite(name="bench", canaries=canaries)
    recipe = Recipe(engine="fake", model="fake")
    return Order(target="bench", recipe=recipe, operations={}, suite_name=suite.name, suite=suite)


def replay(store: Store, order: Order, plan: Plan) -> Replay:
    queued = place(store, order, plan, "manual")
    assert queued is not None
    run_replay(store, queued.id)
    return store.replays.get(queued.id)


def totals(store: Store) -> tuple[int, int]:
    sizes = store.size().values()
    return sum(rows for rows, _ in sizes), sum(size for _, size in sizes)


def added(count: int, replays: int) -> tuple[float, float]:
    """Rows and bytes per replay, its verdict included."""
    order = order_of(count)
    with sqlite() as store:
        bless(store, replay(store, order, blessing_plan((Shape.ALONE,))), "bench", "bench")
        assess_replay(store, replay(store, order, Plan(score_on=BASELINE)), Policy())
        before = totals(store)
        for _ in range(replays):
            assess_replay(store, replay(store, order, Plan(score_on=BASELINE)), Policy())
        after = totals(store)
    return (after[0] - before[0]) / replays, (after[1] - before[1]) / replays


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--canaries", type=int, nargs="+", default=[10, 1000])
    options.add_argument("--replays", type=int, default=16)
    given = options.parse_args()
    lines = []
    for count in given.canaries:
        rows, size = added(count, given.replays if count < 100 else max(given.replays // 4, 1))
        lines.append(Line(what=f"rows per unchanged replay, {count} canaries", measured=rows, unit="rows", budget=ROWS))
        lines.append(Line(what=f"bytes per unchanged replay, {count} canaries", measured=size, unit="B", budget=BYTES))
    report(lines, given.format)


if __name__ == "__main__":
    main()
