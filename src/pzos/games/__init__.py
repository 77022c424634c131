"""Games with a model."""
