"""`driftpin demo`: a real model, a blessed baseline, and one real change after another.

Each step says what it expects before it runs, and the command fails when a verdict is not the expected one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftpin.cli import runs, screens
from driftpin.cli.baseline import login
from driftpin.cli.out import console, plain
from driftpin.cli.session import Session
from driftpin.errors import ModelError
from driftpin.settings.policy import Policy
from driftpin.settings.process import FIXED
from driftpin.verdict.diagnosis import ChangeClass
from driftpin.verdict.kind import VerdictKind
from driftpin.workflow import shapes
from driftpin.workflow.assess import Assessment, assess_replay
from driftpin.workflow.bless import bless
from driftpin.workflow.plans import bless_plan, replay_plan

if TYPE_CHECKING:
    from driftpin.store import Store
    from driftpin.workflow.order import Order

TARGET = "smol"
DAMAGED = "model.layers.14.mlp.down_proj.weight"
PENALTY = 1.3

CONFIG = """\
[store]
url = "sqlite:///demo.db"

[suites.core]
builtin = "core"

[models.smollm2]
path = "{path}"
dtype = "bfloat16"

[targets.smol]
engine = "transformers"
model = "smollm2"
suite = "core"
sampling = "as_shipped"
attention = "{attention}"
"""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One change, what should be said about it, and why that is right."""

    title: str
    expected: frozenset[VerdictKind]
    because: str
    attention: str = "sdpa"
    plant: tuple[str, ...] = ()  # arguments of runner.planting
    word: ChangeClass | None = None  # what the reference arm must call it
    place: str | None = None  # the block that must be named
    fact: str | None = None  # the name, or its beginning, of a fact that must be among the differences


STEPS = (
    Step(
        title="nothing changed",
        expected=frozenset({VerdictKind.MATCH}),
        because="one more run in the same environment repeats every bit",
    ),
    Step(
        title="another attention implementation (eager instead of sdpa), bfloat16",
        # Which near-ties flip depends on the processor; a flip beyond the yardstick would be an honest drift.
        expected=frozenset({VerdictKind.NUMERIC, VerdictKind.DRIFT}),
        because="bfloat16 rounds differently in every block: tokens part only where they were nearly tied",
        attention="eager",
        word=ChangeClass.ROUNDING,
        fact="attention",
    ),
    Step(
        title=f"a repetition penalty of {PENALTY} left in generation_config.json",
        expected=frozenset({VerdictKind.DRIFT}),
        because="the file acts under sampling = as_shipped; the weights are the same",
        plant=("penalty", "--value", str(PENALTY)),
        word=ChangeClass.MODEL_OR_INPUT_CHANGE,
        fact="generation",
    ),
    Step(
        title=f"a damaged tensor: {DAMAGED}",
        expected=frozenset({VerdictKind.DRIFT}),
        because="a quarter of its rows is zero",
        plant=("damage", "--tensor", DAMAGED),
        word=ChangeClass.MODEL_OR_INPUT_CHANGE,
        place="model.layers.14",
        fact="weights",
    ),
)


def run(folder: str | None) -> int:
    """The whole demonstration; 0 when every verdict was the expected one, else 1."""
    place = nullcontext(folder) if folder else tempfile.TemporaryDirectory(prefix="driftpin-demo-")
    with place as where:
        root = Path(where).resolve()
        root.mkdir(parents=True, exist_ok=True)
        return _Demo(root).run()


