"""How the server is talked to: address, connections, literals, its answers and failures."""
