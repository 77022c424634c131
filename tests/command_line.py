"""``pzos WORDS`` in a folder, as a process of its own that starts at once.

A new Python takes a second to load the package, and tests of the command line are many: here the process is a fork of
a server that has loaded it. What a new Python does is tried in ``cli/test_main.py`` and by every page of the
documentation.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path

_PATIENCE = 300.0  # seconds
_LOADED = ["pzos.cli.main", "pzos.cli.studies", "pzos.cli.description", "pzos.methods.default"]


def pzos_in(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder and return what it said and how it ended."""
    command = [sys.executable, "-m", "pzos", *words]
    environ = {**os.environ, **environment}
    if sys.platform == "win32":  # no forks there
        return subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    context = get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    with tempfile.TemporaryDirectory() as kept:
        said = [Path(kept, name) for name in ("out", "err")]
        process = context.Process(target=_become, args=(folder, words, environ, *said))
        process.start()
        process.join(_PATIENCE)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(command, _PATIENCE)
        return subprocess.CompletedProcess(command, process.exitcode, *(file.read_text() for file in said))


def _become(folder: Path, words: tuple[str, ...], environ: dict[str, str], out: Path, err: Path) -> None:
    """Be ``python -m pzos WORDS``, in this process."""
    for stream, file in ((1, out), (2, err)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), stream)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    sys.argv = ["pzos", *words]

    from pzos.cli.main import main

    sys.exit(main(list(words)))
