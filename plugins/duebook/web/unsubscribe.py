"""The page that a message's unsubscribe link leads to: GET shows a form, POST acts (RFC 8058).

Mail programs post `List-Unsubscribe=One-Click`; a person presses a button of the form. Scanners
that follow links by GET change nothing. The page names the topic and nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Final, Protocol
from urllib.parse import parse_qsl

import jinja2
import structlog
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from duebook.errors import InputError, UnavailableError
from duebook.services.unsubscribe import ONE_CLICK, Topic, UnsubscribeLinks
from duebook.web.edge import TrustedProxies, is_protected

log = structlog.get_logger(__name__)

RETRY_AFTER_S: Final = 30
_MOST_BYTES: Final = 4096
_BODY_S: Final = 10.0
_HEADERS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
        "frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_PAGE: Final = jinja2.Environment(
    loader=jinja2.PackageLoader("duebook.web"), autoescape=True, auto_reload=False
)


class Leaving(Protocol):
    """Who records that a topic was left."""

    async def unsubscribe(self, topic: Topic, source: str) -> str:
        """`recorded` or `known`, after the commit. Raises UnavailableError."""
        ...


class _Refused(Exception):
    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


def add_unsubscribe(
    app: FastAPI, links: UnsubscribeLinks, store: Leaving, proxies: TrustedProxies
) -> None:
    """Serve `/unsubscribe/{token}` in `app`."""

    async def answer(token: str, request: Request) -> Response:
        try:
            if not is_protected(request, proxies):
                raise _Refused(403, "This page is served over HTTPS only.")
            topic = _topic(links, token)
            if request.method != "POST":
                return _form(topic)
            return await _leave(topic, request, store)
        except _Refused as refused:
            return _said("This did not work", str(refused), refused.status)
        except UnavailableError as error:
            log.error("unsubscribe not stored", reason=str(error))
            return _away()
        except Exception as error:
            log.error("unsubscribe not stored", reason=type(error).__name__)
            return _away()

    app.add_api_route("/unsubscribe/{token}", answer, methods=["GET", "HEAD", "POST"])


def _topic(links: UnsubscribeLinks, token: str) -> Topic:
    try:
        return links.read(token)
    except InputError:
        raise _Refused(404, "This link is not one of ours, or it is cut off.") from None


async def _leave(topic: Topic, request: Request, store: Leaving) -> Response:
    fields = await _fields(request)
    name, _, value = ONE_CLICK.partition("=")
    if fields.get(name) == value:
        source = "one_click"
    elif fields.get("topic") in ("this", "all"):
        source = "unsubscribe_page"
    else:
        raise _Refused(400, "The request names nothing to stop.")
    left = topic._replace(kind="*") if fields.get("topic") == "all" else topic
    verdict = await store.unsubscribe(left, source)
    log.info("unsubscribed", kind=left.kind, channel=left.channel, verdict=verdict)
    what = "" if left.kind == "*" else f" about {_spoken(left.kind)}"
    return _said("Done", f"You get no more messages{what} by {_spoken(left.channel)}.", 200)


async def _fields(request: Request) -> dict[str, str]:
    body = await _read(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        return dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=10))
    if kind != "multipart/form-data":
        raise _Refused(415, "The request is not a form.")

    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    parser = MultiPartParser(request.headers, stream(), max_files=0, max_fields=10)
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError):
        raise _Refused(400, "The form can't be read.") from None
    return {name: value for name, value in form.items() if not isinstance(value, UploadFile)}


async def _read(request: Request) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > _MOST_BYTES:
                    raise _Refused(413, "The request is too long.")
    except TimeoutError:
        raise _Refused(408, "The request did not come in time.") from None
    except ClientDisconnect:
        raise _Refused(400, "The request broke off.") from None
    return bytes(body)


def _form(topic: Topic) -> Response:
    values = {"topic": _spoken(topic.kind), "channel": _spoken(topic.channel)}
    return _page(200, title="Stop these messages?", **values)


def _said(title: str, said: str, status: int) -> Response:
    return _page(status, title=title, said=said)


def _away() -> Response:
    answer = _said("Please try again", "This can't be stored right now. Try again shortly.", 503)
    answer.headers["Retry-After"] = str(RETRY_AFTER_S)
    return answer


def _page(status: int, **values: str) -> Response:
    page = _PAGE.get_template("unsubscribe.html.jinja2").render(values)
    return HTMLResponse(page, status_code=status, headers=dict(_HEADERS))


def _spoken(name: str) -> str:
    return name.replace("_", " ")
