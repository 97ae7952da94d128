"""`load_config`: files, then variables, then flags, into one valid `Config`, or one error that lists everything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from driftpin.settings.config import Config
from driftpin.settings.crosscheck import findings
from driftpin.settings.document import read_documents
from driftpin.settings.leaves import Leaves
from driftpin.settings.overlay import overlay_environment, overlay_flags
from driftpin.settings.problem import error_of
from driftpin.settings.validate import problem_at, validate

DEFAULT_FILE = "driftpin.toml"
NO_FLAGS: Mapping[str, str] = MappingProxyType({})


def load_config(path: Path | None, environ: Mapping[str, str], flags: Mapping[str, str] = NO_FLAGS) -> Config:
    """The configuration at `path` (else DRIFTPIN_CONFIG, else ./driftpin.toml) under `environ` and `flags`.

    `flags` are texts by dotted key. `environ` is kept by secrets, which read it again at use. Raises `ConfigError`.
    """
    main = path or Path(environ.get("DRIFTPIN_CONFIG") or DEFAULT_FILE)
    leaves, problems = Leaves(), []
    for document in read_documents(main):
        problems += leaves.add_document(document)
    problems += overlay_environment(leaves, environ)
    problems += overlay_flags(leaves, flags)
    tables, invalid = validate(leaves, main, environ)
    problems += invalid
    if tables is not None:
        problems += [problem_at(key, text, leaves, main) for key, text in findings(tables)]
    if tables is None or problems:
        raise error_of(problems)
    return Config(path=main, tables=tables, written=dict(leaves.leaves))
