"""The commands of ``pzos`` that work on durable studies; each module has ``add_arguments`` and ``run``."""
