"""What the tasks of `housekeeping` do: look up doubts, ask a person, take the answer, prove.

A question holds ids and times: no address, no amount. The answer goes where `duebook resolve` goes,
so a person in Airflow, one at a terminal, a look-up and a late result have one effect.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from duebook.airflow.failures import TaskRefused, one_clear_line

if TYPE_CHECKING:
    from duebook.db.connect import Connect
    from duebook.settings import Settings

log = logging.getLogger("duebook.airflow")

SENT: Final = "Sent"
NOT_SENT: Final = "Not sent"
LEAVE: Final = "Leave"
OPTIONS: Final = (SENT, NOT_SENT, LEAVE)
MOST_QUESTIONS: Final = 10
_MOST_LOOKED_UP: Final = 10_000
_NOT_ALL_SHOWN: Final = 100

_BODY: Final = """\
The provider may have accepted this message, and nobody knows. Find out there; never guess.

| | |
|---|---|
| account | `{account_id}` |
| channel, kind | {channel}, {kind} |
| why in doubt | `{cause}` since {since} |
| tried | attempt {attempt_no}, claimed {claimed_at}, batch {batch_id} of `{sender}` |
| Message-ID | `{message_id}` |

**Sent**: it was accepted; the key ends as sent. **Not sent**: it surely was not, so it is due
again at once, where its catch-up policy and its limit judge it. **Leave**: it stays in doubt, and
is asked about again in the next hour. What each cause means is in docs/in-doubt.md.
"""


@one_clear_line()
def look_up_doubts() -> dict[str, int]:
    """Ask whoever can know about what is in doubt; returns counts."""
    from duebook.services import operate

    connect, settings = _site()
    counts = operate.look_up_doubts(connect, settings, most=_MOST_LOOKED_UP)
    log.info("looked up: %s", json.dumps(counts))
    return counts


@one_clear_line()
def open_questions() -> list[dict[str, str]]:
    """What is still in doubt and could have been looked up, as questions: the oldest ten."""
    from duebook.services import operate

    connect, settings = _site()
    doubts = operate.doubts_in_full(connect, settings, look_up=False)["doubts"]
    ripe = [doubt for doubt in doubts if doubt["may_be_looked_up"]]
    if ripe:
        log.warning("%d keys are in doubt, %d are asked about", len(doubts), min(len(ripe), 10))
    return [make_question(doubt) for doubt in ripe[:MOST_QUESTIONS]]


def make_question(doubt: Mapping[str, Any]) -> dict[str, str]:
    """A doubt as `services.resolve.list_doubts` gives it, in the words of a question."""
    shown = {
        name: f"{value:%Y-%m-%d %H:%M:%S} UTC" if isinstance(value, datetime) else value
        for name, value in doubt.items()
    }
    return {
        "account_id": doubt["account_id"],
        "operation_key": doubt["operation_key"],
        "subject": f"In doubt: {doubt['operation_key']}",
        "body": _BODY.format_map(shown),
    }


@one_clear_line()
def apply_answer(
    account_id: str, operation_key: str, answer: Mapping[str, Any], run_id: str
) -> str:
    """End a doubt as a person said; returns what that did: sent, due, left, or had_ended.

    `answer` is what the operator of the question returns. Nobody's answer (the default, once its
    time is over) leaves the key in doubt.
    """
    from duebook.errors import RefusedError
    from duebook.services.resolve import Resolution, resolve

    chosen = "".join(answer["chosen_options"])
    person = answer.get("responded_by_user")
    if chosen == LEAVE or not person:
        return "left"
    if chosen not in OPTIONS:
        raise RefusedError(f"an answer is one of {', '.join(OPTIONS)}")
    connect, _ = _site()
    resolution = Resolution(
        operation_key=operation_key,
        accepted=chosen == SENT,
        why=f"answered in Airflow, {run_id}",
        by=person.get("name") or person["id"],
        account_id=account_id,
    )
    try:
        done = str(resolve(connect, resolution)["done"])
    except RefusedError as error:
        # Somebody or something was first; that is no failure of whoever answered.
        log.info("%s", error)
        return "had_ended"
    log.info("%s: %s, as %s said", operation_key, done, resolution.by)
    return done


@one_clear_line()
def keep_house() -> dict[str, int]:
    """Make partitions and let go what [retention] no longer keeps; returns counts.

    What could not be made is a warning, and the next hour's task.
    """
    from duebook.services.housekeeping import keep_house as keep
    from duebook.services.operate import load_configuration

    connect, settings = _site()
    report = keep(connect, load_configuration(settings).retention, dry_run=False)
    for each in report["partitions"]:
        level = logging.INFO if each["done"] == "made" else logging.WARNING
        log.log(level, "partition %s: %s", each["partition_name"], each["done"])
    return {
        "partitions": sum(each["done"] == "made" for each in report["partitions"]),
        "dropped": len(report["dropped"]),
        "webhook_bodies": report["webhook_bodies"],
    }


@one_clear_line()
def count_violations() -> dict[str, int]:
    """Prove the invariants; a red task names those that do not hold."""
    from duebook.services.check import check

    connect, _ = _site()
    document = check(connect)
    counts = {each["invariant"]: len(each["keys"]) for each in document["violations"]}
    if counts:
        named = "; ".join(f"{name}: {_number(count)}" for name, count in counts.items())
        log.error("`duebook check` finds violations: %s", named)
        raise TaskRefused(1)
    log.info("%d invariants hold", document["checked"])
    return {"checked": document["checked"], "violations": 0}


def _number(count: int) -> str:
    return f"{count} or more" if count >= _NOT_ALL_SHOWN else str(count)


def _site() -> tuple[Connect, Settings]:
    from duebook.airflow.hooks import connect_from_hook
    from duebook.settings import load_settings

    settings = load_settings()
    connect: Callable[[], Any] = connect_from_hook(settings.airflow_connection)
    return connect, settings
