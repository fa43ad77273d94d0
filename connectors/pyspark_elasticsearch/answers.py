"""Reads what the cluster answers, and the answer to a bulk request without an object an item."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from elasticsearch.serializer import JsonSerializer

_ITEM = rb'\{"(?:index|create|update|delete)":\{"status":(?:2\d\d|404)\}\}'
_ALL_DONE = re.compile(rb'\{"items":\[' + _ITEM + rb"(?:," + _ITEM + rb")*\]\}")


class AllDone(NamedTuple):
    """What a bulk request is answered, cut down by `bulk.SHOWN`, if each operation was done.

    Attributes:
        operations: how many they were.
    """

    operations: int


class Answers(JsonSerializer):
    """JSON; an answer is `AllDone` only if each of its items says so, and has nothing else."""

    def loads(self, data: bytes) -> Any:
        """See `elastic_transport.Serializer`."""
        if _ALL_DONE.fullmatch(data):
            return AllDone(data.count(b'"status":'))
        return super().loads(data)
