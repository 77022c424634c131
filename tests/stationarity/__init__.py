"""Tests of pzos.stationarity (a package, so that its module names do not clash with other rooms' tests)."""
