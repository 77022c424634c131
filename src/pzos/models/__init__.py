"""Models of the followers' response that remember every answer: linear part, process, declared structure."""
