"""What an application calls in its own transaction is refused by field, never by a constraint."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

CALLS = {
    "pause_intents('some', '*', 'hold', 'r', 'me')": "scope: some; expected all, kind",
    "pause_intents(null, '*', 'hold', 'r', 'me')": "scope: empty; expected all, kind",
    "pause_intents('all', 'x', 'hold', 'r', 'me')": r"name: x; expected \* for all",
    "pause_intents('kind', '*', 'hold', 'r', 'me')": r"name: \*; expected \* for all",
    "pause_intents('kind', null, 'hold', 'r', 'me')": "name: empty; expected",
    "pause_intents('all', '*', 'stop', 'r', 'me')": "mode: stop; expected hold or drop",
    "pause_intents('all', '*', null, 'r', 'me')": "mode: empty; expected hold or drop",
    "cancel_schedule('a', 's', null, 'me')": "a cancellation states its reason and who cancels",
    "cancel_schedule('a', 's', 'r', null)": "a cancellation states its reason and who cancels",
    "create_hold('a', 'h', null, interval '1 hour', p_by => null)": "by: empty",
    "set_hold_resource('seats', 3, null)": "by: empty",
}


@pytest.mark.parametrize("call", CALLS)
def test_what_is_wrong_is_named_by_its_field(conn: psycopg.Connection[Any], call: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=CALLS[call]):
        conn.execute(f"select duebook.{call}".encode())
