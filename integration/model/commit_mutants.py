"""A core whose commit has a fault, as docs/model has it."""

from __future__ import annotations

from integration.model.planted import Planted

COMMIT_MUTANTS = {
    "outcome resolved by reading only": Planted(
        {"Moved": "OnlyReads"},
        "NoFalseAlarm",
        most={"faults": 1},
        constants={"MaxRuns": 1, "MaxAttempts": 1},
        drivers=1,
    ),
    "unknown outcome fails the batch": Planted(
        {"Unheard": "FailsUnheard"},
        "NoFalseAlarm",
        most={"faults": 1},
        constants={"MaxRuns": 1, "MaxAttempts": 1},
        drivers=1,
    ),
    "unknown outcome taken as failure": Planted(
        {"Unheard": "StartsOver"},
        "NoFalseAlarm",
        most={"faults": 1},
        constants={"MaxRuns": 1, "MaxAttempts": 1},
        drivers=1,
    ),
    "unknown outcome taken as success": Planted(
        {"Unheard": "TakesForDone"},
        "NoFalseAlarm",
        most={"faults": 1},
        constants={"MaxRuns": 1, "MaxAttempts": 1},
        drivers=1,
    ),
    "decided epoch given up": Planted({"Finish": "GivesUp"}, "AllOfIt"),
    "decision over whatever is there": Planted({"IsThere": "UnlessItDecides"}, "EpochsInOrder"),
    "skip without asking whose epoch": Planted(
        {"Decided": "AnyEpochOf"},
        "NoFalseAlarm",
        constants={"Queries": {"a", "b"}, "Policy": "continue"},
        drivers=1,
        soon=False,
    ),
    "skipped receipt committed": Planted(
        {"IsStaleSkip": "No1"},
        "OneComputation",
        most={"losses": 1},
        constants={"Loss": "suffix", "MaxAttempts": 3, "Profile": "whole"},
        soon=False,
    ),
    "replay committed again": Planted({"Judge": "DecidesAgain"}, "EpochsInOrder"),
    "epochs out of order": Planted(
        {"IsSinkBehind": "No2"},
        "EpochsInOrder",
        most={"losses": 1},
        constants={"Loss": "suffix", "LastEpoch": 1},
        soon=False,
    ),
    "emptied store taken for a new one": Planted(
        {"IsSinkBehind": "UnlessEmpty"},
        "EpochsInOrder",
        most={"losses": 1},
        constants={"Loss": "suffix", "LastEpoch": 1},
        soon=False,
    ),
    "epochs go back": Planted(
        {"Judge": "GoesBack"},
        "Kept",
        most={"restores": 1},
        constants={"LastEpoch": 1, "MaxAttempts": 3},
        soon=False,
    ),
    "restored checkpoint skipped in silence": Planted(
        {"Judge": "SkipsThePast"},
        "Kept",
        most={"restores": 1},
        constants={"LastEpoch": 1, "MaxAttempts": 3},
        soon=False,
    ),
    "offsets not compared": Planted(
        {"HasDiverged": "No2"}, "Kept", most={"restores": 1}, constants={"MaxAttempts": 2}
    ),
    "runs forgotten": Planted(
        {"IsSuperseded": "No2"},
        "OneDriver",
        constants={"Profile": "whole", "LastEpoch": 1, "MaxAttempts": 4},
        soon=False,
    ),
    "replays forgotten": Planted(
        {"HasReplayed": "No2"},
        "OneDriver",
        constants={"Profile": "whole", "LastEpoch": 1, "MaxAttempts": 4},
        soon=False,
    ),
    "decided anew": Planted({"IsDecidedAnew": "No1"}, "OneDriver", constants={"Profile": "whole"}),
}
