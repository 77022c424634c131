"""One file per simulator; each ends with a list ``FAMILIES``, and the folder is listed (see :mod:`suite`)."""