class _Demo:
    """The steps in one working folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.console = root, console()

    def run(self) -> int:
        """Weights, baseline, steps, table."""
        self.console.print("[bold]weights[/] SmolLM2-135M-Instruct, de-quantised once into bfloat16 safetensors")
        model = Path(_python(["-m", "runner.demo_weights", "--dtype", "bfloat16"], capture=True).strip())
        session, order = self._order(model, "sdpa")
        with session.store(session.config(), migrate=True) as store:
            self._bless(store, order)
            results = [self._step(store, number, step, model) for number, step in enumerate(STEPS, 1)]
        return self._table(results)

    def _order(self, model: Path, attention: str) -> tuple[Session, Order]:
        path = self.root / "driftpin.toml"
        path.write_text(CONFIG.format(path=model.as_posix(), attention=attention), encoding="utf-8")
        session = self._session()
        return session, session.order(session.config(), TARGET)

    def _url(self) -> str:
        return self._session().config().store_url()

    def _session(self) -> Session:
        """The store as a flag: DRIFTPIN_STORE__URL must not lead the demonstration to a real one."""
        flags = {"store.url": f"sqlite:///{self.root / 'demo.db'}"}
        return Session(config_path=self.root / "driftpin.toml", flags=flags)

    def _bless(self, store: Store, order: Order) -> None:
        plan = bless_plan(order.operations)
        done = runs.run_order(store, self._url(), order, plan, "bless", "bless a baseline (three equal repeats)")
        reference = runs.reference_of(store, self._url(), done)
        made = bless(store, done, login(), "demonstration", reference=reference)
        count = len(order.suite.canaries)
        self.console.print(f"[bold]blessed[/] {TARGET}@{made.number}: {count} canaries, three equal repeats each\n")

    def _step(self, store: Store, number: int, step: Step, model: Path) -> tuple[Step, Assessment, list[str]]:
        self.console.print(f"[bold]{number}. {plain(step.title)}[/]")
        changed = model if not step.plant else self._planted(number, step, model)
        _, order = self._order(changed, step.attention)
        before = _rows(store)
        done = runs.run_order(store, self._url(), order, replay_plan(order.operations), "manual", "replay")
        policy = Policy.from_json(order.operations["policy"])
        found = runs.referred(store, self._url(), assess_replay(store, done, policy), policy)
        body = shapes.replay_result(found, done, strict=False, text=True)
        screens.assessment(self.console, found, body, done)
        if VerdictKind.MATCH in step.expected:
            self.console.print(f"[dim]rows added to the store: {_rows(store) - before}[/]")
        wrong = _wrong(step, found, body)
        for sentence in wrong:
            self.console.print(f"[bold red]not as expected[/] {plain(sentence)}")
        self.console.print()
        return step, found, wrong

    def _planted(self, number: int, step: Step, model: Path) -> Path:
        target = self.root / f"model-{number}"
        _python(["-m", "runner.planting", str(model), str(target), *step.plant])
        return target

    def _table(self, results: list[tuple[Step, Assessment, list[str]]]) -> int:
        table = screens.new_table("change", "verdict", "class", "first token", "as expected, because")
        for step, found, wrong in results:
            first = found.verdict.first
            at = "" if first is None else f"{first.canary}, token {first.divergence.position}"
            said = "NO: " + "; ".join(wrong) if wrong else f"yes: {step.because}"
            word = step.word.value.replace("_", " ") if step.word and not wrong else ""
            table.add_row(*(plain(part) for part in (step.title, found.verdict.kind.value, word, at, said)))
        self.console.print(table)
        return 1 if any(wrong for _, _, wrong in results) else 0


def _wrong(step: Step, found: Assessment, body: Mapping[str, Any]) -> list[str]:
    """Everything in which a verdict is not the expected one, or not for the expected reason."""
    wrong = []
    if found.verdict.kind not in step.expected:
        wrong.append(f"expected {' or '.join(sorted(step.expected))}, got {found.verdict.kind}")
    if body["class"] != (step.word.value if step.word else None):
        wrong.append(f"expected the class {step.word}, got {body['class']}")
    block = found.verdict.place.block if found.verdict.place else None
    if step.place and block != step.place:
        wrong.append(f"expected the difference to enter in {step.place}, got {block}")
    names = [fact["name"] for fact in body["environment_difference"]["facts"]]
    if step.fact and not any(step.fact in name for name in names):
        wrong.append(f"expected a fact about {step.fact} among the differences, got {names}")
    return wrong


def _rows(store: Store) -> int:
    return sum(rows for rows, _ in store.size().values())


def _python(arguments: list[str], *, capture: bool = False) -> str:
    """Run one of the runner's modules in a fresh process; its progress goes to our standard error."""
    done = subprocess.run(
        [sys.executable, *arguments],
        check=False,
        stdout=subprocess.PIPE if capture else None,
        text=True,
        env=dict(os.environ) | FIXED,
    )
    if done.returncode:
        raise ModelError(f"`python {' '.join(arguments[:2])}` ended with status {done.returncode}.", remedy=SETUP)
    return str(done.stdout or "")


SETUP = "Run `make demo`, which installs what the demonstration needs."
