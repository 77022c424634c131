"""Shared by all tests: helper modules beside this file, and repeatable property tests."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# No deadlines: shared machines are slow at times. The same examples every time: a red test stays red.
settings.register_profile("pzos", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pzos")
