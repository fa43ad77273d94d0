"""The rules, and the oracles that judge them. Numbers are for ever: add, don't renumber."""

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
        "A process that dies before or after any call to the store loses and doubles nothing.",
        "Drivers are killed by night, by the kernel and by their operators.",
        "the step named in the history; what it leaves half done must be told from the ledger",
    ),
    Rule(
        "C02",
        MUST,
        "A call whose request or whose answer is lost is resolved by writing the ledger, never"
        " taken for failed or for done.",
        "The decide that was taken for failed is still on its way.",
        "registers.learn; the client's own retries",
    ),
    Rule(
        "C03",
        MUST,
        "A request that arrives late, or twice, even after its sender died, changes nothing.",
        "A zombie's requests wait in buffers of the network and of the server.",
        "the guard inside the step that arrives: stamp, token, fence, version",
    ),
    Rule(
        "C04",
        MUST,
        "Of two drivers of one checkpoint, interleaved at any call, one commits each epoch.",
        "A driver that was stopped wakes up when its successor has taken over.",
        "Store.swap, Store.publish; the order of reading, preparing and deciding",
    ),
    Rule(
        "C05",
        MUST,
        "A replayed epoch changes nothing, whatever rows and partitions it computes; nothing but"
        " the ledger's history differs then.",
        "Random ids and other partitionings make a replay look like new rows.",
        "commit: an epoch that the ledger holds is dropped, not applied",
    ),
    Rule(
        "C06",
        MUST,
        "A decided epoch is finished by whoever comes next, from its manifest alone, before"
        " anything else.",
        "Today's options must not change what was decided yesterday.",
        "registers.finish; chunks may be deleted only once the epoch is finished",
    ),
    Rule(
        "C07",
        MUST,
        "Epochs take effect in their order; the ledger's epoch never goes back.",
        "An old value would overwrite a new one.",
        "guards.judge",
    ),
    Rule(
        "C08",
        MUST,
        "Once a later commit has succeeded nothing of an earlier epoch is left staged, whoever"
        " left it; a clean-up that fails never fails a commit.",
        "The log of a query that runs for years must not grow.",
        "commit: cleaning after the decision; Store.staged",
    ),
    Rule(
        "C09",
        MUST,
        "Only the attempts whose receipts Spark hands to commit take effect: not a failed attempt,"
        " not a speculative twin.",
        "A loser has staged the same rows as the winner.",
        "the manifest names attempts; Store.prepare and Store.apply follow it alone",
    ),
    Rule(
        "C10",
        MUST,
        "A receipt that says 'skipped' is good for a replay of the decision it names, and else"
        " fails the batch.",
        "The rows of the task that skipped are nowhere.",
        "guards.require_skips_of",
    ),
    Rule(
        "C11",
        MUST,
        "A message that is None fails the commit, and is passed over by an abort.",
        "A task without a message has rows that nobody knows of.",
        "guards.require_messages; spark.stream.StreamWriter",
    ),
    Rule(
        "C12",
        MUST,
        "A task that stages after the commit or the abort of its epoch never takes effect, and is"
        " cleaned by a later commit.",
        "Spark does not wait for tasks that it has given up.",
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
        "A store that lost acknowledged commits is found out before anything more is written.",
        "A gap in the middle of a table is never noticed by itself.",
        "guards.judge: SinkBehindCheckpoint",
    ),
    Rule(
        "C15",
        MUST,
        "A checkpoint that was restored to an earlier state, or copied, is refused.",
        "Its epochs carry old numbers and other rows: skipped in silence, they are lost.",
        "guards.judge: CheckpointBehindSink, CheckpointDiverged",
    ),
    Rule(
        "C16",
        MUST,
        "The ledger counts what took effect: rows and epochs agree with the target.",
        "It is what an operator looks at when numbers don't add up.",
        "Ledger.decided",
    ),
    Rule(
        "C17",
        MUST,
        "A row that the server refuses fails the commit with an error that says so, in one line,"
        " whatever the row holds; once the row is accepted a restart goes on, and each row of one"
        " version of the epoch takes effect once.",
        "A type that does not fit is found at night; mending it must not cost or double rows.",
        "Store.apply: what it has applied before the row is marked in the same step",
    ),
    Rule(
        "C18",
        MUST,
        "A task that raises drops what it has staged, and its own error is the one that is seen.",
        "A query that fails at one row, and is started again and again, fills the store.",
        "staging.stage: an attempt without a receipt can't be decided",
    ),
    Rule(
        "C19",
        MUST,
        "Garbage collection drops what runs that have died staged, while a later run of the same"
        " epoch stages; of a run of which one task is fresh it drops nothing.",
        "A query that dies in each run, and is started again and again, fills the store.",
        "admin.SinkStatus.leftovers: the attempts of one run grow old together",
    ),
    Rule(
        "C20",
        MUST,
        "A batch that has a number counts once, whatever call fails: another run skips it. A"
        " second write of one run, or a write of another query under the same name and number, is"
        " an error, never a silent skip.",
        "Two writes into one target can't be told from a repetition; a gap in the numbers is none"
        " of a batch's business, and a lower one may be of long ago.",
        "guards.judge and identify: Follows.GROWS",
    ),
    Rule(
        "C21",
        MUST,
        "A batch without a name takes effect whole, if it is decided, or not at all; nothing of it"
        " is left in the store.",
        "Each has a ledger of its own, which nobody comes back to.",
        "commit: Ledger.once, is_done_with; admin.sweep",
    ),
    Rule(
        "C22",
        MUST,
        "A decision that others than its own stream finish late never takes effect in silence over"
        " what other writers of the target have decided since: it is refused by name, dropped with"
        " its rows counted, or applied because somebody says so. What commutes is finished.",
        "A batch died half-way, a stream went on, and `recover` put the older rows over the newer.",
        "late.overtakers; the order of `Store.decided_after`; who finishes passes the check",
    ),
    Rule(
        "C23",
        MUST,
        "A record that can't be read stops those that need it, with an error that names it; nothing"
        " is written over it. Operators see it, go on with other sinks, and may give it up.",
        "Somebody edits a record by hand, and every command ends in a traceback; or the sink counts"
        " as a new one and applies all rows again.",
        "codec.reading, around each place that takes a record of the store apart",
    ),
    Rule(
        "A01",
        MUST,
        "Abort drops what its own tasks staged, unless it is decided; nothing decided is undone.",
        "Spark calls abort after a commit that raised, also if its decide had arrived.",
        "commit.abort: attempts are doomed in the step that drops them, or before it",
    ),
    Rule(
        "A02",
        MUST,
        "Abort and commit of one epoch, delayed and interleaved at any call, lose and double"
        " nothing.",
        "After the loss of a commit worker Spark calls abort while a decide is on its way.",
        "Store.doom: the ledger is never written after the drop; guards.require_not_doomed",
    ),
    Rule(
        "I01",
        MUST,
        "A checkpoint that was deleted or swapped is found by its identity, before any comparison"
        " of epochs: refused where rows would be added again, else a new generation.",
        "Epoch 0 of a new query is not epoch 0 of the old one; skipping it loses its rows.",
        "guards.identify",
    ),
    Rule(
        "I02",
        MUST,
        "A query that was replaced can never commit again; the one that replaced it goes on. None"
        " is replaced by itself but where its checkpoint was, and where both repeat harmlessly; and"
        " none where neither has decided anything.",
        "Two queries would each apply the same rows; two healthy ones would stop each other.",
        "guards.identify: QueryRetired, CheckpointReplaced",
    ),
    Rule(
        "I03",
        MUST,
        "A query that replaces another loses and doubles nothing, wherever either is interrupted;"
        " one that decides holds the claim on its checkpoint path, whatever frees claims"
        " meanwhile.",
        "The old one may be in the middle of a commit; an abort, gc or forget in that of freeing.",
        "commit: ledger, rival and claim are written before the first decision",
    ),
    *QUERIES,
    *BATCHES,
    *READS,
    *SOURCES,
)

BY_NUMBER = {rule.number: rule for rule in RULES}

ORACLES = {
    "O1": "Rows are compared as a multiset of unique row ids, never as a set.",
    "O2": "A witness, a counter to which each row adds 1, agrees with a recount of the rows.",
    "O3": "A concurrent reader sees whole epochs, in order, where the store promises it.",
    "O4": "Ledger and data agree; the ledger's epoch never goes back.",
    "O5": "Nothing is left staged.",
    "O6": "A replay changes no byte but those of the ledger's history.",
    "O7": "All of it holds again after every zombie has come home.",
}
