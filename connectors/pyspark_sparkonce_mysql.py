"""``format("sparkonce_mysql")``, a name that no jar and no platform has; see `pyspark_mysql`."""

from pyspark_mysql import DefaultSource as MySQL

__all__ = ["DefaultSource"]


class DefaultSource(MySQL):
    """See `pyspark_mysql.DefaultSource`."""
