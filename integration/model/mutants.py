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
    """

    instead: Mapping[str, str]
    breaks: str
    most: Mapping[str, int] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    drivers: int = 2

    @property
    def scope(self) -> Scope:
        """What TLC searches."""
        return Scope("mutant", self.drivers, self.most, constants=self.constants)


PLANTED: dict[str, Planted] = {
    "last write wins": Planted({"IsThere": "Yes1"}, "AllOfIt", {}, {}, 2),
    "check then act in two steps": Planted(
        {"IsThere": "UnlessItDecides"}, "EpochsInOrder", {}, {}, 2
    ),
    "late duplicate after a match, by token": Planted(
        {"IsThere": "ByToken"}, "EpochsInOrder", {"faults": 1}, {}, 2
    ),
    "another record taken away": Planted(
        {"IsThere": "UnlessItCuts"}, "AllOfIt", {"dooms": 1, "leaves": 1}, {}, 2
    ),
    "partition as the staging key": Planted(
        {"Stages": "StagesByPartition"}, "NotDropped", {}, {}, 2
    ),
    "manifest not checked": Planted(
        {"IsWhole": "Yes1"}, "NotDropped", {"losses": 1}, {"Loss": "log"}, 2
    ),
    "dropped over any record": Planted(
        {"MayDrop": "Yes1"},
        "NotDropped",
        {"losses": 1, "faults": 1},
        {"Loss": "suffix", "MaxRuns": 1, "MaxAttempts": 1},
        1,
    ),
    "dropped before compared": Planted(
        {"Then": "DropsBefore"}, "NotDropped", {"dooms": 1}, {"OneStep": False}, 2
    ),
    "losers published with winners": Planted(
        {"Decision": "DecidesLosers"}, "NoFalseAlarm", {}, {}, 2
    ),
    "marker outside the transaction": Planted(
        {"Put": "RowsAlone"}, "OnlyDecided", {}, {"Profile": "whole"}, 2
    ),
    "marker before the transaction": Planted(
        {"Put": "LedgerAlone"}, "AllOfIt", {}, {"Profile": "whole"}, 2
    ),
    "marker outside the chunk's step": Planted({"Row": "Unmarked"}, "Once", {"faults": 1}, {}, 2),
    "chunk applied twice on roll-forward": Planted(
        {"Row": "Unmarked", "IsDue": "AnyDue"}, "Once", {"faults": 1}, {}, 2
    ),
    "one mark for all chunks": Planted(
        {"Row": "MarkedLast", "IsDue": "AnyDue"}, "NoFalseAlarm", {"faults": 1}, {"Sizes": {2}}, 2
    ),
    "missing chunk passed over": Planted(
        {"Row": "PassesOver", "Admits": "GoneOrNot"},
        "NotDropped",
        {"losses": 1},
        {"Loss": "log"},
        2,
    ),
    "finished without looking at what is applied": Planted(
        {"AllApplied": "Yes1"}, "AllOfIt", {"losses": 1}, {"Loss": "suffix"}, 2
    ),
    "finished before applied": Planted(
        {"AllApplied": "Yes1", "First": "Early"}, "AllOfIt", {}, {}, 2
    ),
    "refused row left out": Planted(
        {"Row": "LeavesOut", "Fits": "Yes1"}, "AllOfIt", {"refusals": 1}, {}, 2
    ),
    "decision compared at the first chunk only": Planted(
        {"IsDecision": "FirstChunkOnly"},
        "Once",
        {"faults": 2},
        {"Sizes": {2}, "LastEpoch": 1, "MaxRuns": 1},
        1,
    ),
    "no token": Planted(
        {"IsDecision": "Yes1"}, "Once", {"faults": 2}, {"LastEpoch": 1, "MaxRuns": 1}, 1
    ),
    "equal versions for chunks of one epoch": Planted(
        {"Admits": "OncePerFence"}, "AllOfIt", {}, {"Profile": "converging", "Sizes": {2}}, 2
    ),
    "no fence": Planted(
        {"Admits": "AnyFence"},
        "Once",
        {"faults": 1},
        {"Profile": "converging", "LastEpoch": 1, "MaxRuns": 1},
        1,
    ),
    "fence made of the epoch": Planted(
        {"Sends": "FencedByEpoch"},
        "AllOfIt",
        {},
        {"Profile": "converging", "Queries": {"a", "b"}, "Policy": "repeatable"},
        2,
    ),
    "late duplicate after a match, in a row": Planted(
        {"Row": "LastOnly"},
        "Once",
        {"faults": 1},
        {"Profile": "converging", "Sizes": {2}, "MaxAttempts": 1},
        2,
    ),
    "chunks deleted before finish": Planted(
        {"Row": "DropsAsItGoes"}, "NotDropped", {}, {"Profile": "converging", "Places": {1, 2}}, 2
    ),
    "rows before the acknowledgement": Planted(
        {"Fetched": "Unacknowledged"},
        "OnlyDecided",
        {"losses": 1},
        {"Profile": "converging", "Loss": "dirty", "MaxRuns": 1, "MaxAttempts": 1},
        1,
    ),
    "any lane": Planted(
        {"Admits": "AnyLane"},
        "OnlyDecided",
        {"losses": 1},
        {"Profile": "lanes", "Places": {1, 2}, "Loss": "place"},
        2,
    ),
    "outcome resolved by reading only": Planted(
        {"Moved": "OnlyReads"}, "NoFalseAlarm", {"faults": 1}, {"MaxRuns": 1, "MaxAttempts": 1}, 1
    ),
    "unknown outcome taken as failure": Planted(
        {"Unheard": "StartsOver"},
        "NoFalseAlarm",
        {"faults": 1},
        {"MaxRuns": 1, "MaxAttempts": 1},
        1,
    ),
    "unknown outcome taken as success": Planted(
        {"Unheard": "TakesForDone"},
        "NoFalseAlarm",
        {"faults": 1},
        {"MaxRuns": 1, "MaxAttempts": 1},
        1,
    ),
    "decided epoch given up": Planted({"Finish": "GivesUp"}, "AllOfIt", {}, {}, 2),
    "decision over whatever is there": Planted(
        {"IsThere": "UnlessItDecides"}, "EpochsInOrder", {}, {}, 2
    ),
    "skip without asking whose epoch": Planted(
        {"Decided": "AnyEpochOf"},
        "NoFalseAlarm",
        {},
        {"Queries": {"a", "b"}, "Policy": "continue"},
        1,
    ),
    "skipped receipt committed": Planted(
        {"IsStaleSkip": "No1"},
        "OneComputation",
        {"losses": 1},
        {"Loss": "suffix", "MaxAttempts": 3, "Profile": "whole"},
        2,
    ),
    "replay committed again": Planted({"Judge": "DecidesAgain"}, "EpochsInOrder", {}, {}, 2),
    "epochs out of order": Planted(
        {"IsSinkBehind": "No2"},
        "EpochsInOrder",
        {"losses": 1},
        {"Loss": "suffix", "LastEpoch": 1},
        2,
    ),
    "emptied store taken for a new one": Planted(
        {"IsSinkBehind": "UnlessEmpty"},
        "EpochsInOrder",
        {"losses": 1},
        {"Loss": "suffix", "LastEpoch": 1},
        2,
    ),
    "epochs go back": Planted(
        {"Judge": "GoesBack"}, "Kept", {"restores": 1}, {"LastEpoch": 1, "MaxAttempts": 3}, 2
    ),
    "restored checkpoint skipped in silence": Planted(
        {"Judge": "SkipsThePast"}, "Kept", {"restores": 1}, {"LastEpoch": 1, "MaxAttempts": 3}, 2
    ),
    "offsets not compared": Planted(
        {"HasDiverged": "No2"}, "Kept", {"restores": 1}, {"MaxAttempts": 2}, 2
    ),
    "runs forgotten": Planted(
        {"IsSuperseded": "No2"},
        "OneDriver",
        {},
        {"Profile": "whole", "LastEpoch": 1, "MaxAttempts": 4},
        2,
    ),
    "decided anew": Planted({"IsDecidedAnew": "No1"}, "OneDriver", {}, {"Profile": "whole"}, 2),
    "an undecided ledger owns its sink": Planted(
        {"Untouched": "HasNoPast"},
        "NoFalseAlarm",
        {},
        {"Queries": {"a", "b"}, "MaxRuns": 3, "MaxAttempts": 3},
        1,
    ),
    "an undecided ledger hides what it replaced": Planted(
        {"Untouched": "NeverDecided"},
        "Owners",
        {},
        {
            "Queries": {"a", "b", "c"},
            "SinkId": False,
            "Policy": "continue",
            "MaxRuns": 3,
            "MaxAttempts": 3,
        },
        1,
    ),
    "epochs compared before identity": Planted(
        {"Base": "EpochsFirst", "IsReplaced": "No3", "Retires": "No2"},
        "NoFalseAlarm",
        {},
        {"Queries": {"a", "b"}},
        2,
    ),
    "silent skip after a replaced checkpoint": Planted(
        {"Succeeded": "Adopts", "IsReplaced": "No3", "Judge": "SkipsThePast"},
        "OneDriver",
        {},
        {"Queries": {"a", "b"}},
        2,
    ),
    "checkpoint path not claimed": Planted(
        {"HasPath": "Yes2"}, "RowsInOrder", {}, {"Queries": {"a", "b"}, "SinkId": False}, 2
    ),
    "claim trusted by its name": Planted(
        {"ToDo": "OwnClaim"}, "Owners", {"leaves": 1}, {"Queries": {"a", "b"}, "SinkId": False}, 2
    ),
    "retired by a query that decided nothing": Planted(
        {"Retires": "InAnyLedger"},
        "NoFalseAlarm",
        {},
        {"Queries": {"a", "b"}, "MaxRuns": 3, "MaxAttempts": 3},
        1,
    ),
    "retired query goes on": Planted(
        {"Retires": "No2"},
        "EpochsInOrder",
        {},
        {"Queries": {"a", "b"}, "Policy": "repeatable", "MaxRuns": 3, "MaxAttempts": 3},
        1,
    ),
    "rival not retired before the first decision": Planted(
        {"ToDo": "RivalLives"},
        "RowsInOrder",
        {},
        {"Queries": {"a", "b"}, "SinkId": False, "Policy": "continue"},
        2,
    ),
    "abort that undoes a published epoch": Planted(
        {"Doom": "Undoes"}, "EpochsInOrder", {"dooms": 1}, {"Profile": "whole"}, 2
    ),
    "abort that drops a decided epoch": Planted(
        {"Doom": "DropsDecided"}, "NotDropped", {"dooms": 1}, {}, 2
    ),
    "abort without doom": Planted({"Doom": "DropsUndoomed"}, "NotDropped", {"dooms": 1}, {}, 2),
    "doom of what is decided": Planted({"Held": "NoneOf"}, "NotDropped", {"dooms": 1}, {}, 2),
    "doom ignored": Planted(
        {"IsDoomed": "No1"},
        "NotDropped",
        {"dooms": 1},
        {"Profile": "converging", "OneStep": False, "MaxRuns": 1, "MaxAttempts": 1},
        1,
    ),
    "ledger left that another abort needs": Planted(
        {"IsDropped": "Yes1"},
        "NotDropped",
        {"dooms": 1, "leaves": 1},
        {"OneStep": False, "Profile": "converging"},
        2,
    ),
    "a batch passes over what others have decided": Planted(
        {"Finish": "LeavesNeighbours"},
        "RowsInOrder",
        {"commands": 1},
        {"Queries": {"a", "b"}, "Follows": "once", "SinkId": False},
        1,
    ),
    "replay only read": Planted(
        {"Take": "OnlyReplays"}, "OneDriver", {"losses": 1}, {"Loss": "dirty"}, 2
    ),
}
