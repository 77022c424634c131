"""Nothing in this room may wait for ever."""

from deadlines import deadline

__all__ = ["deadline"]
