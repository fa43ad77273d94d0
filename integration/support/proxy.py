"""A TCP proxy for a server, which makes the network fail at a chosen request."""

from __future__ import annotations

import selectors
import socket
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from integration.support.marks import slow_cases
from integration.support.servers.process import HOST, Port
from integration.support.servers.streams import STREAMS, AnyStream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

# The silence of a client, after the server began its reply, that ends a request. The only criterion
# for an unknown protocol, and for a Redis pipeline that is not a transaction.
SILENCE = 0.03
WAIT = 10.0
# Close with RST, not FIN: the peer's next call fails with "connection reset".
NO_LINGER = struct.pack("ii", 1, 0)
USUAL_PORTS = {"redis": 6379, "mysql": 3306, "http": 9200}


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or HOST, parts.port or USUAL_PORTS[parts.scheme]


Predicate = Callable[[bytes], bool]


class Kind(Enum):
    CUT_REQUEST = "cut request"
    CUT_REPLY = "cut reply"
    RESET = "reset"
    STALL = "stall"


@dataclass
class Fault:
    kind: Kind
    matches: Predicate
    countdown: int


class Plan:
    """The planned faults, in the order of the calls; shared by all connections."""

    def __init__(self) -> None:
        self.changed = Condition()
        self.hits: list[int] = []
        self._coming: deque[Fault] = deque()
        self._epoch = 0

    def add(self, fault: Fault) -> None:
        with self.changed:
            self._coming.append(fault)

    def armed(self) -> bool:
        return bool(self._coming)

    def meet(self, request: bytes) -> tuple[bool, Kind | None]:
        """Return whether this request matches the next fault, and the fault that strikes now."""
        with self.changed:
            if not self._coming or not self._coming[0].matches(request):
                return False, None
            self._coming[0].countdown -= 1
            return True, self._coming.popleft().kind if not self._coming[0].countdown else None

    def count(self, client: int) -> None:
        """Record a fault that struck, with the port of the client."""
        with self.changed:
            self.hits.append(client)
            self.changed.notify_all()

    def forget(self) -> None:
        with self.changed:
            self._coming.clear()
            self._epoch += 1
            self.changed.notify_all()

    def stall(self, client: int) -> None:
        """Hold the calling thread until all faults are removed."""
        with self.changed:
            self.count(client)
            epoch = self._epoch
            self.changed.wait_for(lambda: self._epoch != epoch)


