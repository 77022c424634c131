"""Headless Chromium driven through its own debugging pipe: no driver program and no package is needed."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0
#: Charts that are not drawn yet, and are not folded away.
_UNDRAWN = """[...document.querySelectorAll(".plotly-graph-div")].filter(
  plot => !plot.closest("details:not([open])") && !plot.querySelector(".main-svg")).length"""
#: Chromium reads commands from descriptor 3 and answers on 4: put our pipes there, then become Chromium.
_WITH_PIPES = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find() -> str | None:
    """Return the path of an installed Chromium, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of one browser; ``events`` holds everything the browser said by itself."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self._process, self._to, self._back = process, to, back
        self._number, self._buffer = 0, b""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = ""
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its answer; what arrives meanwhile is kept in ``events``."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if getattr(self, "_session", ""):
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._receive()
            if heard.get("id") == self._number:
                if "error" in heard:
                    raise RuntimeError(f"{method}: {heard['error']}")
                answer: dict[str, Any] = heard["result"]
                return answer
            self.events.append(heard)

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._back], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self._back, 1 << 20) if ready else b""
            if not chunk:
                raise TimeoutError(f"Chromium said nothing for {PATIENCE:g} s (exit code {self._process.poll()})")
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\0", 1)
        heard: dict[str, Any] = json.loads(line)
        return heard

    def open(self, page: Path | str, width: int, height: int, *, phone: bool = False) -> float:
        """Open a file or an address at a window size; return the seconds until it had loaded and drawn."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        start = time.monotonic()
        self.call("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        self.settle()
        return time.monotonic() - start

    def settle(self) -> None:
        """Wait until the page has loaded and is drawn."""
        while self.evaluate("document.readyState") != "complete" or "about:blank" in str(
            self.evaluate("location.href")
        ):
            time.sleep(0.02)
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def draw(self) -> None:
        """Wait until every chart that is not folded away is drawn."""
        deadline = time.monotonic() + PATIENCE
        while self.evaluate(_UNDRAWN):
            if time.monotonic() > deadline:
                raise TimeoutError(f"charts are not drawn after {PATIENCE:g} s")
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """Click what the selector finds, and wait for the page that this opens."""
        self.evaluate("window.before = true")
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(RuntimeError):  # the page it was asked of is gone
                if not self.evaluate("window.before === true"):
                    break
            time.sleep(0.02)
        self.settle()

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def complaints(self, server: str = "about:") -> list[str]:
        """Return console errors and warnings, exceptions, failed loads, and requests to others than ``server``."""
        self.evaluate("1")
        found = []
        for event in self.events:
            name, what = event.get("method", ""), event.get("params", {})
            if name == "Runtime.exceptionThrown":
                found.append(str(what["exceptionDetails"]))
            elif name == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
                found.append(f"console {what['type']}: {what['args']}")
            elif name == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
                found.append(f"log: {what['entry']['text']}")
            elif name == "Network.requestWillBeSent":
                url = what["request"]["url"]
                if not url.startswith(("file:", "data:", "blob:", "about:", server)):
                    found.append(f"asked the network for {url}")
        return found

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Write a picture of the page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Start Chromium with an empty profile and end it afterwards."""
    program = find()
    if program is None:
        raise FileNotFoundError("no Chromium is installed")
    to_read, to_write = os.pipe()
    back_read, back_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        words = [sys.executable, "-c", _WITH_PIPES, str(to_read), str(back_write)]
        words += [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            words, pass_fds=(to_read, back_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_read)
        os.close(back_write)
        try:
            yield Browser(process, to_write, back_read)
        finally:
            process.kill()
            process.wait()
            os.close(to_write)
            os.close(back_read)
