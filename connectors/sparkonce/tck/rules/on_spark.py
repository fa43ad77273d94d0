"""The rules of queries and of batches on Spark, which are seen from outside: of any sink."""

from __future__ import annotations

from collections.abc import Sequence

from sparkonce.tck.rules.rule import MAY, MUST, Rule

QUERIES: Sequence[Rule] = (
    Rule(
        "Q01",
        MUST,
        "Every row of a query takes effect once.",
        "This is what a sink is for.",
        "the writer; the function that reads the target back",
    ),
    Rule(
        "Q02",
        MUST,
        "An epoch that Spark replays, since it did not note its commit, is not applied again.",
        "Each crash between the sink's commit and Spark's note of it replays an epoch.",
        "what the sink remembers of epochs, and where: it must lie in the target's atomic step",
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
        "A driver that is killed at any moment, and restarted, loses and doubles nothing.",
        "Machines go away.",
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
        "Both send their rows; Spark kills the loser after it has.",
        "write() must stage, and commit decide",
    ),
    Rule(
        "Q07",
        MUST,
        "A restart with another parallelism changes nothing.",
        "Names made from partition numbers don't match those of the first try.",
        "ids or markers by partition",
    ),
    Rule(
        "Q08",
        MUST,
        "A replay that computes other rows changes nothing: one version of each row takes effect.",
        "now(), rand(), uuid() and lookups give other values in a replay; upserts then leave both.",
        "idempotent writes alone; a replay must be skipped by epoch, not repeated",
    ),
    Rule(
        "Q09",
        MUST,
        "A query that is stopped in the middle of a batch, and restarted, loses and doubles"
        " nothing.",
        "Spark interrupts the batch wherever it is, with an abort or without, and replays it.",
        "what a half-done batch leaves behind",
    ),
    Rule(
        "Q10",
        MUST,
        "An epoch of which Spark has computed a part again, with other rows, never takes effect as"
        " a mixture of both.",
        "An executor takes its shuffle outputs with it; rows that were drawn at random come again"
        " elsewhere, or not at all.",
        "the sink can't see it: Spark's settings spark.sql.shuffle.orderIndependentChecksum.enabled"
        " and .enableFullRetryOnMismatch must be true, as the suite sets them. On a Spark without"
        " them, as 4.0 is, the suite says that the rule is not given",
    ),
)

BATCHES: Sequence[Rule] = (
    Rule(
        "B01",
        MUST,
        "Every row of a batch takes effect once.",
        "This is what a sink is for.",
        "the writer; the function that reads the target back",
    ),
    Rule(
        "B02",
        MUST,
        "A job that fails for good leaves the target as it was; if it is run again, each row"
        " takes effect once.",
        "Whoever runs it again doubles what the first one left; whoever does not is left with"
        " half.",
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
        "A driver that is killed at any moment, and whose job is run again under its name,"
        " loses and doubles nothing.",
        "An orchestrator runs a job again whose driver has died, and can't know how far it came.",
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
        "Both send their rows; Spark kills the loser after it has.",
        "the attempts that commit is told of, and no others",
    ),
    Rule(
        "B07",
        MUST,
        "A batch inside foreachBatch that Spark replays is not applied again, also if the"
        " replay computes other rows.",
        "foreachBatch promises at least once: each crash between the write and Spark's note"
        " of it repeats it.",
        "what the sink knows of the stream's batch, and where it remembers it",
    ),
    Rule(
        "B08",
        MAY,
        "A batch that has ended is skipped if it comes again under its name.",
        "An orchestrator loses the answer of a job, and runs it again.",
        "Follows.GROWS: what the ledger says of the last version",
    ),
    Rule(
        "B09",
        MAY,
        "A batch that overwrites leaves its own rows and no others; if its job fails, it"
        " leaves those that were there.",
        "A table that is emptied first is empty for its readers, and stays so if the job fails.",
        "the step that empties the target must be the one that decides, or come after it",
    ),
    Rule(
        "B10",
        MUST,
        "A driver that is killed at any moment inside foreachBatch, and restarted, loses and"
        " doubles nothing.",
        "Machines go away.",
        "the atomic step that decides a batch",
    ),
)
