"""Example programs of a user; `python -m examples NAME` starts servers, runs and checks one."""
