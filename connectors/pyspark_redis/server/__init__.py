"""Communicates with the server: address, client, nodes, checks and failures."""
