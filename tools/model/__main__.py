"""Searches the model with TLC: `python -m tools.model --scope large abort`.

Words select scopes by name, or with `--mutants` mutants.
"""

from __future__ import annotations

import argparse
import sys
import time

from tools.model.mutants import IN_MODEL, walked
from tools.model.scopes import LARGE, SMALL, Scope, search

SECONDS = 3600.0


def main() -> int:
    """Search; print the number of states, and whether the promises hold in all of them."""
    parser = argparse.ArgumentParser(prog="python -m tools.model", description=__doc__)
    parser.add_argument("--scope", choices=["small", "large"], default="small")
    parser.add_argument("--mutants", action="store_true", help="find each mutant of the model")
    parser.add_argument("--workers", type=int, default=2, help="threads of TLC")
    parser.add_argument("words", nargs="*", help="words in the name; default: all")
    given = parser.parse_args()

    def named(name: str) -> bool:
        return all(word in name for word in given.words)

    if given.mutants:
        done = [_finds(name) for name in IN_MODEL if named(name)]
    else:
        scopes = SMALL if given.scope == "small" else LARGE
        done = [
            _holds(Scope.parse(name, text), given.workers)
            for name, text in scopes.items()
            if named(name)
        ]
    return int(not all(done))


def _holds(scope: Scope, workers: int) -> bool:
    """Search a scope; return whether all promises hold."""
    print(f"{scope.name:60}", end="", flush=True)
    begun = time.monotonic()
    found = search(scope, seconds=SECONDS, workers=workers)
    passed = time.monotonic() - begun
    result = f"{found.broken} does not hold" if found.broken else "all promises hold"
    result += ", within Patient" if scope.endless else ""
    print(f"{found.states:>10,} states {passed:>6.0f} s  {result}", flush=True)
    if found.broken:
        print(found.text, file=sys.stderr)
    return not found.broken


def _finds(name: str) -> bool:
    """Find a mutant, and walk TLC's counterexample."""
    print(f"{name:60}", end="", flush=True)
    begun = time.monotonic()
    found = walked(name)
    passed = time.monotonic() - begun
    print(f"{passed:>4.0f} s  {IN_MODEL[name].breaks} {found}", flush=True)
    return found.is_told_apart(IN_MODEL[name].leaves)


if __name__ == "__main__":
    sys.exit(main())
