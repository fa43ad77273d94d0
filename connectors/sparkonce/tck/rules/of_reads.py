"""The rules for reads of a store: `sparkonce.reading.Source`, and Spark above it."""

from __future__ import annotations

from collections.abc import Sequence

from sparkonce.tck.rules.rule import MUST, Rule

READS: Sequence[Rule] = (
    Rule(
        "R01",
        MUST,
        "Every stored row belongs to exactly one read split, whatever the number of splits.",
        "Ranges with holes lose rows, overlapping ranges duplicate them, and null is in no range.",
        "Source.splits: open ends, nulls, duplicate borders, one row, no row",
    ),
    Rule(
        "R02",
        MUST,
        "A split returns the same rows whenever and wherever a process reads it again.",
        "Spark runs tasks twice: after a failure, beside a slow one, for a second action.",
        "the split: it must hold everything that determines its rows, and be picklable",
    ),
    Rule(
        "R03",
        MUST,
        "A pushed condition never removes a row that matches it.",
        "Collations, wildcards, zones, roundings and nulls differ between a store and Spark.",
        "how a filter is translated; if the store has no exact condition, ask for a wider one",
    ),
    Rule(
        "R04",
        MUST,
        "Columns arrive in the requested order, with the requested names and types.",
        "Spark takes batches by position: nobody notices two swapped columns of one type.",
        "Source.read: the columns of its batches",
    ),
    Rule(
        "R05",
        MUST,
        "A read returns values as they were stored: nulls, empty texts, quotes and line ends, the"
        " limits of types, instants in every zone.",
        "A text that looks like null, or a rounded number, is a silent change.",
        "the encoding of values on the wire; the type that `infer` returns",
    ),
    Rule(
        "R06",
        MUST,
        "A value that does not have the requested type is an error that says so, never another"
        " value and never a null.",
        "Zero dates, overflows and arrays among scalars are in every old table.",
        "Source.read: what it parses leniently",
    ),
    Rule(
        "R07",
        MUST,
        "An interrupted read raises, or continues with the right rows. An abandoned read leaves"
        " nothing behind that a later read meets.",
        "A connection that returns to its pool in the middle of a reply passes these rows to the"
        " next reader.",
        "Source.read: what happens when its generator is closed, and when the store becomes"
        " unreachable",
    ),
    Rule(
        "R08",
        MUST,
        "A row that nobody changes is read once, whatever others write meanwhile.",
        "Pages that shift under a reader lose a row, or return it twice.",
        "Source.read: a snapshot, a cursor, a point in time; never pages by number",
    ),
    Rule(
        "R09",
        MUST,
        "A reply that takes longer than option `timeout` is an error that names the option, and"
        " the store stops its work on the request.",
        "An abandoned statement keeps running, and each retry adds another one.",
        "Source.read: the request that it sends to cancel the statement",
    ),
    Rule(
        "R10",
        MUST,
        "A read never takes the metadata of a reply from a row, whatever the names of its columns.",
        "A column called sort, or _id, replaced the value by which the read continued after a"
        " page.",
        "how a reply is parsed: the fields of a row must be separate from those of a page",
    ),
)
