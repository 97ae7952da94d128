"""A suite as YAML that `load_suite` reads back to an equal suite. Knows nothing of files."""

from __future__ import annotations

import re
from typing import Any

import yaml

from driftpin.suite.canary import Canary, Suite

_PLAIN = re.compile(r"[ -~]*")  # printable ASCII on one line: YAML quotes it where it must
_WIDTH = 2**30  # never fold: a folded line is one more way to change a prompt


def dump_suite(suite: Suite) -> str:
    """The suite as YAML text; every character survives, control characters as escapes in double quotes."""
    document: dict[str, Any] = {"name": suite.name}
    if suite.clock is not None:
        document["clock"] = suite.clock
    document["canaries"] = [_canary(canary) for canary in suite.canaries]
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)


def _canary(canary: Canary) -> dict[str, Any]:
    """As stored, without what is empty."""
    return {key: value for key, value in canary.to_json().items() if value not in ("", [])}


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if _PLAIN.fullmatch(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
