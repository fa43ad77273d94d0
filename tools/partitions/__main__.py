"""`python -m tools.partitions --store redis-sentinel`: cuts clusters apart, then counts rows."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from integration.support.servers import kafka
from integration.support.servers.finder import NoServerError, UnavailableError
from integration.support.servers.mysql import private_binary
from integration.support.servers.process import tidy_when_terminated
from tools.partitions import network
from tools.partitions.cluster import CLUSTERS, maker
from tools.partitions.run import PartitionRun
from tools.partitions.source_run import SourceRun

RUNS = {"sink": PartitionRun, "source": SourceRun}

OUT = Path(__file__).parents[2] / ".build" / "partitions"


def main() -> int:
    """Run; the exit status is 0 if no row was lost or duplicated in silence."""
    given = _arguments()
    unfollowed = maker(given.store).unfollowed if given.role == "source" else ""
    if why := network.why_not() or unfollowed:
        print(f"partitions: store={given.store} skipped: {why}")
        return 0
    home = given.out.resolve() / f"{given.store}-{given.role}"
    how = {"rows": 0, "kills": given.faults, "seed": given.seed, "tell": _tell}
    try:
        kafka.obtain()
        maker(given.store).obtain()
        private_binary("mysql")
        network.go_apart("tools.partitions")  # replaces this process
        tidy_when_terminated()
        result = RUNS[given.role](maker(given.store), home, **how)()
    except (NoServerError, UnavailableError) as absent:
        print(f"partitions: store={given.store} not run: {absent}")
        return 1
    report = home.with_suffix(".json")
    result.write(report)
    for what in result.broken:
        _tell(f"BROKEN: {what}")
    for error in result.alarms:
        _tell(f"false alarm: {error}")
    for fault, why in result.missed.items():
        _tell(f"missed: {fault}: {why}")
    _tell(f"{report}: {result.seconds / 60:.1f} minutes")
    print(result.line, flush=True)
    return 0 if result.good else 1


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools.partitions", description=__doc__)
    parser.add_argument("--store", required=True, choices=CLUSTERS)
    parser.add_argument("--role", default="sink", choices=RUNS, help="what the cluster is")
    parser.add_argument("--faults", type=int, default=20, help="number of faults")
    parser.add_argument("--seed", type=int, default=1, help="seed of faults and rows")
    parser.add_argument("--out", type=Path, default=OUT, help="directory for records and logs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
