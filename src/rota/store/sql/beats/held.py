"""What stops a commit of beats that may be done anew."""


class RowHeld(Exception):
    """Another transaction holds a row that was to be written, for longer than this one waits; nothing was written."""
