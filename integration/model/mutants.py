"""Mutants of the kit, as the model has them: TLC finds each in the scope that is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from integration.model.scopes import Scope


@dataclass(frozen=True)
class Planted:
    """A mutant of the kit, as the model has it.

    Attributes:
        instead: by name of a definition, which one of docs/model/mutants.tla takes its place.
        breaks: the invariant that does not hold then.
        most: how often each kind of trouble comes in the scope that shows it.
        constants: of that scope.
        drivers: of that scope.
        but: invariants that nobody can promise there.
        soon: whether TLC finds it in seconds.
    """

    instead: Mapping[str, str]
    breaks: str
    most: Mapping[str, int] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    drivers: int = 2
    but: tuple[str, ...] = ()
    soon: bool = True

    @property
    def scope(self) -> Scope:
        """What TLC searches."""
        return Scope("mutant", self.drivers, self.most, self.but, constants=self.constants)


LOST = ("NotDropped",)

PLANTED: dict[str, Planted] = {
    "last write wins": Planted({"IsThere": "Yes1"}, "AllOfIt"),
    "check then act in two steps": Planted({"IsThere": "UnlessItDecides"}, "EpochsInOrder"),
    "late duplicate after a match, by token": Planted(
        {"IsThere": "ByToken"},
        "NotDropped",
        most={"faults": 1, "dooms": 1},
        constants={"Profile": "converging", "OneStep": False, "LastEpoch": 1, "MaxRuns": 1},
        drivers=1,
        soon=False,
    ),
    "another record taken away": Planted(
        {"IsThere": "UnlessItCuts"}, "AllOfIt", most={"dooms": 1, "leaves": 1}
    ),
    "partition as the staging key": Planted({"Stages": "StagesByPartition"}, "NotDropped"),
    "manifest not checked": Planted(
        {"IsWhole": "Yes1"}, "Whole", most={"losses": 1}, constants={"Loss": "log"}, but=LOST
    ),
    "dropped over any record": Planted(
        {"MayDrop": "Yes1"},
        "NotDropped",
        most={"losses": 1, "faults": 1},
        constants={"Loss": "suffix", "MaxRuns": 1, "MaxAttempts": 1},
        drivers=1,
    ),
    "dropped before compared": Planted(
        {"Then": "DropsBefore"}, "NotDropped", most={"dooms": 1}, constants={"OneStep": False}
    ),
    "losers published with winners": Planted({"Decision": "DecidesLosers"}, "OnlyDecided"),
    "marker outside the transaction": Planted(
        {"Put": "RowsAlone"}, "OnlyDecided", constants={"Profile": "whole"}
    ),
    "marker before the transaction": Planted(
        {"Put": "LedgerAlone"}, "AllOfIt", constants={"Profile": "whole"}
    ),
    "marker outside the chunk's step": Planted({"Row": "Unmarked"}, "Once", most={"faults": 1}),
    "chunk applied twice on roll-forward": Planted(
        {"Row": "Unmarked", "IsDue": "AnyDue"},
        "Once",
        most={"faults": 1},
        soon=False,
    ),
    "one mark for all chunks": Planted(
        {"Row": "MarkedLast", "IsDue": "AnyDue"},
        "NoFalseAlarm",
        most={"faults": 1},
        constants={"Sizes": {2}},
    ),
    "missing chunk passed over": Planted(
        {"Row": "PassesOver", "Admits": "GoneOrNot"},
        "AllOfIt",
        most={"losses": 1},
        constants={"Loss": "log"},
        but=LOST,
    ),
    "finished without looking at what is applied": Planted(
        {"AllApplied": "Yes1"},
        "AllOfIt",
        most={"losses": 1},
        constants={"Loss": "suffix"},
        soon=False,
    ),
    "finished before applied": Planted({"AllApplied": "Yes1", "First": "Early"}, "AllOfIt"),
    "refused row left out": Planted(
        {"Row": "LeavesOut", "Fits": "Yes1"}, "AllOfIt", most={"refusals": 1}
    ),
    "late chunk counted for the next decision": Planted(
        {"IsDecision": "FirstChunkOnly"},
        "Once",
        most={"faults": 2},
        constants={"Sizes": {2}, "LastEpoch": 1, "MaxRuns": 1},
        drivers=1,
        soon=False,
    ),
    "no token": Planted(
        {"IsDecision": "Yes1"},
        "Once",
        most={"faults": 2},
        constants={"LastEpoch": 1, "MaxRuns": 1},
        drivers=1,
        soon=False,
    ),
    "equal versions for chunks of one epoch": Planted(
        {"Admits": "OncePerFence"}, "AllOfIt", constants={"Profile": "converging", "Sizes": {2}}
    ),
    "no fence": Planted(
        {"Admits": "AnyFence"},
        "Once",
        most={"faults": 1},
        constants={"Profile": "converging", "LastEpoch": 1, "MaxRuns": 1},
        drivers=1,
    ),
    "fence made of the epoch": Planted(
        {"Sends": "FencedByEpoch"},
        "AllOfIt",
        constants={"Profile": "converging", "Queries": {"a", "b"}, "Policy": "repeatable"},
        soon=False,
    ),
    "late duplicate after a match, in a row": Planted(
        {"Row": "LastOnly"},
        "Once",
        most={"faults": 1},
        constants={"Profile": "converging", "Sizes": {2}, "MaxAttempts": 1},
    ),
    "chunks deleted before finish": Planted(
        {"Row": "DropsAsItGoes"},
        "NotDropped",
        constants={"Profile": "converging", "Places": {1, 2}},
    ),
    "rows before the acknowledgement": Planted(
        {"Fetched": "Unacknowledged"},
        "OnlyDecided",
        most={"losses": 1},
        constants={"Profile": "converging", "Loss": "dirty", "MaxRuns": 1, "MaxAttempts": 1},
        drivers=1,
    ),
    "any lane": Planted(
        {"Admits": "AnyLane"},
        "OnlyDecided",
        most={"losses": 1},
        constants={"Profile": "lanes", "Places": {1, 2}, "Loss": "place"},
    ),
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
    "an undecided ledger owns its sink": Planted(
        {"Untouched": "HasNoPast"},
        "NoFalseAlarm",
        constants={"Queries": {"a", "b"}, "MaxRuns": 3, "MaxAttempts": 3},
        drivers=1,
    ),
    "an undecided ledger hides what it replaced": Planted(
        {"Untouched": "NeverDecided"},
        "Owners",
        constants={
            "Queries": {"a", "b", "c"},
            "SinkId": False,
            "Policy": "continue",
            "MaxRuns": 3,
            "MaxAttempts": 3,
        },
        drivers=1,
        soon=False,
    ),
    "epochs compared before identity": Planted(
        {"Base": "EpochsFirst", "IsReplaced": "No3", "Retires": "No2"},
        "NoFalseAlarm",
        constants={"Queries": {"a", "b"}},
    ),
    "silent skip after a replaced checkpoint": Planted(
        {"Succeeded": "Adopts", "IsReplaced": "No3", "Judge": "SkipsThePast"},
        "OneDriver",
        constants={"Queries": {"a", "b"}},
    ),
    "checkpoint path not claimed": Planted(
        {"HasPath": "Yes2"}, "RowsInOrder", constants={"Queries": {"a", "b"}, "SinkId": False}
    ),
    "claim trusted by its name": Planted(
        {"ToDo": "OwnClaim"},
        "Owners",
        most={"leaves": 1},
        constants={"Queries": {"a", "b"}, "SinkId": False},
        soon=False,
    ),
    "retired by a query that decided nothing": Planted(
        {"Retires": "InAnyLedger"},
        "NoFalseAlarm",
        constants={"Queries": {"a", "b"}, "MaxRuns": 3, "MaxAttempts": 3},
        drivers=1,
        soon=False,
    ),
    "retired query goes on": Planted(
        {"Retires": "No2"},
        "EpochsInOrder",
        constants={"Queries": {"a", "b"}, "Policy": "repeatable", "MaxRuns": 3, "MaxAttempts": 3},
        drivers=1,
        soon=False,
    ),
    "rival not retired before the first decision": Planted(
        {"ToDo": "RivalLives"},
        "RowsInOrder",
        constants={"Queries": {"a", "b"}, "SinkId": False, "Policy": "continue"},
    ),
    "abort that undoes a published epoch": Planted(
        {"Doom": "Undoes"}, "EpochsInOrder", most={"dooms": 1}, constants={"Profile": "whole"}
    ),
    "abort that drops a decided epoch": Planted(
        {"Doom": "DropsDecided"}, "NotDropped", most={"dooms": 1}
    ),
    "abort without doom": Planted({"Doom": "DropsUndoomed"}, "NotDropped", most={"dooms": 1}),
    "doom of what is decided": Planted({"Doom": "DoomsAnyway"}, "NotDropped", most={"dooms": 1}),
    "doom ends with any decision": Planted(
        {"Decision": "DoomsEnd"},
        "NotDropped",
        most={"dooms": 1},
        constants={
            "Profile": "converging",
            "Queries": {"a", "b"},
            "Policy": "repeatable",
            "OneStep": False,
        },
        soon=False,
    ),
    "doom ignored": Planted(
        {"IsDoomed": "No1"},
        "NotDropped",
        most={"dooms": 1},
        constants={"Profile": "converging", "OneStep": False, "MaxRuns": 1, "MaxAttempts": 1},
        drivers=1,
    ),
    "ledger left that another abort needs": Planted(
        {"IsDropped": "Yes1"},
        "NotDropped",
        most={"dooms": 1, "leaves": 1},
        constants={"OneStep": False, "Profile": "converging"},
        soon=False,
    ),
    "numbers of a batch must follow each other": Planted(
        {"Judge": "WantsNoGap"},
        "NoFalseAlarm",
        constants={"Follows": "grows", "LastEpoch": 1},
        drivers=1,
    ),
    "a batch passes over what others have decided": Planted(
        {"Finish": "LeavesNeighbours"},
        "RowsInOrder",
        most={"commands": 1},
        constants={"Queries": {"a", "b"}, "Follows": "once", "SinkId": False},
        drivers=1,
    ),
    "replay only read": Planted(
        {"Take": "OnlyReplays"}, "OneDriver", most={"losses": 1}, constants={"Loss": "dirty"}
    ),
}
