"""The rules that bind a store's steps, one by one. `rulebook` has all rules."""

from __future__ import annotations

from collections.abc import Sequence

from sparkonce.tck.rules.rule import MUST, Rule

STEPS: Sequence[Rule] = (
    Rule(
        "S01",
        MUST,
        "`read` gives a record as it was last written by any client, and `Record()` if none was.",
        "A stale ledger makes a task skip rows that are not decided, or a driver decide twice.",
        "Store.read: a replica, a cache, a search index, a snapshot isolation that is too old",
    ),
    Rule(
        "S02",
        MUST,
        "`swap` writes if and only if what the record replaces is there, in one atomic step, and"
        " returns what is there then.",
        "Two drivers that both believe they decided an epoch both apply it.",
        "Store.swap: compare and set must be one step of the server",
    ),
    Rule(
        "S03",
        MUST,
        "A `swap` that arrives again, at once or late, writes nothing more.",
        "Clients and networks send requests twice; a late one must not bring an old ledger back.",
        "Store.swap: it must compare stamps, not revisions, epochs or tokens",
    ),
    Rule(
        "S04",
        MUST,
        "`stage` of the same chunk again changes nothing; chunks are named by attempt and seq,"
        " never by partition or attempt number.",
        "Attempt numbers come back after a stage retry; a speculative twin would mix its rows in.",
        "Store.stage: the key of a chunk",
    ),
    Rule(
        "S05",
        MUST,
        "`staged` and `names` list every attempt in the log, with query, epoch and chunks.",
        "What is not listed is never cleaned, and the log grows for ever.",
        "Store.staged, Store.names: an attempt is listed in the step that stages it",
    ),
    Rule(
        "S06",
        MUST,
        "`decide` and `publish` refuse a manifest of which a chunk is gone or not whole, with"
        " `StagedDataMissing`, and nothing is written.",
        "Deciding what is no longer there loses rows for good: Spark will not replay them. A"
        " failover may take back what was staged a moment ago.",
        "Store.decide: look at every chunk of the manifest in the step that writes the record",
    ),
    Rule(
        "S07",
        MUST,
        "`publish` decides, applies and finishes in one atomic step, or does nothing and returns"
        " None; it does nothing if what the decision replaces is not there.",
        "A half-published epoch is found as undecided, and applied again.",
        "Store.publish: ledger and rows belong in one transaction or script",
    ),
    Rule(
        "S08",
        MUST,
        "`apply` makes each decided chunk take effect once, however often and by whomever it is"
        " called, and in the order of the manifest.",
        "Roll-forward calls it again after a crash in its middle.",
        "Store.apply: the mark that a chunk is applied belongs in the step that applies it",
    ),
    Rule(
        "S09",
        MUST,
        "`apply` of a manifest that is not, or no longer, the ledger's decision does nothing.",
        "A driver that slept for an hour would write old values over new ones.",
        "Store.apply: compare the token (or a fence) in the step that applies",
    ),
    Rule(
        "S10",
        MUST,
        "`apply` raises `StoreLostData` for a chunk that is gone and was not applied.",
        "Going on in silence loses its rows.",
        "Store.apply: tell a chunk that was applied from one that is missing",
    ),
    Rule(
        "S11",
        MUST,
        "`discard` drops the attempts that it names, of that sink, and nothing else; again, it"
        " changes nothing.",
        "Dropping another task's chunks fails its commit, or loses what is decided.",
        "Store.discard: the key of an attempt names the sink too",
    ),
    Rule(
        "S12",
        MUST,
        "Sinks of one store and one target do not disturb each other.",
        "Two queries that feed one table would fence each other out.",
        "the names of records, chunks and marks; a fence that two sinks share",
    ),
    Rule(
        "S13",
        MUST,
        "A request that the store can't have seen, or whose answer is lost, raises"
        " `StoreUnreachable` and nothing else.",
        "The core finds out what became of it; any other error is taken for a refusal.",
        "the mapping of the client's errors",
    ),
    Rule(
        "S14",
        MUST,
        "Chunks and records come back byte for byte, whatever they hold and up to 1 MB at least.",
        "A column type that cuts or re-encodes bytes corrupts rows in silence.",
        "the types of the log's and the ledger's columns",
    ),
    Rule(
        "S15",
        MUST,
        "`swap` writes a record only if as many chunks of the decision that is there are applied"
        " as it names, in the same atomic step.",
        "A failover between the last apply and the finish would end an epoch whose rows are gone.",
        "Store.swap: compare `applied` with the progress that Store.apply keeps",
    ),
    Rule(
        "S16",
        MUST,
        "`doom` writes as `swap` does, and drops the attempts that it names only where its record"
        " is then there.",
        "What was dropped for a record that another one came before may be decided by that one.",
        "Store.doom: one atomic step, or first the record; and a full store must still take it",
    ),
    Rule(
        "S17",
        MUST,
        "`swap` of a record of revision 0 takes away the one that it replaces, and no other; then"
        " `names` lists it no more, unless something is staged.",
        "What is left of sinks that are long gone is listed, and looked through, for ever.",
        "Store.swap: delete under the same comparison; Store.names",
    ),
    Rule(
        "S18",
        MUST,
        "`discard` over a stamp drops nothing unless the sink's record has that stamp.",
        "A failover between finish and clean-up brings the decision back, and with it the need for"
        " its chunks.",
        "Store.discard: compare the stamp in the step that drops",
    ),
    Rule(
        "S19",
        MUST,
        "`staged` tells ages by the store's own clock, whatever those of tasks and of who asks.",
        "What a host stages whose clock is two hours behind looks abandoned, and gc drops it.",
        "Store.stage: the time must be taken by the server; Store.staged: compared there, too",
    ),
    Rule(
        "S20",
        MUST,
        "What is kept beside a decision is written in the step that decides, over what is there,"
        " and by no stale decision.",
        "Offsets of an epoch are kept so, which a crash of the host takes from the checkpoint.",
        "Store.publish, Store.decide: write `Proposal.beside` under the same comparison",
    ),
)
