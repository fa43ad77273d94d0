"""``format("sparkonce_redis")``, a name that no jar has; see `pyspark_redis`."""

from pyspark_redis import DefaultSource as Redis

__all__ = ["DefaultSource"]


class DefaultSource(Redis):
    """See `pyspark_redis.DefaultSource`."""
