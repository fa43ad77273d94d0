"""What goes to the cluster and comes back as bytes: no Python object is made for an operation."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from elasticsearch.serializer import JsonSerializer, NdjsonSerializer

_STATUS = rb'(?:(?:index|create|update|delete)":\{"status":2\d\d|delete":\{"status":404)'
_ITEM = rb'\{"' + _STATUS + rb"\}\}"
_CREATED = rb'\{"create":\{"_index":"%s","status":201\}\}'
_ALL_CREATED = re.compile(
    rb'\{"items":\[' + _CREATED % rb'([^"\\]+)' + rb"(?:," + _CREATED % rb"\1" + rb")*\]\}"
)
_ALL_DONE = re.compile(rb'\{"items":\[' + _ITEM + rb"(?:," + _ITEM + rb")*\]\}")


class AllDone(NamedTuple):
    """The items of an answer to a bulk request, if each operation was done.

    Attributes:
        operations: how many they were.
        place: the index that all of them went to; empty if the answer does not say so.
    """

    operations: int
    place: str = ""


class Answers(JsonSerializer):
    """Reads JSON.

    Items are `AllDone` only if each of them holds the status of an operation that was done, with
    one and the same index or none, and nothing else (`bulk.SHOWN` cuts them down to that), and the
    answer holds nothing but items.
    """

    def loads(self, data: bytes) -> Any:
        """See `elastic_transport.Serializer`."""
        if _ALL_DONE.fullmatch(data):
            return {"items": AllDone(data.count(b'"status":'))}
        if created := _ALL_CREATED.fullmatch(data):
            return {"items": AllDone(data.count(b'"status":'), created[1].decode())}
        return super().loads(data)


class Unread(Answers):
    """Leaves what a search of a point in time finds as bytes; all else is read."""

    def loads(self, data: bytes) -> Any:
        """See `elastic_transport.Serializer`."""
        return {"bytes": data} if data.startswith(b'{"pit_id":') else super().loads(data)


class Lines(NdjsonSerializer):
    """Sends lines as they are; the client would copy them twice."""

    def dumps(self, data: Any) -> bytes:
        """See `elastic_transport.Serializer`."""
        return data if isinstance(data, bytes) else super().dumps(data)
