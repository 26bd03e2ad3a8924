"""The queue of each suite, in a SQLite file beside the other data of this machine."""
