"""The oldest releases that pyproject.toml asks for: `python -m tools.lowest` names them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import requires

from packaging.requirements import Requirement

OURS = ("redis", "mysql", "elasticsearch", "metrics")


def lowest() -> Iterator[str]:
    """A pin for each dependency of the extras that a user installs."""
    for text in requires("sparkonce") or ():
        asked = Requirement(text)
        needed = asked.marker is None or any(asked.marker.evaluate({"extra": one}) for one in OURS)
        bounds = [one.version for one in asked.specifier if one.operator == ">="]
        if needed and bounds:
            extras = f"[{','.join(sorted(asked.extras))}]" if asked.extras else ""
            yield f"{asked.name}{extras}=={bounds[0]}"


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest()) + "\n")
