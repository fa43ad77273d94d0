"""Foreign keys by which a delete changes other rows of the same table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_mysql.server.client import Session
from sparkonce.errors import OptionError

if TYPE_CHECKING:
    from pyspark_mysql.write.plan import TableRows

# A row that is deleted on the way takes those below it along; one that is set to NULL does not.
# So SET NULL counts only in the last link, the foreign key of the target itself.
LEADS_BACK = """
WITH RECURSIVE parents (db, name) AS (
  SELECT unique_constraint_schema, referenced_table_name
  FROM information_schema.referential_constraints
  WHERE constraint_schema = %s AND table_name = %s AND delete_rule IN ('CASCADE', 'SET NULL')
  UNION
  SELECT f.unique_constraint_schema, f.referenced_table_name
  FROM parents JOIN information_schema.referential_constraints f
    ON f.constraint_schema = parents.db AND f.table_name = parents.name
  WHERE f.delete_rule = 'CASCADE'
) SELECT 1 FROM parents WHERE LOWER(db) = LOWER(%s) AND LOWER(name) = LOWER(%s)
"""


def require_no_cascade(session: Session, detail: TableRows) -> None:
    """Refuse a change stream into a table in which deleting a row changes other rows.

    Raises:
        OptionError: it is such a table, as far as the user may see others.
    """
    table = detail.table
    if detail.op and session.run(LEADS_BACK, *table, *table):
        raise OptionError(
            f"Option opColumn: {detail.shown} has a foreign key that leads back to it,"
            " with ON DELETE CASCADE or SET NULL",
            why="an epoch's deletes come before its writes, so that they would also take rows that"
            " the epoch had let go of before",
            todo="make the foreign key ON DELETE RESTRICT, or drop it: a change stream tells of"
            " each row by itself",
        )
