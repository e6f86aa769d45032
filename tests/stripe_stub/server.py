"""The stub over HTTP: routes, form bodies, idempotency, failures on demand, and its controls."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Literal

from aiohttp import web

from tests.stripe_stub.books import Books, Json, StripeRefusal

KINDS = {
    "balance_transactions": "balance_transaction",
    "charges": "charge",
    "disputes": "dispute",
    "payment_intents": "payment_intent",
    "payouts": "payout",
    "refunds": "refund",
}


@dataclass(slots=True)
class Failure:
    """Spoil the next `times` requests whose path starts so, after letting `skip` of them through.

    `drop` closes the connection before the answer, `drop_body` in the middle of it, `garbage`
    answers 200 with no JSON.
    """

    kind: Literal["429", "500", "drop", "drop_body", "garbage"]
    path: str = "/v1/"
    times: int = 1
    skip: int = 0
    retry_after: str | None = None


class StripeStub:
    """Runs the stub in a thread of this process; `books` may be used under `lock`."""

    def __init__(
        self,
        *,
        now: datetime | None = None,
        settle_after: timedelta = timedelta(days=2),
        payouts_daily: bool = True,
        port: int = 0,
        seed: int = 0,
    ) -> None:
        self.books = Books(
            now=now, settle_after=settle_after, payouts_daily=payouts_daily, seed=seed
        )
        self.lock = threading.RLock()
        self.requests: list[str] = []
        self.before: list[Callable[[str], None]] = []
        self._failures: list[Failure] = []
        self._replays: dict[str, tuple[int, Json]] = {}
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="stripe-stub", daemon=True)
        self._ready = threading.Event()
        self._trouble: BaseException | None = None

    @property
    def address(self) -> str:
        """Where it listens, once started."""
        return f"http://127.0.0.1:{self._port}"

    def fail(self, failure: Failure) -> None:
        """Queue a failure."""
        self._failures.append(failure)

    def __enter__(self) -> StripeStub:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Listen; raises OSError when the port is taken."""
        self._thread.start()
        if not self._ready.wait(timeout=20):
            raise TimeoutError("the stub did not start")
        if self._trouble is not None:
            raise self._trouble

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=20)

    def wait(self) -> None:
        """Block until stopped."""
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        runner = web.AppRunner(self._app(), access_log=None, shutdown_timeout=0.1)
        try:
            self._loop.run_until_complete(runner.setup())
            site = web.TCPSite(runner, "127.0.0.1", self._port)
            self._loop.run_until_complete(site.start())
            self._port = runner.addresses[0][1]
            self._ready.set()
            self._loop.run_forever()
        except Exception as error:
            # Raised again in the thread that starts or stops it.
            self._trouble = error
            self._ready.set()
        finally:
            self._loop.run_until_complete(runner.cleanup())
            self._loop.close()

    def _app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/v1/{tail:.*}", self._handle)
        app.router.add_post("/_stub/{verb}", self._control)
        return app

    # -- Stripe's side ------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        form = _tree(list((await request.post()).items()))
        query = _tree(list(request.query.items()))
        failure = self._next_failure(request.path)
        if failure is not None and failure.kind != "drop_body":
            return self._spoil(request, failure)
        for hook in self.before:
            hook(request.path_qs)
        key = request.headers.get("Idempotency-Key", "") if request.method == "POST" else ""
        with self.lock:
            self.requests.append(f"{request.method} {request.path_qs}")
            replayed = self._replays.get(key) if key else None
            status, body = replayed or self._answer(request, form, query)
            if key:
                self._replays[key] = (status, body)
        if failure is not None:
            return await _half(request, body)
        return web.json_response(body, status=status, headers={"Request-Id": "req_stub"})

    def _answer(self, request: web.Request, form: Json, query: Json) -> tuple[int, Json]:
        if not _key_of(request).startswith("sk_"):
            return 401, {"error": {"type": "invalid_request_error", "message": "Invalid API Key"}}
        self.books.catch_up()
        parts = request.path.strip("/").split("/")[1:]
        expand = (query if request.method == "GET" else form).pop("expand", [])
        try:
            body = self._read(parts, query) if request.method == "GET" else self._write(parts, form)
            return 200, _public(self.books.expanded(body, expand))
        except StripeRefusal as refusal:
            return refusal.status, refusal.body

    def _read(self, parts: Sequence[str], query: Json) -> Json:
        kind = KINDS.get(parts[0])
        if kind is None:
            raise StripeRefusal(404, "Unrecognized request URL")
        if len(parts) == 1:
            return self.books.listed(kind, f"/v1/{parts[0]}", query)
        return self.books.get(kind, parts[1])

    def _write(self, parts: Sequence[str], form: Json) -> Json:
        match parts:
            case ["payment_methods"]:
                return self.books.create_payment_method(form["card"]["number"])
            case ["charges"]:
                return self.books.create_charge(
                    method=form.get("source") or form.get("payment_method", ""), **_charged(form)
                )
            case ["charges", charge, "capture"]:
                return self.books.capture(charge, _number(form, "amount"))
            case ["payment_intents"]:
                return self.books.create_payment_intent(
                    method=form.get("payment_method", ""), **_charged(form)
                )
            case ["payment_intents", intent, "capture"]:
                amount = _number(form, "amount_to_capture")
                return self.books.capture_payment_intent(intent, amount)
            case ["refunds"]:
                return self.books.refund(
                    self._charge_of(form), _number(form, "amount"), form.get("metadata")
                )
            case ["disputes", dispute]:
                return self.books.update_dispute(dispute, form.get("evidence", {}))
            case ["disputes", dispute, "close"]:
                return self.books.close_dispute(dispute)
            case ["payouts"]:
                return self.books.create_payout(
                    amount=int(form["amount"]), currency=form["currency"]
                )
        raise StripeRefusal(404, "Unrecognized request URL")

    def _charge_of(self, form: Json) -> str:
        if "charge" in form:
            return str(form["charge"])
        intent = self.books.get("payment_intent", form.get("payment_intent", ""))
        return str(intent["latest_charge"])

    # -- failures and controls ----------------------------------------------------------------

    def _next_failure(self, path: str) -> Failure | None:
        for failure in self._failures:
            if not path.startswith(failure.path) or failure.times == 0:
                continue
            if failure.skip > 0:
                failure.skip -= 1
                continue
            failure.times -= 1
            return failure
        return None

    def _spoil(self, request: web.Request, failure: Failure) -> web.Response:
        self.requests.append(f"{failure.kind} {request.path_qs}")
        if failure.kind == "drop":
            if request.transport is not None:
                request.transport.close()
            return web.Response()
        if failure.kind == "garbage":
            return web.Response(text="<html>a proxy's page</html>")
        status = int(failure.kind)
        headers = {"Request-Id": "req_stub"}
        if failure.retry_after is not None:
            headers["Retry-After"] = failure.retry_after
        error = {"type": "api_error", "message": f"told to answer {status}"}
        return web.json_response({"error": error}, status=status, headers=headers)

    async def _control(self, request: web.Request) -> web.Response:
        """`clock` {now: ISO | null} · `advance` {seconds} · `failures` {kind, …} · `payouts` {} ·
        `complete_payout`, `fail_payout`, `fail_refund`, `dispute` {id}.
        """
        told: Json = json.loads(await request.text() or "{}")
        with self.lock:
            try:
                return web.json_response(self._do(request.match_info["verb"], told))
            except StripeRefusal as refusal:
                return web.json_response(refusal.body, status=refusal.status)

    def _do(self, verb: str, told: Json) -> Json:
        books = self.books
        if verb == "clock":
            now = told.get("now")
            books.set_clock(None if now is None else int(datetime.fromisoformat(now).timestamp()))
        elif verb == "advance":
            books.set_clock(books.clock.now() + int(told["seconds"]))
        elif verb == "failures":
            self.fail(Failure(**told))
        elif verb == "payouts":
            return {"payouts": [payout["id"] for payout in books.run_payouts()]}
        elif verb in ("complete_payout", "fail_payout", "fail_refund", "dispute"):
            changed: Json = getattr(books, verb)(told["id"])
            return {"id": changed["id"]}
        else:
            raise StripeRefusal(404, f"no control {verb}")
        return {"now": books.clock.now()}


