"""The rules, and the oracles that judge them. Numbers are permanent: add, don't renumber."""

from __future__ import annotations

from collections.abc import Sequence

from sparkonce.tck.rules.of_reads import READS
from sparkonce.tck.rules.of_sources import SOURCES
from sparkonce.tck.rules.of_steps import STEPS
from sparkonce.tck.rules.on_spark import BATCHES, QUERIES
from sparkonce.tck.rules.rule import MAY, MUST, Rule

RULES: Sequence[Rule] = (
    *STEPS,
    Rule(
        "C01",
        MUST,
        "A process that dies before or after any call to the store loses and duplicates nothing.",
        "Drivers die at night, killed by the kernel or by their operators.",
        "the step named in the history; the ledger must show what the step left unfinished",
    ),
    Rule(
        "C02",
        MUST,
        "The driver resolves a lost request or a lost reply by a write of the ledger. It never"
        " assumes that the call failed or succeeded.",
        "A decide that the driver counts as failed may still be in flight.",
        "registers.learn; the client's own retries",
    ),
    Rule(
        "C03",
        MUST,
        "A late or duplicate request changes nothing, even after its sender died.",
        "A zombie's requests wait in buffers of the network and of the server.",
        "the guard inside the step that arrives: stamp, token, fence, version",
    ),
    Rule(
        "C04",
        MUST,
        "If two drivers of one checkpoint interleave at any call, exactly one commits each epoch.",
        "A suspended driver wakes up after its successor has taken over.",
        "Store.swap, Store.publish; the order of reading, preparing and deciding",
    ),
    Rule(
        "C05",
        MUST,
        "A replayed epoch changes nothing but the ledger's history, no matter which rows and"
        " partitions the replay computes.",
        "Random ids and other partitionings make a replay look like new rows.",
        "commit: an epoch that the ledger holds is discarded, not applied",
    ),
    Rule(
        "C06",
        MUST,
        "The next process finishes a decided epoch before anything else, from its manifest alone.",
        "Today's options must not change what the driver decided yesterday.",
        "registers.finish; no process may delete the chunks of an unfinished epoch",
    ),
    Rule(
        "C07",
        MUST,
        "Epochs take effect in order; the ledger's epoch never decreases.",
        "An old value would overwrite a new one.",
        "guards.judge",
    ),
    Rule(
        "C08",
        MUST,
        "After a later commit has succeeded, no chunk of an earlier epoch remains staged, whoever"
        " staged it. A failed clean-up never fails a commit.",
        "The log of a query that runs for years must not grow.",
        "commit: cleaning after the decision; Store.staged",
    ),
    Rule(
        "C09",
        MUST,
        "Only attempts whose receipts Spark passes to commit take effect: no failed attempt and"
        " no speculative twin.",
        "A loser has staged the same rows as the winner.",
        "the manifest names attempts; Store.prepare and Store.apply must read nothing else",
    ),
    Rule(
        "C10",
        MUST,
        "A receipt that says 'skipped' is valid for a replay of the decision that it names."
        " Otherwise it fails the batch.",
        "No chunk holds the rows of a task that skipped them.",
        "guards.require_skips_of",
    ),
    Rule(
        "C11",
        MUST,
        "A message that is None fails the commit; an abort ignores it.",
        "A task without a message has rows that no receipt names.",
        "guards.require_messages; spark.stream.StreamWriter",
    ),
    Rule(
        "C12",
        MUST,
        "A task that stages after the commit or the abort of its epoch never takes effect, and a"
        " later commit discards its chunks.",
        "Spark does not wait for tasks that it has abandoned.",
        "the manifest names attempts; commit.leftovers",
    ),
    Rule(
        "C13",
        MAY,
        "A reader sees whole epochs, in order.",
        "Sums that are read in the middle of an epoch are wrong.",
        "Store.publish: one transaction",
    ),
    Rule(
        "C14",
        MUST,
        "The driver detects that a store lost acknowledged commits before it writes anything more.",
        "Nothing else reveals a gap in the middle of a table.",
        "guards.judge: SinkBehindCheckpoint",
    ),
    Rule(
        "C15",
        MUST,
        "The driver rejects a checkpoint that was copied or restored to an earlier state.",
        "Its epochs carry old numbers and other rows: skipped in silence, the rows are lost.",
        "guards.judge: CheckpointBehindSink, CheckpointDiverged",
    ),
    Rule(
        "C16",
        MUST,
        "The ledger counts what took effect: its rows and epochs agree with the target.",
        "Operators read the ledger when numbers do not add up.",
        "Ledger.decided",
    ),
    Rule(
        "C17",
        MUST,
        "A row that the server rejects fails the commit with an error of one line that says so,"
        " whatever the row holds. Once the server accepts the row, a restart continues, and each"
        " row of one version of the epoch takes effect once.",
        "A wrong type shows up at night; to correct it must not lose or duplicate rows.",
        "Store.apply: the same step must mark the rows that it applied before this one",
    ),
    Rule(
        "C18",
        MUST,
        "A task that raises discards what it has staged, and Spark reports the task's own error.",
        "A query that fails at one row and restarts again and again fills the store.",
        "staging.stage: an attempt without a receipt can't be decided",
    ),
    Rule(
        "C19",
        MUST,
        "Garbage collection removes the chunks of dead runs, even while a later run of the same"
        " epoch stages. It removes nothing of a run with at least one fresh task.",
        "A query that dies in each run and restarts again and again fills the store.",
        "admin.SinkStatus.leftovers: the attempts of one run grow old together",
    ),
    Rule(
        "C20",
        MUST,
        "A numbered batch takes effect once, whatever call fails: another run skips it. A second"
        " write of one run fails, and so does a write of another query under the same name and"
        " number; neither is skipped in silence.",
        "Two writes into one target look like a repetition. A gap in the numbers does not concern"
        " a batch, and a lower number may be an old one.",
        "guards.judge and identify: Follows.GROWS",
    ),
    Rule(
        "C21",
        MUST,
        "A batch without a name takes effect as a whole if it is decided, or not at all. It"
        " leaves nothing else in the store.",
        "Each has its own ledger, which no later batch reads.",
        "commit: Ledger.once, is_done_with; admin.sweep",
    ),
    Rule(
        "C22",
        MUST,
        "A decision that another process finishes late never silently overwrites what other"
        " writers of the target have decided since. The process rejects it by name, drops it with"
        " its rows counted, or applies it on request. It finishes a decision that commutes.",
        "A batch died half-way, a stream continued, and `recover` overwrote newer rows with older"
        " ones.",
        "late.overtakers; the order of `Store.decided_after`; every process that finishes must"
        " pass the check",
    ),
    Rule(
        "C23",
        MUST,
        "An unreadable record stops the processes that need it with an error that names it, and"
        " nothing overwrites it. Operators see the record, continue with other sinks, and may"
        " give the sink up.",
        "Somebody edits a record by hand, and every command ends in a traceback; or the sink"
        " counts as a new one and applies all rows again.",
        "codec.reading, around each place that parses a record of the store",
    ),
    Rule(
        "C24",
        MUST,
        "A driver says that the store lost epochs only after a write has replaced what it read. An"
        " option that accepts a loss names these epochs, and accepts no later loss.",
        "A node that was cut off, or lags, answers a read: the query stops, and the operator gives"
        " up rows that the store has. Or a second failover loses more under the same option.",
        "Committer._is_present; conflicts.without_epochs",
    ),
    Rule(
        "A01",
        MUST,
        "Abort discards what its own tasks staged, unless a decision holds it. It undoes no"
        " decision.",
        "Spark calls abort after a commit that raised, even if its decide arrived.",
        "commit.abort: the step that discards attempts must doom them, or an earlier one",
    ),
    Rule(
        "A02",
        MUST,
        "Abort and commit of one epoch lose and duplicate nothing, delayed and interleaved at any"
        " call.",
        "After the loss of a commit worker Spark calls abort while a decide is in flight.",
        "Store.doom: no write of the ledger after the discard; guards.require_not_doomed",
    ),
    Rule(
        "I01",
        MUST,
        "The driver detects a deleted or replaced checkpoint by its identity, before it compares"
        " epochs. It rejects the query if rows would be added again, else it starts a new"
        " generation.",
        "Epoch 0 of a new query is not epoch 0 of the old one; to skip it loses its rows.",
        "guards.identify",
    ),
    Rule(
        "I02",
        MUST,
        "A replaced query can never commit again; its successor continues. Without an option, a"
        " query replaces only one at the same checkpoint path, and only if both are repeatable."
        " No query is replaced while neither has decided an epoch.",
        "Two queries would each apply the same rows; two healthy ones would stop each other.",
        "guards.identify: QueryRetired, CheckpointReplaced",
    ),
    Rule(
        "I03",
        MUST,
        "A query that replaces another loses and duplicates nothing, wherever either is"
        " interrupted. A query that decides holds the claim on its checkpoint path, no matter"
        " what frees claims meanwhile.",
        "The old query may be in the middle of a commit; an abort, gc or forget may be freeing"
        " the claim.",
        "commit: ledger, rival and claim are written before the first decision",
    ),
    *QUERIES,
    *BATCHES,
    *READS,
    *SOURCES,
)

BY_NUMBER = {rule.number: rule for rule in RULES}

ORACLES = {
    "O1": "The kit compares rows as a multiset of unique row ids, never as a set.",
    "O2": "A witness, a counter to which each row adds 1, agrees with a recount of the rows.",
    "O3": "A concurrent reader sees whole epochs, in order, if the store promises it.",
    "O4": "Ledger and data agree; the ledger's epoch never decreases.",
    "O5": "No chunk remains staged.",
    "O6": "A replay changes no byte but those of the ledger's history.",
    "O7": "All oracles hold again after every zombie's requests have arrived.",
}
