"""Models of the followers' response, fitted to every answer so far."""
