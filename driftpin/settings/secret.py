"""A secret by reference: a file or an environment variable, read again at every use, never held or shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from driftpin.errors import ConfigError


class Source(StrEnum):
    """Where a secret lies."""

    FILE = "file"  # the whole content of a file
    ENV = "env"  # the value of an environment variable


@dataclass(frozen=True, kw_only=True)
class Secret:
    """A reference to a secret; `name` is a file's path or a variable's name."""

    source: Source
    name: str
    environ: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.source.value}:{self.name}"

    def read(self) -> str:
        """The secret as it is now, without one trailing newline; `ConfigError` when there is none."""
        raw = self._from_file() if self.source is Source.FILE else self._from_environ()
        value = raw.removesuffix("\n").removesuffix("\r")
        if not value:
            raise ConfigError(f"The secret {self} is empty.", remedy="Put the secret there, then try again.")
        return value

    def _from_file(self) -> str:
        try:
            return Path(self.name).read_bytes().decode("utf-8")
        except FileNotFoundError as error:
            raise ConfigError(f"The secret {self} does not exist.", remedy="Create that file.") from error
        except UnicodeDecodeError:
            # The decoding error holds the bytes of the secret: it must not travel as the cause.
            raise ConfigError(f"The secret {self} is not UTF-8 text.", remedy="Write it as plain text.") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "not a usable path"
            raise ConfigError(
                f"The secret {self} cannot be read: {reason}.", remedy="Let this user read that file."
            ) from error

    def _from_environ(self) -> str:
        if self.name not in self.environ:
            raise ConfigError(f"The secret {self} is not set.", remedy=f"Set the environment variable {self.name}.")
        return self.environ[self.name]


LITERAL = 'is a secret and may not be written here: use { file = "PATH" } or { env = "NAME" }'


def secret_from(value: Any, environ: Mapping[str, str]) -> Secret:
    """A secret from its table in TOML; ValueError, which never repeats the value, for anything else."""
    if not isinstance(value, dict):
        raise ValueError(LITERAL)
    if len(value) != 1 or next(iter(value)) not in set(Source):
        raise ValueError('must be { file = "PATH" } or { env = "NAME" }')
    (source, name), *_ = value.items()
    if not isinstance(name, str) or not name:
        raise ValueError(f"needs a name in its {source!r}")
    return Secret(source=Source(source), name=name, environ=environ)
