"""Communicates with the cluster: address, client, bulk requests, answers and failures."""
