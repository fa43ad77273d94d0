"""Stores with a fault, as docs/model has them."""

from __future__ import annotations

from tools.model.planted import Planted

LOST = ("NotDropped",)

STORE_MUTANTS = {
    "last write wins": Planted({"IsThere": "Yes1"}, "AllOfIt", "asks own"),
    "check then act in two steps": Planted(
        {"IsThere": "UnlessItDecides"}, "EpochsInOrder", "asks decide"
    ),
    "late duplicate after a match, by token": Planted(
        {"IsThere": "ByToken"},
        "Whole",
        "delivers finish",
        most={"faults": 1, "dooms": 1},
        constants={"Profile": "converging", "LastEpoch": 1, "MaxRuns": 1},
        drivers=1,
        soon=False,
    ),
    "stale read": Planted(
        {"Views": "StaleViews"},
        "NoFalseAlarm",
        "looks claim",
        constants={"Loss": "suffix", "Profile": "converging", "LastEpoch": 1, "MaxRuns": 1},
        drivers=1,
    ),
    "another record taken away": Planted(
        {"IsThere": "UnlessItCuts"}, "AllOfIt", "delivers cut", most={"dooms": 1, "leaves": 1}
    ),
    "partition as the staging key": Planted(
        {"Stages": "StagesByPartition"}, "NotDropped", "stages"
    ),
    "discard by partition": Planted(
        {"Drop": "DropsAlike"}, "NotDropped", "sweeps", most={"faults": 1}
    ),
    "manifest not checked": Planted(
        {"IsWhole": "Yes1"},
        "Whole",
        "asks decide",
        most={"losses": 1},
        constants={"Loss": "log"},
        but=LOST,
    ),
    "dropped over any record": Planted(
        {"MayDrop": "Yes1"},
        "NotDropped",
        "delivers drop",
        most={"losses": 1, "faults": 1},
        constants={"Loss": "suffix", "MaxRuns": 1, "MaxAttempts": 1},
        drivers=1,
    ),
    "dropped before compared": Planted(
        {"Then": "DropsBefore"},
        "NotDropped",
        "delivers doom",
        most={"dooms": 1},
    ),
    "losers published with winners": Planted(
        {"Decision": "DecidesLosers"}, "OnlyDecided", "asks decide"
    ),
    "marker outside the transaction": Planted(
        {"Put": "RowsAlone"}, "OnlyDecided", "asks decide", constants={"Profile": "whole"}
    ),
    "marker before the transaction": Planted(
        {"Put": "LedgerAlone"}, "AllOfIt", "asks decide", constants={"Profile": "whole"}
    ),
    "a page of chunks is published": Planted(
        {"Put": "PublishesAPage"},
        "AllOfIt",
        "asks decide",
        constants={"Profile": "whole", "Sizes": {2}},
    ),
    "chunks not counted in the transaction": Planted(
        {"Put": "PublishesTheRest", "IsWhole": "Yes1"},
        "AllOfIt",
        "asks decide",
        most={"losses": 1},
        constants={"Profile": "whole", "Loss": "log"},
    ),
    "marker outside the chunk's step": Planted(
        {"Row": "Unmarked"}, "Once", "asks row", most={"faults": 1}
    ),
    "chunk applied twice on roll-forward": Planted(
        {"Row": "Unmarked", "IsDue": "AnyDue"},
        "Once",
        "asks row",
        most={"faults": 1},
        soon=False,
    ),
    "one mark for all chunks": Planted(
        {"Row": "MarkedLast", "IsDue": "AnyDue"},
        "Once",
        "asks row",
        most={"faults": 1},
        constants={"Sizes": {2}},
    ),
    "chunks looked at before the decision": Planted(
        {"Take": "LooksFirst", "Looked": "LookedApart", "IsWhole": "Yes1"},
        "Whole",
        "asks draw",
        most={"losses": 1},
        constants={"Loss": "log", "MaxRuns": 1},
        but=LOST,
    ),
    "missing chunk passed over": Planted(
        {"Row": "PassesOver", "Admits": "GoneOrNot"},
        "AllOfIt",
        "asks row",
        most={"losses": 1},
        constants={"Loss": "log"},
        but=LOST,
        soon=False,
    ),
    "finished without looking at what is applied": Planted(
        {"AllApplied": "Yes1"},
        "AllOfIt",
        "asks finish",
        most={"losses": 1},
        constants={"Loss": "suffix"},
        soon=False,
    ),
    "finished before applied": Planted(
        {"AllApplied": "Yes1", "First": "Early"}, "AllOfIt", "asks finish"
    ),
    "refused row left out": Planted(
        {"Row": "LeavesOut", "Fits": "Yes1"}, "AllOfIt", "asks row", most={"refusals": 1}
    ),
    "decision compared at the first chunk only": Planted(
        {"Admits": "AsksOnce", "Row": "Counts"}, "Once", "asks row", constants={"Sizes": {2}}
    ),
    "late chunk counted for the next decision": Planted(
        {"IsDecision": "FirstChunkOnly"},
        "Once",
        "delivers row",
        most={"faults": 2},
        constants={"Sizes": {2}, "LastEpoch": 1, "MaxRuns": 1},
        drivers=1,
        soon=False,
    ),
    "no token": Planted(
        {"IsDecision": "Yes1"},
        "Once",
        "delivers row",
        most={"faults": 2},
        constants={"LastEpoch": 1, "MaxRuns": 1},
        drivers=1,
        soon=False,
    ),
    "equal versions for chunks of one epoch": Planted(
        {"Admits": "OncePerFence"},
        "AllOfIt",
        "asks row",
        constants={"Profile": "converging", "Sizes": {2}},
    ),
    "no fence": Planted(
        {"Admits": "AnyFence"},
        "Once",
        "delivers row",
        most={"faults": 1},
        constants={"Profile": "converging", "LastEpoch": 1, "MaxRuns": 1},
        drivers=1,
    ),
    "fence made of the epoch": Planted(
        {"Sends": "FencedByEpoch"},
        "AllOfIt",
        "asks row",
        constants={"Profile": "converging", "Queries": {"a", "b"}, "Policy": "repeatable"},
        soon=False,
    ),
    "late duplicate after a match, in a row": Planted(
        {"Row": "LastOnly"},
        "Once",
        "delivers row",
        most={"faults": 1},
        constants={"Profile": "converging", "Sizes": {2}, "MaxAttempts": 1},
    ),
    "chunks deleted before finish": Planted(
        {"Row": "DropsAsItGoes"},
        "NoFalseAlarm",
        "asks row",
        constants={"Profile": "converging"},
        drivers=1,
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
}
