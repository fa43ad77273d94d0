"""Foreign keys by which an epoch would change other rows than its own.

A check finds only those that the user may see.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.target.names import makes
from sparkonce.change import Names
from sparkonce.errors import OptionError
from sparkonce.templates import Segment

# A row that a cascade deletes also deletes the rows that refer to it; one set to NULL does not.
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


LINKED = """
WITH RECURSIVE changed (db, name) AS (
  SELECT constraint_schema, table_name FROM information_schema.referential_constraints
  WHERE unique_constraint_schema = %s AND referenced_table_name = %s
    AND (delete_rule IN ('CASCADE', 'SET NULL') OR update_rule IN ('CASCADE', 'SET NULL'))
  UNION
  SELECT f.constraint_schema, f.table_name
  FROM changed JOIN information_schema.referential_constraints f
    ON f.unique_constraint_schema = changed.db AND f.referenced_table_name = changed.name
  WHERE f.delete_rule IN ('CASCADE', 'SET NULL') OR f.update_rule IN ('CASCADE', 'SET NULL')
) SELECT db, name FROM changed
UNION SELECT unique_constraint_schema, referenced_table_name
FROM information_schema.referential_constraints
WHERE constraint_schema = %s AND table_name = %s
UNION SELECT constraint_schema, table_name FROM information_schema.referential_constraints
WHERE unique_constraint_schema = %s AND referenced_table_name = %s
"""
"""The tables that a foreign key links with a table, or whose rows follow its rows."""


def require_no_cascade(session: MySqlSession, table: Names, option: str) -> None:
    """Reject a target where deleting a row changes other rows; `option` deletes single rows.

    Raises:
        OptionError: a foreign key leads back to the table.
    """
    if session.run(LEADS_BACK, *table, *table):
        raise OptionError(
            f"Option {option}: {'.'.join(table)} has a foreign key that leads back to it,"
            " with ON DELETE CASCADE or SET NULL",
            why="an epoch deletes rows before it writes others, so a delete would also remove or"
            " change other rows of the table",
            todo="declare the foreign key ON DELETE RESTRICT, or drop it",
        )


def require_no_links(session: MySqlSession, table: Names, segments: Sequence[Segment]) -> None:
    """Reject a table that a foreign key links with another one that rows may name.

    Raises:
        OptionError: there is such a table.
    """
    for database, name in session.run(LINKED, *table, *table, *table):
        other = str(database), str(name)
        if other != tuple(table) and makes(segments, session.database, other):
            raise OptionError(
                f"A foreign key links tables {'.'.join(table)} and {'.'.join(other)}, and rows"
                " may go to both",
                why="an epoch changes one table after the other, so the server could reject a row"
                " whose parent follows, or change rows of the other table",
                todo="drop the foreign key: the tables get rows that their source has checked",
            )
