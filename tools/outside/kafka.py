"""Spark's own source for Kafka, with a topic of three partitions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from integration.support.servers.kafka import source_jars

from sparkonce.tck.sources import StreamingSource

PARTITIONS, WAIT = 3, 30.0


class Topic:
    """A new topic; `append` writes rows to its partitions in turn."""

    def __init__(self, address: str) -> None:
        self.name = f"t{uuid.uuid4().hex[:10]}"
        self._written = 0
        self._ends: dict[str, TopicPartition] = {}
        self._admin = AdminClient({"bootstrap.servers": address})
        new = NewTopic(self.name, num_partitions=PARTITIONS, replication_factor=1)
        self._admin.create_topics([new])[self.name].result(WAIT)
        self._producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})

    def append(self, ids: Sequence[str]) -> None:
        for one in ids:
            self._written += 1
            self._producer.produce(
                self.name, one, partition=self._written % PARTITIONS, on_delivery=self._delivered
            )
        if self._producer.flush(WAIT):
            raise TimeoutError("Kafka did not accept the rows")

    def lose(self, ids: Sequence[str]) -> None:
        """Delete records like retention: all records of a partition up to the last of these."""
        ends: dict[int, TopicPartition] = {}
        for one in ids:
            ends[self._ends[one].partition] = self._ends[one]
        for deleted in self._admin.delete_records([*ends.values()]).values():
            deleted.result(WAIT)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        row, offset = message.value(), message.offset()
        self._ends[row.decode()] = TopicPartition(self.name, message.partition(), offset + 1)


def source(address: str, env: Mapping[str, str]) -> StreamingSource:
    """Describe the source to the kit."""
    topic = Topic(address)
    return StreamingSource(
        name="Spark's source for Kafka",
        format="kafka",
        options={
            "kafka.bootstrap.servers": address,
            "subscribe": topic.name,
            "startingOffsets": "earliest",
        },
        column="CAST(value AS STRING)",
        append=topic.append,
        latest={"startingOffsets": "latest"},
        limit="maxOffsetsPerTrigger",
        at_most=lambda limit: limit + PARTITIONS - 1,  # each partition returns at least one
        change=topic.append,
        lose=topic.lose,
        tolerant={"failOnDataLoss": "false"},
        jvm=True,
        settings={"spark.jars": ",".join(map(str, source_jars()))},
        env=env,
    )
