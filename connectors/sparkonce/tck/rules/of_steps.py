"""The rules for each step of a store. `rulebook` has all rules."""

from __future__ import annotations

from collections.abc import Sequence

from sparkonce.tck.rules.rule import MUST, Rule

STEPS: Sequence[Rule] = (
    Rule(
        "S01",
        MUST,
        "`read` returns a record as any client last wrote it, and `Record()` if no client wrote"
        " one.",
        "A stale ledger makes a task skip undecided rows, or a driver decide twice.",
        "Store.read: a replica, a cache, a search index, a snapshot isolation that is too old",
    ),
    Rule(
        "S02",
        MUST,
        "`swap` writes only if the store holds the record that it replaces. It does so in one"
        " atomic step, and returns the record that the store holds afterwards.",
        "Two drivers that both believe they decided an epoch both apply it.",
        "Store.swap: compare and set must be one step of the server",
    ),
    Rule(
        "S03",
        MUST,
        "A duplicate `swap` writes nothing, whether it arrives immediately or late.",
        "Clients and networks send requests twice; a late one must not restore an old ledger.",
        "Store.swap: it must compare stamps, not revisions, epochs or tokens",
    ),
    Rule(
        "S04",
        MUST,
        "Staging the same chunk again changes nothing. Attempt and seq name a chunk, never its"
        " partition or attempt number.",
        "Spark reuses attempt numbers after a stage retry; a speculative twin would mix its rows"
        " in.",
        "Store.stage: the key of a chunk",
    ),
    Rule(
        "S05",
        MUST,
        "`staged` and `names` list every attempt in the log, with query, epoch and chunks.",
        "No clean-up finds an unlisted attempt, and the log grows forever.",
        "Store.staged, Store.names: the step that stages an attempt must also list it",
    ),
    Rule(
        "S06",
        MUST,
        "`decide` and `publish` reject a manifest with a missing or incomplete chunk: they raise"
        " `StagedDataMissing` and write nothing.",
        "A decision without its chunks loses rows for good: Spark does not replay them. A"
        " failover may roll back chunks that were just staged.",
        "Store.decide: check every chunk of the manifest in the step that writes the record",
    ),
    Rule(
        "S07",
        MUST,
        "`publish` decides, applies and finishes in one atomic step, or does nothing and returns"
        " None. It does nothing if the store does not hold the record that the decision replaces.",
        "A half-published epoch looks undecided, and is applied again.",
        "Store.publish: ledger and rows belong in one transaction or script",
    ),
    Rule(
        "S08",
        MUST,
        "`apply` makes each decided chunk take effect once, in the order of the manifest, no"
        " matter how often and by which process it is called.",
        "Roll-forward calls `apply` again after a crash in the middle of it.",
        "Store.apply: the mark that a chunk is applied belongs in the step that applies it",
    ),
    Rule(
        "S09",
        MUST,
        "`apply` does nothing if the manifest is not the ledger's current decision.",
        "A driver that slept for an hour would overwrite new values with old ones.",
        "Store.apply: compare the token (or a fence) in the step that applies",
    ),
    Rule(
        "S10",
        MUST,
        "`apply` raises `StoreLostData` for a missing chunk that was not applied.",
        "To continue in silence loses the rows of the chunk.",
        "Store.apply: distinguish a chunk that was applied from one that is missing",
    ),
    Rule(
        "S11",
        MUST,
        "`discard` removes the named attempts of the named sink, and nothing else. A second call"
        " changes nothing.",
        "To remove another task's chunks fails its commit, or loses decided rows.",
        "Store.discard: the key of an attempt must also name the sink",
    ),
    Rule(
        "S12",
        MUST,
        "Sinks of one store and one target do not affect each other.",
        "Two queries that write to one table would fence each other out.",
        "the names of records, chunks and marks; a fence that two sinks share",
    ),
    Rule(
        "S13",
        MUST,
        "A request that cannot have reached the store, or whose reply is lost, raises"
        " `StoreUnreachable` and no other error.",
        "The core resolves the outcome of the request; it treats any other error as a rejection.",
        "the mapping of the client's errors",
    ),
    Rule(
        "S14",
        MUST,
        "The store returns chunks and records byte for byte, for any content and for sizes up to"
        " at least 1 MB.",
        "A column type that truncates or re-encodes bytes silently corrupts rows.",
        "the types of the log's and the ledger's columns",
    ),
    Rule(
        "S15",
        MUST,
        "`swap` writes a record only if the number of applied chunks of the current decision equals"
        " its argument `applied`. It compares and writes in one atomic step.",
        "A failover between the last apply and the finish would finish an epoch whose rows are"
        " lost.",
        "Store.swap: compare `applied` with the progress that Store.apply keeps",
    ),
    Rule(
        "S16",
        MUST,
        "`doom` writes as `swap` does. It discards the named attempts only if the store then"
        " holds its record.",
        "If another record won, its decision may hold the discarded attempts.",
        "Store.doom: one atomic step, or first the record; a full store must still accept the"
        " request",
    ),
    Rule(
        "S17",
        MUST,
        "`swap` of a record of revision 0 removes the record that it replaces, and no other. Then"
        " `names` no longer lists the sink, unless the log holds chunks of it.",
        "Every listing would include, and read, the leftovers of sinks removed long ago.",
        "Store.swap: delete under the same comparison; Store.names",
    ),
    Rule(
        "S18",
        MUST,
        "`discard` with a stamp removes nothing unless the sink's record has that stamp.",
        "A failover between finish and clean-up restores the decision, which then needs its"
        " chunks again.",
        "Store.discard: compare the stamp in the step that removes",
    ),
    Rule(
        "S19",
        MUST,
        "`staged` measures ages by the store's own clock, not by the clocks of the tasks or of"
        " the caller.",
        "Chunks from a host whose clock is two hours behind look abandoned, and gc removes them.",
        "Store.stage: the server must take the time; Store.staged: the server must compare it, too",
    ),
    Rule(
        "S20",
        MUST,
        "The step that decides also writes the auxiliary record, and replaces the former one. A"
        " stale decision never writes it.",
        "The auxiliary record keeps the offsets of an epoch, which a crash of the host can remove"
        " from the checkpoint.",
        "Store.publish, Store.decide: write `Proposal.beside` under the same comparison",
    ),
)
