"""What `driftpin suite check` asks of a model beyond its replays: the completed configuration, and tokens as text.

`python -m runner.suite_check` reads one JSON object from standard input: `path`, `trust_remote_code` and `ids`. It
writes one to standard output: `config`, `pieces` by id and the runner's `static_cache` steps, or `failed` with the
reason. Knows no suite and loads no weights.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import transformers

from driftpin.errors import DriftpinError, ModelError
from runner.engines.batching import PADDING
from runner.engines.caches import ROUND
from runner.loading import LOAD_ERRORS
from runner.model_folder import NAME_IT
from runner.pieces import token_pieces


def about(path: str, ids: Sequence[int], *, trust_remote_code: bool = False) -> dict[str, Any]:
    """The answer for one model folder; `ModelError` where configuration or tokenizer cannot be read."""
    folder = Path(path).expanduser()
    given = {"local_files_only": True, "trust_remote_code": trust_remote_code}
    try:
        config = transformers.AutoConfig.from_pretrained(folder, **given)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **given)
    except LOAD_ERRORS as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"The configuration in {folder} cannot be read: {first}", remedy=NAME_IT) from error
    return {
        "config": configuration(config),
        "pieces": {str(i): piece(tokenizer, i) for i in ids},
        "static_cache": {"padding": PADDING, "step": ROUND},
    }


def configuration(config: Any) -> dict[str, Any]:
    """The text decoder's configuration with the library's defaults filled in, as plain JSON."""
    text = config.get_text_config(decoder=True)
    known: dict[str, Any] = json.loads(json.dumps(text.to_dict(), default=str))
    limit = getattr(text, "max_position_embeddings", None)  # some models call it otherwise and map the name
    return known if limit is None else {**known, "max_position_embeddings": limit}


def piece(tokenizer: Any, token: int) -> str:
    """One token as text; asked for twice in a row, since decoders take a space off the first."""
    return token_pieces(tokenizer, [token, token])[1].decode("utf-8", "replace")


def main(asked: Mapping[str, Any]) -> int:
    """Answer on standard output; exit status 0, or 2 with the reason."""
    transformers.utils.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        answer = about(asked["path"], asked["ids"], trust_remote_code=asked["trust_remote_code"])
    except DriftpinError as error:
        sys.stdout.write(json.dumps({"failed": str(error)}) + "\n")
        return error.exit_code
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(json.load(sys.stdin)))
