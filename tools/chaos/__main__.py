"""`python -m tools.chaos --store redis`: injects faults drawn from a seed, then counts rows."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from integration.support.servers.finder import NoServerError, UnavailableError
from integration.support.servers.process import tidy_when_terminated
from tools.chaos.batches import BatchesResult, BatchesRun
from tools.chaos.disk import go_apart
from tools.chaos.pipelines import PipelinesResult, PipelinesRun
from tools.chaos.result import Result
from tools.chaos.run import Run
from tools.chaos.target import ALL, MAKERS, maker

PIPELINES, BATCHES = "pipelines", "batches"
RUNS = {PIPELINES: PipelinesRun, BATCHES: BatchesRun}
"""Runs over several stores."""

OUT = Path(__file__).parents[2] / ".build" / "chaos"


def main() -> int:
    """Run; the exit status is 0 if no store broke a promise."""
    given = _arguments()
    go_apart("tools.chaos")
    tidy_when_terminated()
    stores = ALL if given.store == "all" else [given.store]
    good = [_one(store, given) for store in stores]
    return 0 if all(good) else 1


def _one(store: str, given: argparse.Namespace) -> bool:
    home = given.out.resolve() / store
    how = {"rows": given.rows, "kills": given.kills, "seed": given.seed, "tell": _tell}
    run = RUNS[store](home, **how) if store in RUNS else Run(maker(store), home, **how)
    try:
        result = run()
    except (NoServerError, UnavailableError) as absent:
        print(f"chaos: store={store} not run: {absent}")
        return False
    report = home.with_suffix(".json")
    result.write(report)
    _explain(result, report)
    return result.good


def _explain(result: Result | PipelinesResult | BatchesResult, report: Path) -> None:
    for what in result.broken:
        _tell(f"BROKEN: {what}")
    for error in result.alarms:
        _tell(f"false alarm: {error}")
    if isinstance(result, Result):
        for what in result.residue:
            _tell(f"BROKEN: {what}")
        for fault, why in result.missed.items():
            _tell(f"missed: {fault}: {why}")
        for fault, why in result.skipped.items():
            _tell(f"skipped: {fault}: {why}")
    _tell(f"{report}: {result.seconds / 60:.1f} minutes")
    print(result.line, flush=True)


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools.chaos", description=__doc__)
    parser.add_argument("--store", default="all", choices=[*MAKERS, *RUNS, "all"])
    parser.add_argument("--kills", type=int, default=20, help="number of kills per store")
    parser.add_argument("--rows", type=int, default=1_000_000, help="number of rows per store")
    parser.add_argument("--seed", type=int, default=1, help="seed of faults and rows")
    parser.add_argument("--out", type=Path, default=OUT, help="directory for records and logs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
