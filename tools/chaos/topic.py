"""The topic that a query reads: fed while it runs, and read again for the count."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

NAME = "events"
PARTITIONS = 3
BUCKETS = 8
WAIT, SOON = 30.0, 0.5
AT_ONCE = 10_000
ERRORS = 3
"""The level of syslog from which the client speaks."""

Ends = dict[int, int]
"""The next offset of each partition."""


@dataclass(frozen=True)
class Event:
    """One record of the topic, and so one row."""

    partition: int
    offset: int
    bucket: int
    amount: int


class Topic:
    """A topic of random events."""

    def __init__(self, address: str, seed: int) -> None:
        self.address, self.produced = address, 0
        self._random = random.Random(f"{seed} events")
        admin = AdminClient({"bootstrap.servers": address})
        new = NewTopic(NAME, num_partitions=PARTITIONS, replication_factor=1)
        admin.create_topics([new])[NAME].result(WAIT)
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": ERRORS,
            }
        )

    def produce(self, events: int) -> None:
        """Append so many events, and wait until the broker has them."""
        draw = self._random.randrange
        for number in range(events):
            self._append(f"{draw(BUCKETS)},{draw(1000)}", draw(PARTITIONS))
            if number % 1000 == 0:
                self._producer.poll(0)
        if self._producer.flush(WAIT):
            raise TimeoutError("Kafka did not take the events")
        self.produced += events

    def _append(self, value: str, partition: int) -> None:
        limit = time.monotonic() + WAIT
        while True:
            try:
                return self._producer.produce(
                    NAME, value, partition=partition, on_delivery=_delivered
                )
            except BufferError:  # the broker is slower than we are
                if time.monotonic() > limit:
                    raise TimeoutError("Kafka did not take the events") from None
                self._producer.poll(0.1)

    def ends(self) -> Ends:
        """How far the topic goes."""
        with self._consumer() as consumer:
            return {
                one: consumer.get_watermark_offsets(TopicPartition(NAME, one), WAIT)[1]
                for one in range(PARTITIONS)
            }

    def events(self) -> Iterator[Event]:
        """Every event, as Kafka has it."""
        left = {one: end for one, end in self.ends().items() if end}
        with self._consumer() as consumer:
            consumer.assign([TopicPartition(NAME, one, 0) for one in left])
            limit = time.monotonic() + WAIT
            while left:
                # It waits so long for so many, even where no more can come.
                for message in consumer.consume(AT_ONCE, SOON):
                    event = _event(message)
                    if event.offset + 1 == left[event.partition]:
                        del left[event.partition]
                    yield event
                    limit = time.monotonic() + WAIT
                if time.monotonic() > limit:
                    raise TimeoutError(f"Kafka does not give the events up to {left}")

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "count",
                "enable.auto.commit": False,
            }
        )


def _delivered(error: object, _: Message) -> None:
    if error is not None:
        raise KafkaException(error)


def _event(message: Message) -> Event:
    if message.error():
        raise KafkaException(message.error())
    bucket, amount = message.value().split(b",")
    return Event(message.partition(), message.offset(), int(bucket), int(amount))
