"""`driftpin report`: a comparison as one HTML file."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftpin.cli.compare import REFERENCE
from driftpin.cli.out import errors, plain
from driftpin.cli.session import current, shows_text

if TYPE_CHECKING:
    from driftpin.store import Store
    from driftpin.workflow.references import Reference

STDOUT = "-"


def report(
    context: typer.Context,
    baseline: Annotated[str, typer.Argument(help=REFERENCE + "; alone: that replay against its own baseline")],
    candidate: Annotated[str | None, typer.Argument(help="the same")] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="the file; - is standard output")] = None,
    canary: Annotated[list[str] | None, typer.Option(help="draw this canary first; may be repeated")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="numeric movement counts as drift")] = False,
) -> None:
    """Write a comparison as one self-contained HTML file, whatever its verdict is."""
    from driftpin.report.report import report as page  # noqa: PLC0415 - start-up time
    from driftpin.settings.policy import Policy  # noqa: PLC0415
    from driftpin.workflow.assess import assess  # noqa: PLC0415

    session = current(context)
    config = session.config()
    with session.store(config) as store:
        old, new = _sides(store, baseline, candidate)
        operations = store.targets.get(new.replay.revision_id).operations
        found = assess(store, old, new, Policy.from_json(operations["policy"]))
        text = shows_text(config, store, old.replay, new.replay)
        html = page(store, found, strict=strict, text=text, first=tuple(canary or ()))
    if output == STDOUT:
        sys.stdout.buffer.write(html.encode())
        return
    path = Path(output or file_name(old.label, new.label))
    path.write_text(html, encoding="utf-8")
    errors().print(f"wrote {plain(path)}: {plain(found.verdict.headline)}", soft_wrap=True)


def file_name(baseline: str, candidate: str) -> str:
    """From what is compared, with nothing in it that a shell or a file system would obey."""
    words = (re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-.") or "replay" for label in (baseline, candidate))
    return f"driftpin-{'-'.join(words)}.html"


def _sides(store: Store, first: str, second: str | None) -> tuple[Reference, Reference]:
    """Both references; with one, the baseline that its replay was judged against, else the current one."""
    from driftpin.errors import NotFoundError  # noqa: PLC0415 - start-up time
    from driftpin.workflow.references import of_baseline, resolve  # noqa: PLC0415

    if second is not None:
        return resolve(store, first), resolve(store, second)
    new = resolve(store, first)
    judged, device = new.replay.baseline_id, new.replay.device_class or "unknown"
    old = store.baselines.current(new.replay.target, device) if judged is None else store.baselines.get(judged)
    if old is None:
        raise NotFoundError(
            f"{new.label} has no baseline to be held against.",
            remedy="Name two references, or bless one: `driftpin baseline bless " + new.replay.target + "`.",
        )
    return of_baseline(store, old), new


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(report)
