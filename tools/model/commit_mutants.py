"""A core whose commit has a fault, as docs/model has it."""

from __future__ import annotations

from collections.abc import Mapping

from tools.model.planted import Planted


def _unanswered(instead: Mapping[str, str], leaves: str) -> Planted:
    """Shown by one run, of whose requests one gets no answer."""
    few = {"MaxRuns": 1, "MaxAttempts": 1}
    return Planted(instead, "NoFalseAlarm", leaves, most={"faults": 1}, constants=few, drivers=1)


COMMIT_MUTANTS = {
    "outcome resolved by reading only": _unanswered({"Moved": "OnlyReads"}, "looks read"),
    "unknown outcome fails the batch": _unanswered({"Unheard": "FailsUnheard"}, "asks own"),
    "unknown outcome taken as failure": _unanswered({"Unheard": "StartsOver"}, "looks read"),
    "unknown outcome taken as success": _unanswered({"Unheard": "TakesForDone"}, "asks row"),
    "decided epoch given up": Planted(
        {"Finish": "GivesUp"},
        "AllOfIt",
        "asks finish",
    ),
    "decision over whatever is there": Planted(
        {"IsThere": "UnlessItDecides"}, "EpochsInOrder", "asks decide"
    ),
    "skip without asking whose epoch": Planted(
        {"Decided": "AnyEpochOf"},
        "NoFalseAlarm",
        "commits tasks",
        constants={"Queries": {"a", "b"}, "Policy": "continue"},
        drivers=1,
    ),
    "skipped receipt committed": Planted(
        {"IsStaleSkip": "No1"},
        "OneComputation",
        "asks claim",
        most={"losses": 1},
        constants={"Loss": "suffix", "Profile": "whole"},
        drivers=1,
    ),
    "replay committed again": Planted({"Judge": "DecidesAgain"}, "EpochsInOrder", "asks decide"),
    "epochs out of order": Planted(
        {"IsSinkBehind": "No2"},
        "EpochsInOrder",
        "asks claim",
        most={"losses": 1},
        constants={"Loss": "suffix", "LastEpoch": 1},
        soon=False,
    ),
    "emptied store taken for a new one": Planted(
        {"IsSinkBehind": "UnlessEmpty"},
        "EpochsInOrder",
        "asks claim",
        most={"losses": 1},
        constants={"Loss": "suffix", "LastEpoch": 1},
        soon=False,
    ),
    "epochs go back": Planted(
        {"Judge": "GoesBack"},
        "Kept",
        "asks replay",
        most={"restores": 1},
        constants={"LastEpoch": 1, "MaxAttempts": 3},
        soon=False,
    ),
    "restored checkpoint skipped in silence": Planted(
        {"IsBehind": "No2"},
        "Kept",
        "asks replay",
        most={"restores": 1},
        constants={"LastEpoch": 1, "MaxAttempts": 3},
        drivers=1,
    ),
    "offsets not compared": Planted(
        {"HasDiverged": "No2"},
        "Kept",
        "asks replay",
        most={"restores": 1},
        constants={"MaxAttempts": 2},
    ),
    "runs forgotten": Planted(
        {"Decision": "ForgetsRuns"},
        "OneDriver",
        "asks decide",
        constants={"Profile": "whole", "LastEpoch": 1, "MaxAttempts": 4},
        soon=False,
    ),
    "replays forgotten": Planted(
        {"Replay": "ForgetsReplays"},
        "OneDriver",
        "asks replay",
        constants={"Profile": "whole", "LastEpoch": 1, "MaxAttempts": 4},
        soon=False,
    ),
    "decided anew": Planted(
        {"IsDecidedAnew": "No1"}, "OneDriver", "asks replay", constants={"Profile": "whole"}
    ),
}
