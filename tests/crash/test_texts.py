"""SMS and a sender that is killed between Twilio's acceptance and its record."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duebook.services.check import check
from tests.crash.test_senders import lapse
from tests.doubt_work import connector
from tests.due_work import add_due, places
from tests.twilio_server import TwilioServer

pytestmark = pytest.mark.crash

Conn = psycopg.Connection[Any]
WINDOW = 10


def run_sender(url: str, server: TwilioServer, die_at: int) -> int:
    script = Path(__file__).parent / "texting_process.py"
    command = [sys.executable, str(script), url, server.url, str(die_at)]
    return subprocess.run(command, check=False, capture_output=True, timeout=60).returncode


@pytest.mark.parametrize("die_at", [1, 13])
def test_nobody_gets_a_text_twice_and_at_most_a_window_is_in_doubt(
    conn: Conn, database_url: str, die_at: int
) -> None:
    add_due(conn, 30, accounts=30, channel="sms")
    conn.execute("update duebook.contact set address = '+15005550' || right(account_id, 3)")
    with TwilioServer() as server:
        assert run_sender(database_url, server, die_at) == -signal.SIGKILL
        lapse(conn)
        assert run_sender(database_url, server, 0) == 0
    stand = places(conn)
    # Twilio knows no repeat: what may have been made waits for a person.
    assert 1 <= stand["in_doubt"] <= WINDOW
    assert stand["outcome"] == 30 - stand["in_doubt"]
    made = Counter(sms.to for sms in server.made)
    assert max(made.values()) == 1
    sent = {sid for (sid,) in conn.execute("select provider_message_id from duebook.outcome")}
    assert sent <= {sms.sid for sms in server.made}
    assert check(connector(database_url))["violations"] == []
