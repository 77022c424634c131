"""``pzos dashboard FOLDER``: the studies of a folder as a local web page; people answer there (extra ``dashboard``).

The server listens on this machine only. The address holds a token that is drawn at each start; a browser that came with
it is given a cookie, and without either nothing is shown. A page of another site cannot reach it: the name of the host
is checked (a foreign name that points here is refused), and every form holds a secret of its own. Without ``--answer``
nothing can be changed.
"""

from __future__ import annotations

import argparse
import contextlib
import hmac
import secrets
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote

import numpy as np

from pzos.base.checks import Faults, whole
from pzos.base.errors import MissingExtra, PzosError
from pzos.cli.desk import Answered, Desk, Entry
from pzos.report.charts import bundle
from pzos.report.page import page_template
from pzos.report.story import Story

_LOOPBACK = "127.0.0.1"
_PORT = whole(0, "0 takes any that is free")
_LONGEST_FORM = 1 << 20
#: Room around a curve, in a picture of 600 by 150.
_WIDE, _HIGH, _EDGE = 600.0, 150.0, 4.0
_POINTS = 400
#: The last answers are listed, each with a form to take it back.
_ANSWERS = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``pzos dashboard``."""
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER", help="where the studies are")
    parser.add_argument("--answer", action="store_true", help="let answers be told and taken back there")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the port to listen on (any that is free)")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    faults = Faults("dashboard")
    faults.check(args.folder.is_dir(), "FOLDER", str(args.folder), "a folder with studies", "check the path")
    _PORT.note(faults, "--port", args.port)
    faults.check(args.port < 1 << 16, "--port", args.port, "a port below 65536", "leave it out")
    faults.raise_if_any()
    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtra("uvicorn", "dashboard", "pzos dashboard") from error
    token = secrets.token_urlsafe(24)
    with contextlib.closing(socket.create_server((_LOOPBACK, args.port))) as listening:
        port = listening.getsockname()[1]
        desk = Desk(args.folder)
        app = application(desk, token, port, may_answer=args.answer)
        sys.stdout.write(f"http://{_LOOPBACK}:{port}/?token={token}\n")
        sys.stdout.write("open this address in a browser on this machine; end with Ctrl-C\n")
        sys.stdout.flush()
        threading.Thread(target=_warm, args=[desk], daemon=True).start()
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
        uvicorn.Server(config).run(sockets=[listening])
    return 0


def _warm(desk: Desk) -> None:
    """Read the studies and load what draws reports, so that the first page opens as fast as the others."""
    desk.look_around()
    with contextlib.suppress(MissingExtra):
        bundle()


def application(desk: Desk, token: str, port: int, *, may_answer: bool = False) -> Any:
    """Return the web application; ``token`` opens it."""
    try:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.middleware.base import BaseHTTPMiddleware
        from starlette.routing import Route
    except ImportError as error:
        raise MissingExtra("starlette", "dashboard", "pzos dashboard") from error
    pages = _Pages(desk, _Door(token, port), may_answer)
    routes = [
        Route("/", pages.folder),
        Route("/live", pages.live_folder),
        Route("/study/{name}", pages.study),
        Route("/study/{name}/live", pages.live_study),
        Route("/study/{name}/report", pages.report),
        Route("/study/{name}/open.csv", pages.form),
        *(Route(f"/study/{{name}}/{what}", pages.change, methods=["POST"]) for what in ("tell", "untell", "ask")),
    ]
    return Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, dispatch=pages.door.guard)])


class _Door(NamedTuple):
    """Who is let in: those who know the token, by the name of this machine; compared in constant time."""

    token: str
    port: int

    @property
    def cookie(self) -> str:
        """Return the cookie's name: browsers do not tell the ports of a machine apart."""
        return f"pzos-{self.port}"

    @property
    def form(self) -> str:
        """Return the secret that every form holds."""
        return hmac.new(self.token.encode(), b"form", "sha256").hexdigest()

    def is_own(self, host: str) -> bool:
        """Tell whether a request names this machine as its host."""
        return host in (f"{_LOOPBACK}:{self.port}", f"localhost:{self.port}")

    def knows(self, given: str | None, secret: str) -> bool:
        """Tell whether what was given is the secret, in a time that does not depend on where they differ."""
        return given is not None and hmac.compare_digest(given.encode(), secret.encode())

    async def guard(self, request: Any, go_on: Callable[[Any], Awaitable[Any]]) -> Any:
        """Refuse strangers; put the token of the address into a cookie, and off the address."""
        from starlette.responses import PlainTextResponse, RedirectResponse

        given = request.query_params.get("token")
        if not self.is_own(request.headers.get("host", "")):
            response = PlainTextResponse("This is not the name of the dashboard.\n", 400)
        elif self.knows(given, self.token) and request.method == "GET":
            response = RedirectResponse(f"/{request.url.path.lstrip('/')}", 303)  # never to another host
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="lax")
        elif not self.knows(request.cookies.get(self.cookie), self.token):
            response = PlainTextResponse("The token is wrong: open the address that pzos dashboard printed.\n", 403)
        else:
            response = await go_on(request)
        response.headers.setdefault("Content-Security-Policy", "default-src 'none'")
        response.headers["Cache-Control"] = "no-store"
        response.headers["Referrer-Policy"] = "same-origin"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


