"""The fact that names the image's lock. Knows nothing of images or how they are built."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from driftpin.environment.fact import Fact, Unknown

VARIABLE = "DRIFTPIN_IMAGE_LOCK"  # set by the image: sha256 of the hashed lock it was built from


def image_facts(environ: Mapping[str, str] = os.environ) -> dict[str, Fact]:
    """`image.lock`: 64 hex digits; no fact outside an image, unknown where the variable holds something else."""
    if not (value := environ.get(VARIABLE)):
        return {}
    digest = value.removeprefix("sha256:").lower()
    if not re.fullmatch("[0-9a-f]{64}", digest):
        return {"image.lock": Unknown(f"{VARIABLE} does not hold a sha256")}
    return {"image.lock": digest}
