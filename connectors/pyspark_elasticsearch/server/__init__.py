"""How the cluster is talked to: address, client, bulk requests, its answers and failures."""
