"""Followers nobody has seen: families of many kinds, peers on equal terms, and one table (``benchmarks/unseen.py``)."""
