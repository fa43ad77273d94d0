"""The scopes that TLC searches: small ones in minutes, large ones by hand."""

from __future__ import annotations

from tools.model.scopes import Scope

TWO = {"Queries": {"a", "b"}}
WHOLE, ROWS = {"Profile": "whole"}, {"Profile": "converging"}
LANES = {"Profile": "lanes", "Places": {1, 2}}
BESIDE = {"Queries": {"a", "p"}, "SinkId": False}
"""A stream and a batch without a name, into one target."""
NOTHING_LEFT = ("AllOfIt", "Kept", "NotDropped")
"""What nobody can promise of rows that the store has lost for good."""

SMALL = [
    Scope("whole epochs, a request fails", drivers=1, most={"faults": 1}, constants=WHOLE),
    Scope("whole epochs, an abort", most={"dooms": 1}, constants=WHOLE),
    Scope(
        "whole epochs, a checkpoint goes back",
        drivers=1,
        most={"restores": 1},
        constants=WHOLE | {"LastEpoch": 1, "MaxRuns": 3, "MaxAttempts": 3},
    ),
    Scope(
        "two epochs, a failover",
        drivers=1,
        most={"losses": 1},
        constants=WHOLE | {"Loss": "suffix", "LastEpoch": 1},
    ),
    Scope("two partitions", drivers=1, constants=WHOLE | {"Parts": {1, 2}, "MaxAttempts": 4}),
    Scope("chunks, two of an attempt", constants={"Sizes": {2}}),
    Scope("chunks, rows are refused", most={"refusals": 1}),
    Scope("chunks, recover and forget", most={"commands": 2}, constants={"MaxRuns": 1}),
    Scope(
        "chunks, the log is lost, and that accepted",
        most={"losses": 1, "commands": 2, "accepted": 1},
        but=NOTHING_LEFT,
        constants={"Loss": "log", "MaxRuns": 1, "MaxAttempts": 1},
    ),
    Scope(
        "row by row, an abort in two steps, and the ledger left",
        most={"dooms": 1, "leaves": 1},
        constants=ROWS | {"OneStep": False, "MaxRuns": 1},
    ),
    Scope("lanes, two chunks", constants=LANES | {"Sizes": {2}}),
    Scope("batches with numbers", constants={"Follows": "grows", "LastEpoch": 1}),
    Scope(
        "batches with numbers, a request fails beside an abort",
        drivers=1,
        most={"faults": 1, "dooms": 1},
        constants={"Follows": "grows"},
    ),
    Scope(
        "batches without, one after the other",
        drivers=1,
        most={"commands": 1},
        constants=TWO | {"Follows": "once", "SinkId": False},
    ),
    Scope(
        "a stream and a batch, one process at a time",
        drivers=1,
        most={"commands": 1},
        constants=BESIDE,
    ),
    Scope(
        "another query, the ledger shared",
        drivers=1,
        constants=TWO | {"Policy": "repeatable", "MaxAttempts": 3, "MaxRuns": 3},
    ),
    Scope(
        "another query, by the claim",
        drivers=1,
        constants=TWO | {"Policy": "continue", "SinkId": False, "MaxAttempts": 3, "MaxRuns": 3},
    ),
    Scope(
        "epochs end, once nothing more fails",
        drivers=1,
        most={"faults": 1, "calm": 1},
        ends=True,
        constants={"MaxRuns": 1, "MaxAttempts": 1},
    ),
]
"""In CI."""

LARGE = [
    Scope("whole epochs, a request fails, two drivers", most={"faults": 1}, constants=WHOLE),
    Scope("chunks, a request fails", most={"faults": 1}),
    Scope(
        "chunks, two of an attempt, a request fails", most={"faults": 1}, constants={"Sizes": {2}}
    ),
    Scope("chunks, a failover", most={"losses": 1}, constants={"Loss": "suffix"}),
    Scope("chunks, an abort", most={"dooms": 1}),
    Scope(
        "chunks, an abort in two steps, and the ledger left",
        drivers=1,
        most={"dooms": 1, "leaves": 1},
        constants={"OneStep": False},
    ),
    Scope(
        "row by row, reads of what will be lost",
        drivers=1,
        most={"losses": 1},
        endless=True,
        constants=ROWS | {"Loss": "dirty"},
    ),
    Scope("row by row, two requests fail", drivers=1, most={"faults": 2}, constants=ROWS),
    Scope(
        "lanes, one goes back, or the ledger's slot",
        drivers=1,
        most={"losses": 1},
        but=("OnlyDecided", *NOTHING_LEFT),
        constants=LANES | {"Loss": "place"},
    ),
    Scope(
        "another query, the ledger shared, at once",
        endless=True,
        constants=WHOLE | TWO | {"Policy": "repeatable"},
    ),
    Scope(
        "another query, by the claim, at once",
        endless=True,
        constants=WHOLE | TWO | {"Policy": "continue", "SinkId": False},
    ),
    Scope(
        "a stream and a batch, two epochs, one process at a time",
        drivers=1,
        most={"commands": 1},
        constants=BESIDE | {"MaxRuns": 3, "MaxAttempts": 3, "LastEpoch": 1},
    ),
    Scope(
        "a stream and a batch, side by side",
        most={"commands": 1},
        but=("RowsInOrder",),
        constants=BESIDE,
    ),
    Scope("whole epochs, two of them", constants=WHOLE | {"LastEpoch": 1, "MaxAttempts": 3}),
    Scope(
        "two epochs end, once nothing more fails",
        drivers=1,
        most={"faults": 1, "calm": 1},
        ends=True,
        constants={"MaxRuns": 1, "LastEpoch": 1},
    ),
]
"""By hand: `make model SCOPE=large`."""
