"""Studies on disk: nothing a query cost is ever lost."""
