"""``python -m pzos`` is ``pzos``."""

from pzos.cli.main import main

raise SystemExit(main())