class Connection:
    """A client's connection to the server, served by one thread.

    A request is everything that the client sends before the reply (in Redis, to the end of a
    command or transaction). So the plan matches the whole request even if it arrives in pieces.
    """

    def __init__(
        self, client: socket.socket, server: socket.socket, plan: Plan, stream: AnyStream
    ) -> None:
        self._client = client
        self._server = server
        self._plan = plan
        self._stream = stream
        self._request = b""
        self._matched = False
        self._port: int = client.getpeername()[1]
        self.thread = Thread(target=self._serve, name="proxy connection", daemon=True)

    def hang_up(self) -> None:
        """End the connection from another thread, even while its own thread waits."""
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        with self._client, self._server, selectors.DefaultSelector() as ready, suppress(OSError):
            self._listen_to_both(ready)
            while self._pass_on({key.data for key, _ in ready.select()}):
                pass

    def _listen_to_both(self, ready: selectors.BaseSelector) -> None:
        for end in (self._client, self._server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ready.register(end, selectors.EVENT_READ, data=end)

    def _pass_on(self, readable: set[socket.socket]) -> bool:
        """Forward the received bytes; False ends the connection."""
        # The reply first: it ends the request, and the client's next bytes begin another one.
        if self._server in readable and not self._pass_reply():
            return False
        return self._client not in readable or self._pass_request()

    def _pass_reply(self) -> bool:
        reply = self._server.recv(65536)
        if self._stream.between_requests:
            self._request, self._matched = b"", False
        self._client.sendall(reply)
        return bool(reply)

    def _pass_request(self) -> bool:
        data = self._hear_client()
        fault = self._fault(data)
        if fault is Kind.STALL:
            self._plan.stall(self._port)
        elif fault:
            self._fail(fault, data)
            return False
        self._server.sendall(data)
        return bool(data)

    def _hear_client(self) -> bytes:
        data = self._client.recv(65536)
        self._stream.feed(data)
        return data

    def _fault(self, data: bytes) -> Kind | None:
        if self._matched or not data or not self._plan.armed():
            return None
        self._request += data
        self._matched, fault = self._plan.meet(self._request)
        return fault

    def _fail(self, fault: Kind, data: bytes) -> None:
        if fault is Kind.CUT_REPLY:
            self._swallow_reply(data)
        if fault is Kind.RESET:
            self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self._plan.count(self._port)  # before the client can notice

    def _swallow_reply(self, data: bytes) -> None:
        """Let the server execute the whole request, and keep its reply.

        The server reads the end of the proxy's side after the whole request. So once the server
        ends its side, too, it has executed the request.
        """
        self._server.sendall(data)
        with selectors.DefaultSelector() as ready:
            self._listen_to_both(ready)
            self._send_the_rest(ready)
        self._server.shutdown(socket.SHUT_WR)
        self._server.settimeout(WAIT)
        while self._server.recv(65536):
            pass

    def _send_the_rest(self, ready: selectors.BaseSelector) -> None:
        answered = False
        while events := ready.select(self._patience(answered)):
            for end in (key.data for key, _ in events):
                data = self._hear_client() if end is self._client else end.recv(65536)
                if not data:
                    return
                if end is self._client:
                    self._server.sendall(data)
                answered |= end is self._server

    def _patience(self, answered: bool) -> float | None:
        return SILENCE if answered and self._stream.between_requests else None


class Door:
    """Accepts clients, on its own thread, until it is closed."""

    def __init__(self, port: int, welcome: Callable[[socket.socket], None]) -> None:
        self._welcome = welcome
        self._listener = socket.create_server((HOST, port))
        self._asleep, self._alarm = socket.socketpair()
        self._thread = Thread(target=self._serve, name="proxy door", daemon=True)
        self._thread.start()

    def shut(self) -> None:
        self._alarm.close()
        self._thread.join()
        self._listener.close()
        self._asleep.close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as ready:
            ready.register(self._listener, selectors.EVENT_READ)
            ready.register(self._asleep, selectors.EVENT_READ)
            while self._asleep not in {key.fileobj for key, _ in ready.select()}:
                with suppress(OSError):  # a client that has disconnected already
                    self._welcome(self._listener.accept()[0])


CUTS = ("cut_reply", *slow_cases("cut_request", "reset"))
"""The faults of the network, for tests that try them at each request. A lost reply leaves the
outcome of the request open, so tests always try it."""


class Proxy:
    """A proxy for the server at a URL: clients connect to `proxy.url` instead.

    A fault strikes the n-th request from now on that matches (a part of its bytes, or a predicate);
    further faults wait for their turn. `cuts` counts the faults that struck.
    """

    def __init__(self, url: str, plan: Plan | None = None) -> None:
        parts = urlsplit(url)
        self._target = _address(url)
        self._port = Port()
        *login, _ = parts.netloc.rsplit("@", 1)
        netloc = "@".join([*login, f"{HOST}:{self._port.number}"])
        self.url = urlunsplit(parts._replace(netloc=netloc))
        self._plan = plan or Plan()
        self._stream = STREAMS.get(parts.scheme, AnyStream)
        self._lock = Lock()
        self._connections: list[Connection] = []
        self._door: Door | None = Door(self._port.number, self._welcome)

    @property
    def ports(self) -> list[int]:
        """The ports at which clients connect."""
        return [self._port.number]

    @property
    def cuts(self) -> int:
        return len(self.hits)

    @property
    def hits(self) -> list[int]:
        """The clients that faults struck, by their local ports."""
        return self._plan.hits

    def lead_to(self, url: str, *, keep: bool = False) -> None:
        """Connect new clients to another server, like a host name after a failover.

        Args:
            url: the URL of the other server.
            keep: whether existing connections continue to the first server.
        """
        self._target = _address(url)
        if not keep:
            self.disconnect()

    def cut_request(self, matching: bytes | Predicate = b"", nth: int = 1) -> None:
        """Close the connection instead of forwarding the request: it is never executed."""
        self._add(Kind.CUT_REQUEST, matching, nth)

    def cut_reply(self, matching: bytes | Predicate = b"", nth: int = 1) -> None:
        """Close the connection instead of forwarding the reply: the request was executed."""
        self._add(Kind.CUT_REPLY, matching, nth)

    def reset(self, matching: bytes | Predicate = b"", nth: int = 1) -> None:
        """Reset the connection instead of forwarding the request."""
        self._add(Kind.RESET, matching, nth)

    def stall(self, matching: bytes | Predicate = b"", nth: int = 1) -> None:
        """Hold the request until `restore`; it then arrives, even if no client waits for it."""
        self._add(Kind.STALL, matching, nth)

    def refuse(self) -> None:
        """Refuse new connections until `restore`; existing ones continue."""
        if self._door:
            self._door.shut()
            self._door = None

    def disconnect(self) -> None:
        """Close all existing connections."""
        with self._lock:
            for connection in self._connections:
                connection.hang_up()

    def restore(self) -> None:
        """Remove all faults, release stalled requests, and accept clients again."""
        self._plan.forget()
        self._door = self._door or Door(self._port.number, self._welcome)

    def wait(self, cuts: int = 1, seconds: float = WAIT) -> bool:
        """Wait until this number of faults struck; False if the time is over before."""
        with self._plan.changed:
            return self._plan.changed.wait_for(lambda: self.cuts >= cuts, seconds)

    def close(self) -> None:
        self.refuse()
        self.disconnect()  # before the release of stalled requests, or they would arrive
        self._plan.forget()
        for connection in self._connections:
            connection.thread.join()
        self._port.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, kind: Kind, matching: bytes | Predicate, nth: int) -> None:
        matches = matching if callable(matching) else lambda request: matching in request
        self._plan.add(Fault(kind, matches, nth))

    def _welcome(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target, timeout=WAIT)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        connection = Connection(client, server, self._plan, self._stream())
        with self._lock:
            self._connections = [each for each in self._connections if each.thread.is_alive()]
            self._connections.append(connection)
            connection.thread.start()


class Proxies(Proxy):
    """Several proxies with one plan; the first one represents all.

    Args:
        several: the proxies, which share `plan`.
        url: the URL that leads clients to them.
    """

    def __init__(self, several: Sequence[Proxy], plan: Plan, url: str) -> None:
        self._several, self._plan, self.url = several, plan, url

    @property
    def ports(self) -> list[int]:
        return [port for one in self._several for port in one.ports]

    def refuse(self) -> None:
        for one in self._several:
            one.refuse()

    def disconnect(self) -> None:
        for one in self._several:
            one.disconnect()

    def restore(self) -> None:
        for one in self._several:
            one.restore()

    def close(self) -> None:
        for one in self._several:
            one.close()
