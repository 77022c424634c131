"""Two or three costs over the same followers: their front, from one memory of answers."""
