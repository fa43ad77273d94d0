"""Communicates with the server: address, connections, literals, replies and failures."""
