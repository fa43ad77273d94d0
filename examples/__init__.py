"""Programs that a user writes; `python -m examples NAME` brings servers, runs and checks one."""