class _Pages(NamedTuple):
    """What is shown at each address."""

    desk: Desk
    door: _Door
    may_answer: bool

    def folder(self, request: Any) -> Any:
        """All studies."""
        title = f"Studies in {self.desk.folder.resolve().name}"
        return self._page(title=title, studies=self._studies())

    def live_folder(self, request: Any) -> Any:
        """All studies, as they are now."""
        return self._page(part="folder", studies=self._studies())

    def study(self, request: Any) -> Any:
        """One study: how far it is, its open queries as forms, its answers."""
        done = {"told": "The answer to query {} was taken.", "untold": "The answer to query {} was taken back.",
                "asked": "One more query was handed out."}  # fmt: skip
        what, _, address = request.query_params.get("done", "").partition("-")
        plain = address.replace(".", "").isdecimal() or what == "asked"
        return self._study(request, said=done[what].format(address) if what in done and plain else "")

    def live_study(self, request: Any) -> Any:
        """How far one study is now."""
        entry = self._entry(request)
        study = self._about(entry)
        return self._page(part="study", study=study, headers={"x-open": study.get("addresses", "")})

    def report(self, request: Any) -> Any:
        """The report of one study."""
        from starlette.responses import HTMLResponse

        entry = self._entry(request)
        try:
            text = self.desk.report(entry)
        except PzosError as error:
            return self._study(request, said=str(error), status=409)
        policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})

    def form(self, request: Any) -> Any:
        """The open queries of one study as CSV."""
        from starlette.responses import PlainTextResponse

        entry = self._entry(request)
        kept = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(entry.path.stem)}.csv"}
        return PlainTextResponse(self.desk.form(entry), media_type="text/csv", headers=kept)

    async def change(self, request: Any) -> Any:
        """Take an answer, take one back, or hand out a query; then show the study again."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import PlainTextResponse

        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _LONGEST_FORM:
                return PlainTextResponse("The form is too long.\n", 413)
        given = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        own = request.headers.get("origin") in (None, f"http://{request.headers.get('host')}")
        if not own or not self.door.knows(given.get("form"), self.door.form):
            return PlainTextResponse("The form is not one of this dashboard: open its page again.\n", 403)
        if not self.may_answer:
            return PlainTextResponse("Nothing can be changed here: start pzos dashboard --answer.\n", 403)
        return await run_in_threadpool(self._changed, request, given)

    def _changed(self, request: Any, given: dict[str, str]) -> Any:
        from starlette.responses import RedirectResponse

        entry = self._entry(request)
        what = request.url.path.rsplit("/", 1)[-1]
        try:
            if what == "tell":
                done = f"told-{self.desk.tell(entry, given)}"
            elif what == "untell":
                done = f"untold-{self.desk.take_back(entry, given)}"
            else:
                self.desk.hand_out(entry)
                done = "asked-"
        except Answered as error:
            return self._study(request, said=str(error), status=409)
        except PzosError as error:
            return self._study(request, said=f"Nothing was taken. {error}", status=422, kept=given)
        return RedirectResponse(f"/study/{quote(entry.name)}?done={done}", 303)

    # ---- what the template is given ---------------------------------------------------------------------------

    def _entry(self, request: Any) -> Entry:
        from starlette.exceptions import HTTPException

        entry = self.desk.entry(request.path_params["name"])
        if entry is None:
            raise HTTPException(404, "There is no such study in this folder.")
        return entry

    def _studies(self) -> list[dict[str, Any]]:
        return [self._about(entry) for entry in self.desk.entries()]

    def _about(self, entry: Entry) -> dict[str, Any]:
        """Return what is shown of a study; what cannot be opened is shown with the reason."""
        found: dict[str, Any] = {
            "name": entry.name, "title": entry.name, "fault": entry.fault, "state": "", "open": [], "story": None,
            "curve": None, "addresses": "", "described": entry.description is not None, "in_any_order": False,
        }  # fmt: skip
        if entry.fault:
            return found
        if not entry.path.exists():
            return found | {"fault": f"not begun yet: pzos init {entry.name}"}
        try:
            story, queries = self.desk.story(entry), self.desk.open_queries(entry)
        except (PzosError, OSError) as error:
            return found | {"fault": str(error)}
        settings = {} if entry.description is None else entry.description.settings
        return found | {
            "title": f"{story.name} ({entry.name})", "state": f"{story.status}.", "open": queries, "story": story,
            "curve": _curve(story), "addresses": " ".join(f"{one.address}:{one.point}" for one in queries)[:4096],
            "in_any_order": settings.get("order") == "told",
        }  # fmt: skip

    def _study(self, request: Any, *, said: str = "", status: int = 200, kept: dict[str, str] | None = None) -> Any:
        entry = self._entry(request)
        study = self._about(entry)
        answers = [] if study["fault"] else self.desk.answers(entry)
        study |= {
            "answers": answers[:_ANSWERS],
            "told": f"{len(answers):,}" if len(answers) > _ANSWERS else len(answers),
        }
        return self._page(title=study["title"], study=study, said=said, kept=kept or {}, status=status)

    def _page(self, *, status: int = 200, headers: dict[str, str] | None = None, **told: Any) -> Any:
        from starlette.responses import HTMLResponse

        nonce = secrets.token_urlsafe(16)
        given = {"part": "", "said": "", "kept": {}, "form": self.door.form, "may_answer": self.may_answer} | told
        text = page_template("dashboard.html.j2").render(nonce=nonce, **given)
        policy = (
            f"default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; connect-src 'self'; "
            "img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        )
        return HTMLResponse(text, status, headers={"Content-Security-Policy": policy} | (headers or {}))


def _curve(story: Story) -> dict[str, str] | None:
    """Return the course of F as points of a picture, with the numbers that belong beside it."""
    values, queries = story.curve.values, story.curve.queries
    if not values.size:
        return None
    best = story.curve.best(story.sense)
    shown = np.unique(np.linspace(0, values.size - 1, min(values.size, _POINTS)).astype(int))
    low, high = float(values.min()), float(values.max())
    across = queries[shown] / max(float(queries[-1]), 1.0) * _WIDE
    lines = {}
    for name, numbers in (("each", values), ("best", best)):
        part = (numbers[shown] - low) / (high - low) if high > low else np.full(shown.size, 0.5)
        down = _HIGH - _EDGE - (_HIGH - 2.0 * _EDGE) * part
        points = [(x, y) for x, y in zip(across, down, strict=True)]
        lines[name] = " ".join(
            f"{x:.1f},{y:.1f}" for x, y in ([(0.0, points[0][1])] if len(points) == 1 else []) + points
        )
    return lines | {
        "top": story.amount(high), "bottom": story.amount(low), "first": story.amount(values[0]),
        "last": story.amount(best[-1]),
        "queries": f"{int(queries[-1]):,}",
    }  # fmt: skip
