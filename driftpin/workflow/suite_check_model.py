"""A model that somebody names on the command line, as a recipe. Knows the configuration and a folder's config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

from driftpin.errors import ConfigError, ModelError
from driftpin.settings.config import Config
from driftpin.settings.problem import near
from driftpin.settings.recipe import Recipe
from driftpin.settings.schema import Dtype

CONFIG = "config.json"
ENGINE = "transformers"


def model_recipe(config: Config | None, named: str) -> Recipe:
    """A model of the configuration, else a folder; raises `ConfigError` where it is neither."""
    known = {} if config is None else config.tables.models
    if named in known:
        table = known[named]
        return Recipe(
            engine=ENGINE,
            model=named,
            path=table.path,
            revision=table.revision,
            dtype=table.dtype,
            trust_remote_code=table.trust_remote_code,
        )
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise ConfigError(
            f"{named} is neither a folder nor a model of the configuration{near(named, known)}.",
            remedy="Name a folder that holds config.json and *.safetensors.",
        )
    return Recipe(engine=ENGINE, model=folder.resolve().name, path=str(folder.resolve()), dtype=_own_dtype(folder))


def _own_dtype(folder: Path) -> str:
    """The dtype that the folder's configuration names, where driftpin runs models in it, else float32."""
    try:
        config: Any = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{folder / CONFIG} cannot be read: {error}.", remedy="Name a model's folder.") from error
    wanted = config.get("dtype") or config.get("torch_dtype") if isinstance(config, dict) else None
    return str(wanted) if wanted in get_args(Dtype) else Recipe.dtype
