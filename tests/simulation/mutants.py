"""Faults put into the product on purpose: each a few words changed in the real text.

A mutant that the histories do not notice says that they look away. Each names the file it changes
and what it changes there; where the text has moved on, applying it fails, so none is forgotten.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
import pytest

from duebook.db import sql
from duebook.services import deliver, flush, judge

_RESULT_IS_THERE: Final = re.compile(
    r"not exists \(\s*select\s+from duebook\.attempt_result as r\s+where\s+"
    r"r\.account_id = w\.account_id\s+and r\.intent_id = w\.intent_id\s+"
    r"and r\.attempt_no = w\.attempt_no\s*\)"
)
_LOOP_OF_RESCUE: Final = re.compile(r"    for v_batch in\n")
_SEEN_BEFORE = """\
    perform pg_catalog.set_config('sim.seen', coalesce((
        select pg_catalog.jsonb_agg(r.intent_id)::text
        from duebook.attempt_result as r
        inner join duebook.batch as b on r.batch_id = b.batch_id
    ), '[]'), true);
    perform pg_catalog.set_config('sim.ended', coalesce((
        select pg_catalog.jsonb_agg(o.intent_id)::text from duebook.outcome as o
    ), '[]'), true);
    for v_batch in
"""
_OUTCOME_IS_THERE: Final = "where i.account_id = u.account_id and i.intent_id = u.intent_id"
_OUTCOME_SEEN = (
    "where i.account_id = u.account_id and i.intent_id = u.intent_id"
    " and pg_catalog.current_setting('sim.ended')::jsonb @> pg_catalog.to_jsonb(i.intent_id)"
)
_NOT_SEEN = "not pg_catalog.current_setting('sim.seen')::jsonb @> pg_catalog.to_jsonb(w.intent_id)"


@dataclass(frozen=True, slots=True)
class Change:
    """In one text: what is written there (a text, or a pattern), and what is instead.

    `where` is a file under sql/functions, the name of a query, or module.function.
    """

    where: str
    old: str | re.Pattern[str]
    new: str

    def applied_to(self, text: str) -> str:
        """The changed text. Fails where there is nothing to change."""
        pattern = self.old if isinstance(self.old, re.Pattern) else re.compile(re.escape(self.old))
        changed, count = pattern.subn(lambda match: self.new, text)
        assert count, f"{self.where} has no such text any more: {self.old}"
        return changed


@dataclass(frozen=True, slots=True)
class Mutant:
    """A product with one fault."""

    name: str
    changes: tuple[Change, ...]


def _mutant(name: str, where: str, old: str | re.Pattern[str], new: str) -> Mutant:
    return Mutant(name, (Change(where, old, new),))


NAMED: Final = (
    _mutant("a flush without the token", "query:lock_batch", "and b.token = %(token)s::uuid", ""),
    _mutant(
        "a flush applied twice",
        "python:flush._apply",
        "if locked[0] == flush.follows:",
        "if locked[0] >= flush.follows:",
    ),
    Mutant(
        "a rescue in one statement",
        (
            Change("function:rescue_batches", "for update skip locked", "for update"),
            Change("function:rescue_batches", _LOOP_OF_RESCUE, _SEEN_BEFORE),
            Change("function:rescue_batch", _RESULT_IS_THERE, _NOT_SEEN),
            Change("function:rescue_batch", _OUTCOME_IS_THERE, _OUTCOME_SEEN),
        ),
    ),
    _mutant(
        "a claim without the fill pass",
        "function:claim_batch",
        "if pg_catalog.cardinality(v_picked) < v_limit then",
        "if v_backlog > v_limit and false then",
    ),
)
OTHERS: Final = (
    _mutant("a claim that fills only small backlogs", "function:claim_batch",
            "if pg_catalog.cardinality(v_picked) < v_limit then",
            "if v_backlog <= v_limit then"),
    _mutant("a claim that stops at a conflict", "function:claim_batch",
            re.compile(r"on conflict do nothing\s+returning a\.account_id"),
            "returning a.account_id"),
    _mutant("a claim that forgets to delete", "function:claim_batch",
            "delete from duebook.due as d where d.ctid = any(v_picked);", ""),
    _mutant("a claim that locks nothing", "function:claim_batch", "for update skip locked", ""),
    _mutant("a mark that does not move", "query:advance_batch",
            "mark = %(mark)s::integer", "mark = b.mark"),
    _mutant("a mark that moves after the I/O", "python:flush._advance",
            '"mark": flush.mark if is_open else mark', '"mark": flush.start if is_open else mark'),
    _mutant("a lease that is not renewed", "query:advance_batch",
            "when %(renew)s::boolean", "when false"),
    Mutant(
        "a late result that is ignored",
        (
            Change("function:record_late_results", "where l.result <> 'unknown'", "where false"),
            Change("function:record_late_results", "where l.is_answer", "where false"),
        ),
    ),
    _mutant("a late answer that leaves the row in due", "function:record_late_results",
            re.compile(r"delete from duebook\.due as d\s+using late as l\s+where "),
            "delete from duebook.due as d using late as l where false and "),
    _mutant("a rescue that calls all untried", "function:rescue_batch",
            "w.ordinal > p_batch.mark as is_untried", "true as is_untried"),
    _mutant("a rescue of every live batch", "function:rescue_batches",
            re.compile(r"b\.lease_until <= \(select pg_catalog\.clock_timestamp\(\)\)"), "true"),
    _mutant("a rescue that leaves the batch", "function:rescue_batches",
            "delete from duebook.batch as b where b.batch_id = v_batch.batch_id;", ""),
    _mutant("a repeat that is always safe", "function:rescue_batch",
            "u.repeat_until is null", "false"),
    _mutant("a release that moves nothing", "python:flush._close",
            "if flush.release_from is not None:", "if False:"),
    _mutant("a window that forgets requests", "query:read_window_facts",
            re.compile(r"where q\.account_id = w\.account_id and q\.intent_id = w\.intent_id"),
            "where false"),
    _mutant("a window that forgets late results", "query:read_window_facts",
            "and r.result = 'sent'", "and false"),
    _mutant("a cancel that forgets its request", "function:end_waiting_intents",
            re.compile(r"where\s+not g\.has_outcome\s+and not exists"),
            "where false and not exists"),
    _mutant("a retest that removes nothing", "function:retest_held",
            "j.verdict in ('due', 'gone')", "j.verdict in ('gone')"),
    _mutant("a sender that never looks at its lease", "python:deliver._WindowOfSends._may_start",
            "boottime() < self._window_end", "True"),
    _mutant("an answer of unknown that is tried again", "python:deliver.ending_of",
            'move = Move("in_doubt", code or "unknown", look_up_from=look_up_from)',
            'move = Move("due", "retry", due_at=now)'),
    Mutant(
        "an expiry that does not ask for confirmations",
        (
            Change(
                "function:expire_holds",
                "when h.confirmed_at is not null then 'settled_meanwhile'",
                "when false then 'settled_meanwhile'",
            ),
            Change(
                "function:expire_holds",
                re.compile(r"when exists \(\s*select\s+from duebook\.intent_request as q"),
                "when false and exists (select from duebook.intent_request as q",
            ),
        ),
    ),
    _mutant("a confirmation after the end", "function:settle_hold",
            "when v_state = 'open' then 'confirmed'",
            "when v_state in ('open', 'expired') then 'confirmed'"),
    _mutant("a payment that re-holds what is full", "function:settle_hold",
            "when duebook.has_room(v_resource, v_hold.quantity, v_now) then 'reheld'",
            "when true then 'reheld'"),
    _mutant("a window that forgets pauses", "python:judge.Policies.pause_of",
            'self._pauses.get(("kind", row.kind))', "None"),
    _mutant("a cancelled schedule that goes on", "query:pick_schedules",
            "and s.cancelled_at is null", ""),
)  # fmt: skip


@contextmanager
def applied(mutant: Mutant, conn: psycopg.Connection[Any]) -> Iterator[None]:
    """The product with this fault, and as it was afterwards."""
    with ExitStack() as stack:
        texts: dict[str, str] = {}
        for change in mutant.changes:
            before = texts.get(change.where) or _text(change.where)
            texts[change.where] = change.applied_to(before)
        for where, text in texts.items():
            stack.enter_context(_put(where, text, conn))
        yield


def _text(where: str) -> str:
    kind, _, name = where.partition(":")
    if kind == "function":
        return sql.script(f"functions/{name}.sql")
    if kind == "query":
        return sql.query(name)
    return textwrap.dedent(inspect.getsource(_python(name)[2]))


@contextmanager
def _put(where: str, text: str, conn: psycopg.Connection[Any]) -> Iterator[None]:
    kind, _, name = where.partition(":")
    if kind == "function":
        conn.execute(text)
        yield
        conn.execute(sql.script(f"functions/{name}.sql"))
        return
    with pytest.MonkeyPatch.context() as patch:
        if kind == "query":
            patch.setitem(sql._queries(), name, text)
        else:
            owner, attribute, function = _python(name)
            namespace = function.__globals__
            made: dict[str, Any] = {}
            code = compile(f"from __future__ import annotations\n{text}", f"<{name}>", "exec")
            exec(code, namespace, made)
            patch.setattr(owner, attribute, made[attribute])
        yield


def _python(name: str) -> tuple[Any, str, Any]:
    module, *path = name.split(".")
    owner: Any = {"deliver": deliver, "flush": flush, "judge": judge}[module]
    for part in path[:-1]:
        owner = getattr(owner, part)
    return owner, path[-1], getattr(owner, path[-1])
