"""What a process of Spark prints of a message: whose it is, and how grave."""

from __future__ import annotations

import subprocess
import sys

SAY = "logging.getLogger('sparkonce').warning('rows may double')"
INFO = "logging.getLogger('sparkonce').info('epoch 7 is done')"


SET_UP = "errors.set_up_logging()"


def printed(*steps: str) -> str:
    program = "\n".join(["import logging", "from sparkonce import errors", *steps])
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return run.stderr


def test_a_warning_has_its_level_and_its_logger() -> None:
    assert "WARNING sparkonce: rows may double\n" in printed(SET_UP, SET_UP, SAY)
    assert printed(SET_UP, SET_UP, SAY).count("rows may double") == 1


def test_what_happened_is_said_and_what_helps_developers_alone_is_not() -> None:
    assert printed(SET_UP, INFO).endswith(" INFO sparkonce: epoch 7 is done\n")
    assert printed(SET_UP, "logging.getLogger('sparkonce').debug('x')") == ""


def test_a_process_that_has_set_up_logging_says_it_its_own_way() -> None:
    mine = "logging.basicConfig(format='mine: %(message)s')"
    assert printed(SET_UP, mine, SAY) == "mine: rows may double\n"
    assert printed(mine, SET_UP, SAY) == "mine: rows may double\n"
    assert printed(SET_UP, mine, INFO) == printed(mine, SET_UP, INFO) == ""
    louder = mine.replace("format=", "level='INFO', format=")
    assert printed(louder, SET_UP, INFO) == "mine: epoch 7 is done\n"
