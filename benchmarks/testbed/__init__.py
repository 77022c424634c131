"""A fair test bed: our methods and those of peers on the same problems, counted by the same door (``pzos bench``)."""