def _charged(form: Json) -> Json:
    """What a charge and a payment intent are told alike."""
    amount = _number(form, "amount")
    if amount is None or amount <= 0:
        raise StripeRefusal(400, "Invalid integer", param="amount")
    manual = form.get("capture_method") == "manual" or form.get("capture") == "false"
    return {
        "amount": amount,
        "currency": str(form.get("currency", "")).lower(),
        "capture": not manual,
        "metadata": form.get("metadata"),
        "email": form.get("receipt_email"),
    }


def _number(form: Json, name: str) -> int | None:
    value = form.get(name)
    if value is None:
        return None
    if not re.fullmatch(r"-?\d+", str(value)):
        raise StripeRefusal(400, f"Invalid integer: {value}", param=name)
    return int(value)


def _key_of(request: web.Request) -> str:
    kind, _, value = request.headers.get("Authorization", "").partition(" ")
    if kind == "Basic":
        return base64.b64decode(value).decode().partition(":")[0]
    return value if kind == "Bearer" else ""


def _public(body: Json) -> Json:
    """Without what only the stub knows."""
    return {name: value for name, value in body.items() if not name.startswith("_")}


def _tree(pairs: Sequence[tuple[str, Any]]) -> Json:
    """`created[gte]=1`, `expand[0]=x` and `card[number]=4` as a tree; numbered keys as a list."""
    root: Json = {}
    for name, value in pairs:
        head, *rest = re.findall(r"[^\[\]]+", name)
        node, keys = root, [head, *rest]
        for key in keys[:-1]:
            node = node.setdefault(key, {})
        node[keys[-1]] = value
    return {name: _lists(value) for name, value in root.items()}


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(key.isdigit() for key in value):
        return [_lists(value[key]) for key in sorted(value, key=int)]
    return {key: _lists(inner) for key, inner in value.items()}


async def _half(request: web.Request, body: Json) -> web.StreamResponse:
    """Announce the whole body, send half of it, and hang up."""
    whole = json.dumps(body).encode()
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(whole)
    await response.prepare(request)
    await response.write(whole[: len(whole) // 2])
    if request.transport is not None:
        request.transport.close()
    return response
