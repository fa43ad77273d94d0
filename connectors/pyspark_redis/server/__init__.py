"""How the server is talked to: client, its answers and failures."""
