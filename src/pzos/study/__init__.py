"""One run: ask and tell, its limits, its trace and its result."""
