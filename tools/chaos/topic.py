"""The topic that a query reads: the run feeds it, and reads it again for the count."""

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
"""The syslog level from which the client logs."""

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
        """Append `events` events, and wait until the broker has them."""
        draw = self._random.randrange
        for number in range(events):
            self._append(f"{draw(BUCKETS)},{draw(1000)}", draw(PARTITIONS))
            if number % 1000 == 0:
                self._producer.poll(0)
        if self._producer.flush(WAIT):
            raise TimeoutError("Kafka did not accept the events")
        self.produced += events

    def _append(self, value: str, partition: int) -> None:
        limit = time.monotonic() + WAIT
        while True:
            try:
                return self._producer.produce(
                    NAME, value, partition=partition, on_delivery=_delivered
                )
            except BufferError:  # the broker is slower than the producer
                if time.monotonic() > limit:
                    raise TimeoutError("Kafka did not accept the events") from None
                self._producer.poll(0.1)

    def ends(self) -> Ends:
        """The end of each partition."""
        with self._consumer() as consumer:
            return {
                one: consumer.get_watermark_offsets(TopicPartition(NAME, one), WAIT)[1]
                for one in range(PARTITIONS)
            }

    def events(self) -> Iterator[Event]:
        """Every event in Kafka."""
        left = {one: end for one, end in self.ends().items() if end}
        with self._consumer() as consumer:
            consumer.assign([TopicPartition(NAME, one, 0) for one in left])
            limit = time.monotonic() + WAIT
            while left:
                # The call waits SOON for AT_ONCE messages, even if no more can arrive.
                for message in consumer.consume(AT_ONCE, SOON):
                    event = _event(message)
                    if event.offset + 1 == left[event.partition]:
                        del left[event.partition]
                    yield event
                    limit = time.monotonic() + WAIT
                if time.monotonic() > limit:
                    raise TimeoutError(f"Kafka does not return the events up to {left}")

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
