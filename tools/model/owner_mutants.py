"""A core with a fault in who owns a sink, in aborts or in batches, as docs/model has it."""

from __future__ import annotations

from tools.model.planted import Planted
from tools.model.searches import TWO

TAKE_OVER = TWO | {"SinkId": False, "Policy": "continue"}
IN_TURN = {"MaxRuns": 3, "MaxAttempts": 3}
THREE = TAKE_OVER | IN_TURN | {"Queries": {"a", "b", "c"}}

OWNER_MUTANTS = {
    "an undecided ledger owns its sink": Planted(
        {"Untouched": "HasNoPast"},
        "NoFalseAlarm",
        "looks claim",
        constants=TWO | IN_TURN,
        drivers=1,
        soon=False,
    ),
    "an undecided ledger hides what it replaced": Planted(
        {"Untouched": "NeverDecided"},
        "Owners",
        constants=THREE,
        drivers=1,
        soon=False,
    ),
    "epochs compared before identity": Planted(
        {"Base": "EpochsFirst", "IsReplaced": "No3", "Retires": "No2"},
        "NoFalseAlarm",
        "looks claim",
        constants=TWO,
    ),
    "silent skip after a replaced checkpoint": Planted(
        {"Succeeded": "Adopts", "IsReplaced": "No3", "IsBehind": "No2"},
        "NoFalseAlarm",
        "looks claim",
        constants=TWO,
    ),
    "checkpoint path not claimed": Planted(
        {"HasPath": "Yes2"},
        "Owners",
        "asks decide",
        constants=TWO | {"SinkId": False},
    ),
    "claim trusted by its name": Planted(
        {"ToDo": "OwnClaim"},
        "Owners",
        "asks decide",
        most={"leaves": 1},
        constants=TWO | {"SinkId": False},
        soon=False,
    ),
    "retired by a query that decided nothing": Planted(
        {"Retires": "InAnyLedger"},
        "NoFalseAlarm",
        "looks claim",
        constants=TWO | IN_TURN,
        drivers=1,
        soon=False,
    ),
    "retired query goes on": Planted(
        {"Retires": "No2"},
        "EpochsInOrder",
        "asks own",
        constants=TWO | IN_TURN | {"Policy": "repeatable"},
        drivers=1,
        soon=False,
    ),
    "rival not retired before the first decision": Planted(
        {"ToDo": "RivalLives"},
        "Owners",
        "asks claim",
        constants=TAKE_OVER,
        soon=False,
    ),
    "ledger left in mid-commit taken for lost": Planted(
        {"MayVanish": "No3"},
        "NoFalseAlarm",
        "asks decide",
        most={"leaves": 1},
        constants={"MaxRuns": 1, "MaxAttempts": 1},
        drivers=1,
    ),
    "a query that comes back is retired by itself": Planted(
        {"Base": "BaseOf"},
        "NoFalseAlarm",
        "asks own",
        constants=TWO | IN_TURN | {"Profile": "whole"},
        drivers=1,
        soon=False,
    ),
    "rival replaced before its epoch is finished": Planted(
        {"Stand": "OwnAlone"},
        "RowsInOrder",
        "asks own",
        most={"commands": 1},
        constants=TAKE_OVER,
        drivers=1,
        soon=False,
    ),
    "a rival's decisions are not inherited": Planted(
        {"Base": "InheritsNothing"},
        "Owners",
        most={"leaves": 1},
        constants=THREE | {"Profile": "whole"},
        drivers=1,
        soon=False,
    ),
    "abort that undoes a published epoch": Planted(
        {"Doom": "Undoes"},
        "EpochsInOrder",
        "delivers doom",
        most={"dooms": 1},
        constants={"Profile": "whole"},
    ),
    "abort that drops a decided epoch": Planted(
        {"Doom": "DropsDecided"}, "NotDropped", "dooms", most={"dooms": 1}
    ),
    "abort without doom": Planted(
        {"Doom": "DropsUndoomed"}, "NotDropped", "dooms", most={"dooms": 1}
    ),
    "doom of what is decided": Planted(
        {"Doom": "DoomsAnyway"}, "NotDropped", "dooms", most={"dooms": 1}
    ),
    "doom ignored": Planted(
        {"IsDoomed": "No1"},
        "NotDropped",
        "asks draw",
        most={"dooms": 1},
        constants={"Profile": "converging", "MaxRuns": 1, "MaxAttempts": 1},
        drivers=1,
    ),
    "ledger left that another abort needs": Planted(
        {"IsDropped": "Yes1"},
        "NotDropped",
        "leaves",
        most={"dooms": 1, "leaves": 1},
        constants={"Profile": "converging"},
        soon=False,
    ),
    "numbers of a batch must follow each other": Planted(
        {"Judge": "WantsNoGap"},
        "NoFalseAlarm",
        "looks read",
        constants={"Follows": "grows", "LastEpoch": 1},
        drivers=1,
    ),
    "a batch passes over what others have decided": Planted(
        {"Finish": "LeavesNeighbours"},
        "RowsInOrder",
        "looks read",
        most={"commands": 1},
        constants=TWO | {"Follows": "once", "SinkId": False},
        drivers=1,
        soon=False,
    ),
    "late decision undoes what came later": Planted(
        {"Overtaken": "No1"},
        "RowsInOrder",
        "asks row",
        most={"commands": 1},
        constants={"Queries": {"a", "p"}, "SinkId": False},
        drivers=1,
    ),
    "replay only read": Planted(
        {"Take": "OnlyReplays"}, "OneDriver", most={"losses": 1}, constants={"Loss": "dirty"}
    ),
}
