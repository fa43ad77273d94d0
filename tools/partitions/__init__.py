"""Partitions: clusters of real servers in network namespaces, cut from each other from a seed."""
