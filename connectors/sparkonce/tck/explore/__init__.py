"""A seeded explorer: drivers, tasks, operators and faults, in an order that a seed decides.

A schedule runs the real core over one profile of the in-memory store. Its actors send their
requests one at a time; the seed draws the choices: whose request is next, and what happens to it.
Then every late request arrives, a last driver continues without faults, and the oracles judge. So
a seed alone reproduces a schedule, and choices set to 0 make it simpler.

`losses` describes the guarantees when the store itself loses data.

::

    python -m sparkonce.tck.explore --seeds 100000
    python -m sparkonce.tck.explore --seed 4711 --profile "atomic chunks"
"""

from sparkonce.tck.explore.explorer import Failure, Report, explore, history

__all__ = ["Failure", "Report", "explore", "history"]
