"""x"""

from pzos.experiments.context import Figure

FIGURES: dict[str, Figure] = {}
