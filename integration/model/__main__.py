"""Lets TLC search the model: `python -m integration.model --scope large abort`.

Words are looked for in the names of scopes, or with `--mutants` in those of mutants.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping

from integration.model.mutants import PLANTED
from integration.model.scopes import Scope, search
from integration.model.searches import LARGE, SMALL

SECONDS = 3600.0
Search = tuple[str, Scope, Mapping[str, str], str]


def main() -> int:
    """Search, and say how many states there are and whether the promises hold in all of them."""
    parser = argparse.ArgumentParser(prog="python -m integration.model", description=__doc__)
    parser.add_argument("--scope", choices=["small", "large"], default="small")
    parser.add_argument("--mutants", action="store_true", help="find each mutant of the model")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("words", nargs="*", help="of the names; all without")
    given = parser.parse_args()
    tried = list(_mutants() if given.mutants else _scopes(given.scope))
    named = [one for one in tried if all(word in one[0] for word in given.words)]
    held = [_holds(*one, workers=given.workers) for one in named]
    return int(not all(held))


def _scopes(size: str) -> Iterator[Search]:
    for scope in SMALL if size == "small" else LARGE:
        yield scope.name, scope, {}, ""


def _mutants() -> Iterator[Search]:
    for name, planted in PLANTED.items():
        yield name, planted.scope, planted.instead, planted.breaks


def _holds(
    name: str, scope: Scope, instead: Mapping[str, str], breaks: str, *, workers: int
) -> bool:
    """Search a scope, and see that nothing is broken but what should be."""
    print(f"{name:60}", end="", flush=True)
    begun = time.monotonic()
    found = search(scope, instead, seconds=SECONDS, workers=workers)
    passed = time.monotonic() - begun
    told = f"{found.broken} does not hold" if found.broken else "all promises hold"
    print(f"{found.states:>10,} states {passed:>6.0f} s  {told}", flush=True)
    if found.broken != breaks:
        print(found.text, file=sys.stderr)
    return found.broken == breaks


if __name__ == "__main__":
    sys.exit(main())
