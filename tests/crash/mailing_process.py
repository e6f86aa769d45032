"""One sender as a process of its own that mails through a real SMTP server until it is told to end.

    mailing_process.py URL PORT SENDER LEASE WINDOW BATCH

Sweeps again and again, as the DAG would. Prints one JSON line a sweep: its report, or `{"away": n}`
when the database could not be reached. SIGTERM ends it after what it has in hand.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from datetime import timedelta
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plugins"))

from duebook.channels.email import EmailChannel, EmailOptions
from duebook.db.connect import connect_url
from duebook.errors import UnavailableError
from duebook.services.sweep import SweepRequest, sweep


def main() -> None:
    url, port, sender, lease, window, batch = sys.argv[1:]
    ended = threading.Event()
    options = EmailOptions(
        host="127.0.0.1",
        port=int(port),
        security="plain",
        sender="notices@example.test",
        io_timeout=timedelta(seconds=10),
        local_hostname="sender.example.test",
    )
    request = SweepRequest(
        environment="test",
        sender=sender,
        batch_size=int(batch),
        lease=timedelta(seconds=float(lease)),
        window_messages=int(window),
        should_stop=ended.is_set,
    )
    signal.signal(signal.SIGTERM, lambda number, frame: ended.set())

    def work() -> None:
        while not ended.is_set():
            channels = {"email": EmailChannel(options)}
            try:
                report = sweep(partial(connect_url, url, autocommit=True), request, channels)
                print(json.dumps(report.to_json()), flush=True)
            except UnavailableError:
                print(json.dumps({"away": 1}), flush=True)
            ended.wait(0.2)

    # In the main thread each sweep would take the signal for itself, and the next one go on.
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()


if __name__ == "__main__":
    main()
