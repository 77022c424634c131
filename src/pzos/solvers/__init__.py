"""One file per method. A solver is a frozen configuration with four pure methods: init, ask, tell and stop."""
