"""What every command starts from: the configuration, and a store opened on demand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from driftpin.settings.config import Config
    from driftpin.store import Store
    from driftpin.store.replay import Replay
    from driftpin.workflow.order import Order


@dataclass(frozen=True, kw_only=True)
class Session:
    """The global options. Everything heavy is imported by the method that needs it."""

    config_path: Path | None = None
    flags: dict[str, str] = field(default_factory=dict)

    def config(self) -> Config:
        """The validated configuration; raises `ConfigError`."""
        from driftpin.settings.load import load_config  # noqa: PLC0415 - start-up time

        return load_config(self.config_path, os.environ, self.flags)

    @property
    def is_configured(self) -> bool:
        """False when nobody named a configuration and the default one is not there."""
        from driftpin.settings.load import DEFAULT_FILE  # noqa: PLC0415 - start-up time

        named = self.config_path or os.environ.get("DRIFTPIN_CONFIG")
        return bool(named) or Path(DEFAULT_FILE).exists()

    @contextmanager
    def store(self, config: Config, *, migrate: bool = False) -> Iterator[Store]:
        """The store of the configuration; `migrate` makes an absent one."""
        from driftpin.store import Store  # noqa: PLC0415 - start-up time

        with Store.open(config.store_url(), migrate=migrate) as store:
            yield store

    def order(self, config: Config, target: str) -> Order:
        """The target's order; raises `ConfigError` for an unknown one and `SuiteError` for a bad suite."""
        from driftpin.workflow.order import order_of  # noqa: PLC0415 - start-up time

        return order_of(config, target)


def shows_text(config: Config, store: Store, *replays: Replay) -> bool:
    """Whether prompts and outputs may be shown: no side hid them when it ran, and no side's target hides them now."""
    then = (store.targets.get(replay.revision_id).operations["text"] for replay in replays)
    now = (config.suite(config.target(r.target).suite).text for r in replays if r.target in config.targets)
    return all(mode == "show" for mode in (*then, *now))


def current(context: typer.Context) -> Session:
    """The session that the app's callback made."""
    session: Session = context.obj
    return session
