"""The columns of keys, where no schema says them: by a sample."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from pyspark_redis.read import guess
from pyspark_redis.read.columns import WHOLE_VALUE
from pyspark_redis.read.forms import BEGIN, ENTRY, FORMS, SCORE, VALUE
from pyspark_redis.read.keys import WHOLE, Naming, naming, require_no_pattern
from pyspark_redis.read.places import Places
from pyspark_redis.read.scan import ALL, Part, Scan
from pyspark_redis.read.wire import good, is_other_type, opened
from pyspark_redis.server.failures import no_stream, translated
from sparkonce.errors import OptionError, StoreRefused
from sparkonce.options import Options
from sparkonce.values.spark_types import CONTROL

log = logging.getLogger("sparkonce")

SAMPLE = 1000
"""Keys by which types are guessed."""

AT_ONCE = 20


def inferred(places: Places, options: Options, own: Sequence[bytes]) -> pa.Schema:
    """The columns of the first keys that are found, with the types that their texts have.

    Raises:
        StoreRefused: there is no such key.
    """
    names, model = naming(options), options["model"]
    found = _found(places, model, Scan(names.pattern, own))
    with translated("asking for a sample of keys"):
        schema = _schema(islice(found, SAMPLE), names, model, options)
    if schema is None:
        raise StoreRefused(
            f"No key of model {model} matches {names.pattern.decode()}",
            why="columns are guessed by a sample of the keys, and there is none",
            todo="mend option key, keyPattern or model, or say the columns by .schema(...)",
        )
    return schema


def inferred_of_streams(places: Places, options: Options) -> pa.Schema:
    """The columns of the first entries of streams, with the types that their texts have.

    Raises:
        StoreRefused: there is no entry.
    """
    with translated("asking for a sample of streams"):
        schema = _schema(
            _in_streams(places, options["streams"]), Naming(None, b""), "stream", options
        )
    if schema is None:
        for key in options["streams"]:
            require_no_pattern(key)
        raise StoreRefused(
            f"There is no entry in {', '.join(options['streams'])}",
            why="columns are guessed by a sample of the entries",
            todo="mend option streams, or say the columns by .schema(...)",
        )
    return schema if ENTRY in schema.names else schema.insert(1, pa.field(ENTRY, pa.string()))


def _schema(
    found: Iterable[tuple[bytes, dict[str, list[Any]]]], names: Naming, model: str, options: Options
) -> pa.Schema | None:
    """The columns of what lies under keys; None if there are none."""
    keys, columns = [], dict[str, list[Any]]()
    for key, fields in found:
        keys.append(key)
        for name, values in fields.items():
            columns.setdefault(name, []).extend(values)
    if not keys:
        return None
    said = names.texts(pa.array(keys, pa.binary()))
    known = {name: guess.of_keys(texts.to_pylist()) for name, texts in said.items()}
    for meta in {WHOLE, ENTRY}.intersection(options["columns"] or ()):
        known.setdefault(meta, guess.guessed(keys) if meta == WHOLE else pa.string())
    _require_value_has_a_name([*said, options.get("scoreColumn", "")], columns)
    shown = {VALUE: WHOLE_VALUE, SCORE: options.get("scoreColumn", SCORE)}
    hidden = {one.lower() for one in said}
    for name, values in columns.items():
        if name.lower() in hidden or not _is_column(name, model):
            log.warning(
                "Field %r is no column. Why: column _key is the key, _id the id of an entry, those"
                " of option key are read from it, and names are UTF-8 without control characters."
                " What to do: read it by a client; or give a column of option key another name",
                name,
            )
            continue
        kind = pa.float64() if name == SCORE else guess.guessed(values)
        known.setdefault(shown.get(name, name), kind)
    return pa.schema([*known.items()])


def _is_column(name: str, model: str) -> bool:
    """Whether a field may be one; its name may mean something else."""
    if name in {VALUE, SCORE}:
        return True
    if "\ufffd" in name or CONTROL.search(name):
        return False
    return name != WHOLE and not (model == "stream" and name == ENTRY)


def _require_value_has_a_name(others: Iterable[str], found: Iterable[str]) -> None:
    """Refuse to guess a schema in which the value would stand behind another column.

    Raises:
        OptionError: it would.
    """
    for name in others:
        if VALUE in found and name.lower() == WHOLE_VALUE:
            raise OptionError(
                f"Option key or scoreColumn has a column {name!r}, which is the name of the value",
                why="without .schema(...) the value is called so, and would be hidden",
                todo="call that column otherwise there; or name all columns by .schema(...), the"
                " value otherwise",
            )


def _found(places: Places, model: str, scan: Scan) -> Iterator[tuple[bytes, dict[str, list[Any]]]]:
    """Keys of a model, with what lies under each."""
    form = FORMS[model]()
    for client, _ in places.servers(Part(ALL)):
        with opened(client) as wire:
            for keys in scan.keys(wire):
                for at in range(0, len(keys), AT_ONCE):
                    block = keys[at : at + AT_ONCE]
                    asked = b"".join(form.ask(key, BEGIN) for key in block)
                    for key, reply in zip(block, wire.ask(asked, len(block)), strict=True):
                        if is_other_type(reply):
                            continue
                        if found := form.sample(good(reply)):
                            yield key, found


def _in_streams(
    places: Places, streams: Sequence[str]
) -> Iterator[tuple[bytes, dict[str, list[Any]]]]:
    form = FORMS["stream"]()
    for key in map(str.encode, streams):
        with opened(places.holder(key)) as wire:
            (reply,) = wire.ask(form.ask(key, BEGIN), 1)
        if is_other_type(reply):
            raise no_stream(key.decode())
        if found := form.sample(good(reply)):
            yield key, found
