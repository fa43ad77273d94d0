"""Why the demo can't go on."""


class Trouble(Exception):
    """It ends the demo; its text says what happened and what to do."""
