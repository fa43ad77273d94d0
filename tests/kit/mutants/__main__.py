"""Prints which rules notice each mutant: `python -m tests.kit.mutants [part of a name]`.

The whole suite runs for each, in the first of its profiles, or with a name in all of them; with
every so many-th crash point and interleaving only.
"""

from __future__ import annotations

import logging
import os
import sys

from tests.kit.mutants import MUTANTS
from tests.kit.mutants.mutant import checks, found

PACE = "7"


def main() -> None:
    """Print the table."""
    logging.disable(logging.CRITICAL)
    os.environ.setdefault("SPARKONCE_TCK_PACE", PACE)
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    print("| mutant | profile | breaks | noticed by |\n|---|---|---|---|")
    for mutant in [one for one in MUTANTS if part in one.name]:
        for profile in mutant.profiles if part else mutant.profiles[:1]:
            rules = sorted({broken.rule.number for _, broken in found(mutant, profile, checks())})
            print(
                f"| {mutant.name} | {profile} | {mutant.breaks} | {' '.join(rules)} |", flush=True
            )


if __name__ == "__main__":
    main()
