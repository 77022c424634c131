"""The paper's experiments: one frozen description per family of runs, and every figure drawn from their tables."""
