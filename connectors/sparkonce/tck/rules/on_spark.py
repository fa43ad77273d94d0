"""The rules of queries and batches on Spark, observed from outside: they apply to any sink."""

from __future__ import annotations

from collections.abc import Sequence

from sparkonce.tck.rules.rule import MAY, MUST, Rule

QUERIES: Sequence[Rule] = (
    Rule(
        "Q01",
        MUST,
        "Every row of a query takes effect once.",
        "This is the purpose of a sink.",
        "the writer; the function that reads the target",
    ),
    Rule(
        "Q02",
        MUST,
        "The sink does not apply an epoch again that Spark replays because it did not record the"
        " commit.",
        "Each crash between the sink's commit and Spark's record of it replays an epoch.",
        "which epochs the sink remembers, and where: the record must be part of the target's"
        " atomic step",
    ),
    Rule(
        "Q03",
        MUST,
        "A task that fails after it has sent its rows leaves no trace.",
        "Its retry sends them again.",
        "write() must stage, and commit decide",
    ),
    Rule(
        "Q04",
        MUST,
        "A driver that is killed at any moment and restarted loses and duplicates nothing.",
        "Machines fail.",
        "the atomic step that decides an epoch",
    ),
    Rule(
        "Q05",
        MUST,
        "An executor that is lost in the middle of a batch changes nothing.",
        "Its tasks run again elsewhere, while it may still be writing.",
        "attempts named by random tokens, not by attempt numbers",
    ),
    Rule(
        "Q06",
        MUST,
        "Speculative twins of a slow task change nothing.",
        "Both send their rows; Spark kills the loser only afterwards.",
        "write() must stage, and commit decide",
    ),
    Rule(
        "Q07",
        MUST,
        "A restart with another parallelism changes nothing.",
        "Names made from partition numbers don't match those of the first run.",
        "ids or markers by partition",
    ),
    Rule(
        "Q08",
        MUST,
        "A replay that computes other rows changes nothing: one version of each row takes effect.",
        "now(), rand(), uuid() and lookups return other values in a replay; upserts then leave"
        " both.",
        "idempotent writes alone; a sink must skip a replay by its epoch, not repeat it",
    ),
    Rule(
        "Q09",
        MUST,
        "A query that is stopped in the middle of a batch and restarted loses and duplicates"
        " nothing.",
        "Spark interrupts the batch at any point, with or without an abort, and replays it.",
        "what an interrupted batch leaves behind",
    ),
    Rule(
        "Q10",
        MUST,
        "If Spark computes a part of an epoch again with other rows, the epoch never takes effect"
        " as a mixture of both.",
        "An executor takes its shuffle outputs with it; rows drawn at random arrive elsewhere the"
        " second time, or not at all.",
        "the sink can't see it: Spark's settings"
        " spark.sql.shuffle.orderIndependentChecksum.enabled and .enableFullRetryOnMismatch must"
        " be true, as the suite sets them. A Spark without them, such as 4.0, cannot keep the"
        " rule, and the suite says so",
    ),
)

BATCHES: Sequence[Rule] = (
    Rule(
        "B01",
        MUST,
        "Every row of a batch takes effect once.",
        "This is the purpose of a sink.",
        "the writer; the function that reads the target",
    ),
    Rule(
        "B02",
        MUST,
        "A job that fails for good leaves the target unchanged. If the job runs again, each row"
        " takes effect once.",
        "A second run duplicates what the first one left; without a second run half of the rows"
        " remain.",
        "write() must stage, and commit decide; abort",
    ),
    Rule(
        "B03",
        MUST,
        "A task that fails after it has sent its rows leaves no trace.",
        "Its retry sends them again.",
        "write() must stage, and commit decide",
    ),
    Rule(
        "B04",
        MUST,
        "A driver that is killed at any moment, and whose job then runs again under its name,"
        " loses and duplicates nothing.",
        "An orchestrator restarts a job whose driver has died, and can't know its progress.",
        "the atomic step that decides a batch, and what it remembers of the batch's name",
    ),
    Rule(
        "B05",
        MUST,
        "An executor that is lost in the middle of a batch changes nothing.",
        "Its tasks run again elsewhere, while it may still be writing.",
        "attempts named by random tokens, not by attempt numbers",
    ),
    Rule(
        "B06",
        MUST,
        "Speculative twins of a slow task change nothing.",
        "Both send their rows; Spark kills the loser only afterwards.",
        "the attempts that Spark passes to commit, and no others",
    ),
    Rule(
        "B07",
        MUST,
        "The sink does not apply a batch inside foreachBatch again that Spark replays, even if"
        " the replay computes other rows.",
        "foreachBatch promises at least once: each crash between the write and Spark's record of"
        " it repeats the write.",
        "what the sink knows of the stream's batch, and where it stores it",
    ),
    Rule(
        "B08",
        MAY,
        "A batch that has ended is skipped if another run writes it under the same name.",
        "An orchestrator loses the reply of a job, and runs the job again.",
        "Follows.GROWS: the last version that the ledger names",
    ),
    Rule(
        "B09",
        MAY,
        "A batch that overwrites leaves its own rows and no others. If its job fails, the former"
        " rows remain.",
        "A table that a job empties first is empty for its readers, and stays empty if the job"
        " fails.",
        "the step that empties the target must be the one that decides, or a later one",
    ),
    Rule(
        "B10",
        MUST,
        "A driver that is killed at any moment inside foreachBatch and restarted loses and"
        " duplicates nothing.",
        "Machines fail.",
        "the atomic step that decides a batch",
    ),
)
