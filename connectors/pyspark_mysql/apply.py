"""Makes the rows of chunks take effect, inside a transaction of the caller's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pymysql

from pyspark_mysql.chunks import Rows, decode
from pyspark_mysql.client import Session
from pyspark_mysql.failures import Kind, known, message
from pyspark_mysql.statements import Frame, frame
from sparkonce.errors import SparkonceError

ROOM = 1024
"""Bytes of a packet that are left for its header."""


class RefusedRow(SparkonceError):
    """The server refused this row; nothing of its statement took effect."""


class Applier:
    """Applies chunks by the plan of one manifest.

    Args:
        session: of the server.
        detail: of the manifest.
    """

    def __init__(self, session: Session, detail: Mapping[str, Any]) -> None:
        self.session, self.detail = session, detail
        self.frame = self._frame()
        self.most = session.live.packet - len(self.frame.head) - len(self.frame.tail) - ROOM

    def begin(self) -> None:
        """What must be done before the transaction."""

    def end(self) -> None:
        """What must be done behind the last chunk, in the transaction."""

    def _frame(self) -> Frame:
        return frame(self.detail, mariadb=self.session.live.mariadb)

    def apply(self, payload: bytes) -> None:
        """Apply a chunk, in as few statements as the server's packets allow.

        Raises:
            RefusedRow: a row is refused; the caller rolls all of it back.
            pymysql.MySQLError: anything else.
        """
        for part in decode(payload).within(self.most):
            self._send(part)

    def _send(self, rows: Rows) -> None:
        if len(rows.text) > self.most:
            raise RefusedRow(
                f"The row with {self._shown(rows)} takes {len(rows.text):,} bytes",
                f"max_allowed_packet of the server is {self.session.live.packet:,}",
                "raise it, or cut the row's large columns before the sink",
            )
        try:
            self.session.run(b"".join([self.frame.head, rows.text, self.frame.tail]))
        except pymysql.MySQLError as error:
            if known(error).kind is not Kind.ROW:
                raise
            if len(rows) == 1:
                raise self._refused(rows, error) from None
            for half in rows.halves():  # to find the row: one of them will fail
                self._send(half)

    def _refused(self, rows: Rows, error: pymysql.MySQLError) -> RefusedRow:
        _, why, todo = known(error)
        shown = self._shown(rows)
        return RefusedRow(f"MySQL refused the row with {shown}: {message(error)}", why, todo)

    def _shown(self, rows: Rows) -> str:
        """The key of the first row, or all of it where it has none."""
        literals = dict(zip(self.detail["columns"], rows.literals(), strict=False))
        shown = {name: literals[name] for name in self.detail["key"]} or literals
        return ", ".join(f"{name}={literal}" for name, literal in shown.items())
