"""``python -m pzos`` is ``pzos``."""

from pzos.cli import main

raise SystemExit(main())
