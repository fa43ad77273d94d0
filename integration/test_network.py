"""The network of partition runs: real sockets between namespaces, whose links are cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.partitions.network import why_not

ROOT = Path(__file__).parents[1]
PROGRAM = """
import json, socket, sys
from tools.partitions.network import Network
from tools.partitions.network import go_apart
from integration.support.servers.redis import RedisProcess
go_apart("network_program")
network = Network(["a", "b"])
CLIENT = '''
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 2) as it:
        it.settimeout(2)
        it.sendall(b"PING\\\\r\\\\n")
        print(it.recv(7).decode().strip())
except OSError as error:
    print(type(error).__name__)
'''
import subprocess
def ask(name, host, port):
    command = [*network.places[name].within, sys.executable, "-c", CLIENT, host, str(port)]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()
seen = {}
with RedisProcess("protected-mode no", "bind 0.0.0.0", place=network.places["a"]) as server:
    own, port = server.host, server.port
    seen["whole"] = ask("b", own, port)
    network.cut([("a", "b")])
    seen["the server is mute"] = ask("b", own, port)
    seen["the operator"] = server.answers()
    network.heal()
    network.cut([("b", "a")])
    seen["the server is deaf"] = ask("b", own, port)
    network.heal()
    seen["healed"] = ask("b", own, port)
    network.move("127.77.0.100", "a")
    seen["a virtual address"] = ask("b", "127.77.0.100", port)
    network.move("127.77.0.100", "b")
    seen["which has moved"] = ask("a", "127.77.0.100", port)
print(json.dumps(seen))
"""


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_links_are_cut_one_direction_at_a_time_and_addresses_move(tmp_path: Path) -> None:
    (tmp_path / "network_program.py").write_text(PROGRAM)
    path = os.pathsep.join([str(ROOT), str(ROOT / "connectors"), str(tmp_path)])
    command = [sys.executable, "-m", "network_program"]
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "whole": "+PONG",
        "the server is mute": "TimeoutError",
        "the operator": True,
        "the server is deaf": "TimeoutError",
        "healed": "+PONG",
        "a virtual address": "+PONG",
        "which has moved": "ConnectionRefusedError",
    }
