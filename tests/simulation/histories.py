"""Histories: what happens, in which order, drawn from a seed; and the shortest one that fails.

A history is data: a setup and a list of deeds, each a name and numbers. A number that names a
process or a key counts among those there are, so any part of a history is a history too, and a
failing one can be shortened by leaving deeds out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import psycopg

from tests.simulation import actors
from tests.simulation.actors import Actor
from tests.simulation.model import Hold, ViolationError
from tests.simulation.provider import ANSWERS
from tests.simulation.wires import Wire
from tests.simulation.world import ACCOUNTS, CHANNELS, MOST_SWEEPS, Setup, World

Deed = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class History:
    """What happens after the setup, one deed after the other."""

    seed: int
    setup: Setup
    deeds: tuple[Deed, ...]

    def __str__(self) -> str:
        deeds = "".join(f"\n    {deed!r}," for deed in self.deeds)
        return f"History(\n    seed={self.seed},\n    setup={self.setup!r},\n    deeds=({deeds}\n))"


# ---- the deeds --------------------------------------------------------------------------------


def _promise(world: World, count: int, due_in: float, give_up_in: float) -> None:
    world.promise(count, due_in=due_in, give_up_in=give_up_in)


def _sweep(world: World, offset: float) -> None:
    """A wake. It may come twice, or come while others work."""
    if len(_sweeps(world)) < MOST_SWEEPS:
        world.start_sweep(offset)


def _run(world: World, which: int, steps: int) -> None:
    actor = _pick(_sweeps(world), which)
    if actor is not None:
        world.move(actor, actors.after(steps))


def _to_send(world: World, which: int) -> None:
    """Up to the next moment before, or after, the provider is asked."""
    actor = _pick(_sweeps(world), which)
    if actor is not None:
        was = actor.is_waiting_for_io
        world.move(actor, lambda each: each.is_waiting_for_io != was or each.is_waiting_for_io)


def _to_claim(world: World, which: int) -> None:
    """Up to the next claim, done and not yet committed."""
    actor = _pick(_sweeps(world), which)
    if actor is not None:
        world.move_to_claim(actor)


def _to_statement(world: World, which: int, name: str) -> None:
    actor = _pick(_sweeps(world), which)
    if actor is not None:
        world.move_to_statement(actor, name)


def _to_rest(world: World, which: int) -> None:
    actor = _pick(_sweeps(world), which)
    if actor is not None:
        world.move(actor, actors.never)


def _crash(world: World, which: int) -> None:
    actor = _pick(_living(world), which)
    if actor is not None:
        world.crash(actor)


def _stop(world: World, which: int) -> None:
    actor = _pick(_sweeps(world), which)
    if actor is not None:
        actor.wants_stop = True


def _lose(world: World, which: int, is_after: int) -> None:
    """The connection breaks at the next round trip, before it arrives or before its answer."""
    actor = _pick(_living(world), which)
    if actor is not None:
        actor.fault = "lose_after" if is_after else "lose_before"


def _restart(world: World, away: int, is_after: int) -> None:
    """The server restarts: every connection breaks, and for a while none can be made."""
    world.away = away
    for number, actor in enumerate(_living(world)):
        actor.fault = "lose_after" if (is_after >> number) & 1 else "lose_before"


def _fail_over(world: World, which: int) -> None:
    """A claim is committed on a server that is lost with it; ids are given out again."""
    actor = _pick(_sweeps(world), which)
    if actor is not None:
        world.fail_over_at_claim(actor)


def _pass(world: World, seconds: float) -> None:
    world.pass_time(timedelta(seconds=seconds))


def _answer(world: World, *words: int) -> None:
    for provider in world.providers.values():
        provider.script.extend(ANSWERS[word % len(ANSWERS)] for word in words)


def _cancel(world: World, which: int) -> None:
    key, account = world.key(which)

    def work(wire: Wire) -> Any:
        row = wire.execute(
            "select duebook.cancel_intent(%s, %s, 'model', 'model')", [account, key]
        ).fetchone()
        return None if row is None else row[0]

    world.ask("cancel", work, lambda answer: world.model.ask_to_end(key, answer != "ended"))


def _supersede(world: World, which: int) -> None:
    key, account = world.key(which)

    def work(wire: Wire) -> Any:
        row = wire.execute(
            """
            select e.done
            from duebook.intent as i
            cross join lateral duebook.end_waiting_intents(
                array[i.account_id], array[i.intent_id], 'supersede', 'superseded', 'model', 'model'
            ) as e
            where i.account_id = %s and i.operation_key = %s
            """,
            [account, key],
        ).fetchone()
        return None if row is None else row[0]

    world.ask("supersede", work, lambda answer: world.model.ask_to_end(key, answer != "had_ended"))


def _resolve(world: World, which: int) -> None:
    """A person looks into the provider's log, or guesses, and says how a doubt ends."""
    doubts = [key for key, at in world.model.standing.items() if at.places == ("in_doubt",)]
    if not doubts:
        return
    key = doubts[which % len(doubts)]
    knows = which % 4 != 3
    says_sent = bool(world.model.accepted[key]) is knows
    if says_sent:
        world.model.vouch(key)
    else:
        # Whoever had it in the air may still be asleep, so right or wrong it may be sent again.
        world.model.pardon(key)
    world.ask(
        "resolve",
        lambda wire: wire.execute(
            "select r.done from duebook.intent as i cross join lateral duebook.resolve_in_doubt("
            " array[i.account_id], array[i.intent_id], %s, null, 'person', 'model', 'model') as r"
            " where i.operation_key = %s",
            [says_sent, key],
        ).fetchone(),
        lambda answer: None,
    )


def _opt_out(world: World, which: int) -> None:
    _, account = world.key(which)

    def work(wire: Wire) -> Any:
        wire.execute(
            "insert into duebook.consent (account_id, kind, channel, granted, source)"
            " values (%s, '*', '*', false, 'model') on conflict do nothing",
            [account],
        )

    world.ask("opt_out", work, lambda answer: world.model.silence(account))


def _lose_contact(world: World, which: int) -> None:
    _, account = world.key(which)
    world.ask(
        "contact",
        lambda wire: wire.execute("delete from duebook.contact where account_id = %s", [account]),
        lambda answer: None,
    )


def _find_contacts(world: World) -> None:
    world.give_contacts()


def _double(world: World) -> None:
    """The next flush is delivered twice."""
    world.doubles_next_flush = True


def _miscount(world: World, which: int) -> None:
    """Somebody meddles: a due row forgets how often it was claimed."""
    world.miscount(which)


def _break_text(world: World, which: int) -> None:
    """The notice of one payment can't be written, until somebody mends its currency."""
    key, _ = world.key(which)
    world.set_currency("ZZZ", key)


def _mend_texts(world: World) -> None:
    world.set_currency("EUR", None)


def _account(world: World, which: int) -> str:
    return f"a{which % ACCOUNTS:06}"


def _pause(world: World, which: int, drops: int) -> None:
    kind, channel, account = world.kind, world.setup.channel, _account(world, which)
    scopes = (("all", "*"), ("kind", kind), ("channel", channel), ("account", account))
    scope = scopes[which % len(scopes)]
    mode = "drop" if drops else "hold"
    world.ask(
        "pause",
        lambda wire: wire.execute(
            "select duebook.pause_intents(%s, %s, %s, 'model', 'model')", [*scope, mode]
        ),
        lambda answer: world.model.pauses.add(scope),
    )


def _resume(world: World, which: int) -> None:
    if world.model.pauses:
        scope = sorted(world.model.pauses)[which % len(world.model.pauses)]
        world.model.pauses.discard(scope)
        world.ask(
            "resume",
            lambda wire: wire.execute(
                "select * from duebook.resume_intents(%s, %s, 'model', 'model')", scope
            ),
            lambda answer: None,
        )


def _hold(world: World, which: int, seconds: float) -> None:
    """A reservation of the one resource that there is too little of."""
    account, name = _account(world, which), f"h{len(world.model.holds) + 1}"
    hold = Hold(world.clock + seconds)
    world.model.holds[name] = hold

    def work(wire: Wire) -> Any:
        try:
            wire.execute(
                "select * from duebook.create_hold(%s, %s, p_for => %s, p_resource => 'room',"
                " p_payment_id => %s, p_by => 'model')",
                [account, name, timedelta(seconds=seconds), f"p-{name}"],
            )
        except psycopg.errors.CheckViolation:
            return "full"
        return "held"

    world.ask("hold", work, lambda answer: None)


def _confirm(world: World, which: int, pays: int) -> None:
    _ask_hold(
        world,
        which,
        "select duebook.confirm_hold(h.account_id, h.hold,"
        f" {'h.payment_id' if pays else 'null'}, 'model') from duebook.hold as h where h.hold = %s",
    )


def _cancel_hold(world: World, which: int) -> None:
    _ask_hold(
        world,
        which,
        "select duebook.cancel_hold(h.account_id, h.hold, 'model', 'model')"
        " from duebook.hold as h where h.hold = %s",
        "cancelled",
    )


def _ask_hold(world: World, which: int, statement: str, *answers: str) -> None:
    if not world.model.holds:
        return
    name = sorted(world.model.holds)[which % len(world.model.holds)]

    def work(wire: Wire) -> Any:
        row = wire.execute(statement, [name]).fetchone()
        return None if row is None else row[0]

    def note(answer: Any) -> None:
        if answer is not None and (not answers or answer in answers):
            world.model.answer_hold(name, answer, world.clock)

    world.ask("ask_hold", work, note)


def _schedule(world: World, which: int, seconds: float) -> None:
    """A daily reminder from so many seconds on, written ahead by whatever sweep comes first."""
    world.schedules += 1
    name = f"s{world.schedules}"
    world.ask(
        "schedule",
        lambda wire: wire.execute(
            "select duebook.put_schedule(%s, %s, 'reminder', 'weekly', 'UTC',"
            " date_trunc('minute', clock_timestamp() at time zone 'UTC' + %s)::time,"
            " 'omit', 'later', 'earlier',"
            " (clock_timestamp() at time zone 'UTC')::date, 'all', interval '3 days', 100, 600,"
            " 'model', p_weekdays => array[1, 2, 3, 4, 5, 6, 7])",
            [_account(world, which), name, timedelta(seconds=seconds)],
        ),
        lambda answer: world.model.put_schedule(name),
    )


def _cancel_schedule(world: World, which: int) -> None:
    if world.schedules:
        name = f"s{which % world.schedules + 1}"
        world.ask(
            "cancel_schedule",
            lambda wire: wire.execute(
                "select duebook.cancel_schedule(s.account_id, s.schedule, 'model', 'model')"
                " from duebook.schedule as s where s.schedule = %s",
                [name],
            ),
            lambda answer: world.model.cancel_schedule(name),
        )


DEEDS: Final[dict[str, Callable[..., None]]] = {
    "promise": _promise,
    "sweep": _sweep,
    "run": _run,
    "to_send": _to_send,
    "to_claim": _to_claim,
    "to_statement": _to_statement,
    "to_rest": _to_rest,
    "crash": _crash,
    "stop": _stop,
    "lose": _lose,
    "restart": _restart,
    "fail_over": _fail_over,
    "pass": _pass,
    "answer": _answer,
    "cancel": _cancel,
    "resolve": _resolve,
    "supersede": _supersede,
    "opt_out": _opt_out,
    "lose_contact": _lose_contact,
    "find_contacts": _find_contacts,
    "double": _double,
    "miscount": _miscount,
    "break_text": _break_text,
    "mend_texts": _mend_texts,
    "pause": _pause,
    "resume": _resume,
    "hold": _hold,
    "confirm": _confirm,
    "cancel_hold": _cancel_hold,
    "schedule": _schedule,
    "cancel_schedule": _cancel_schedule,
}


def _living(world: World) -> list[Actor]:
    return [actor for actor in world.actors if actor.state != "done"]


def _sweeps(world: World) -> list[Actor]:
    return [actor for actor in _living(world) if actor.name.startswith("sweep")]


def _pick(among: Sequence[Actor], which: int) -> Actor | None:
    return among[which % len(among)] if among else None


# ---- drawing ----------------------------------------------------------------------------------

STATEMENTS = (
    "claim_batch",
    "lock_batch",
    "advance_batch",
    "close_batch",
    "rescue_batches",
    "retest_held",
    "expire_due",
    "write_occurrences",
    "finish_internal_batch",
)
_LAPSES = (30.0, 130.0, 130.0, 1000.0, 1000.0, 8000.0, 12000.0)


def draw(seed: int) -> History:
    """The history of a seed."""
    dice = random.Random(seed)
    setup = Setup(
        batch_size=dice.choice((2, 3, 4, 6)),
        window=dice.choice((1, 2, 2, 3)),
        channel=dice.choice((*CHANNELS, "noop")),
        tokens=dice.choice((None, None, None, None, 5)),
        promised=dice.randint(2, 7),
    )
    deeds: list[Deed] = [("sweep", _off(dice))]
    for _ in range(dice.randint(5, 14)):
        deeds += _scene(dice)
    return History(seed, setup, tuple(deeds))


def _off(dice: random.Random) -> float:
    """A clock up to ten minutes off."""
    return float(dice.choice((0, 0, -600, 600, dice.randint(-600, 600))))


def _scene(dice: random.Random) -> Iterator[Deed]:
    scenes: dict[Callable[[random.Random], list[Deed]], int] = {
        _work: 8,
        _die: 3,
        _be_late: 3,
        _wake_first: 2,
        _die_at: 3,
        _race: 2,
        _claim_together: 2,
        _tell_late: 2,
        _break: 3,
        _meddle: 3,
        _more: 2,
        _answers: 3,
        _claim_lost: 1,
        _reserve: 2,
        _stop_all: 2,
        _remind: 1,
    }
    scene = dice.choices(list(scenes), list(scenes.values()))[0]
    yield from scene(dice)


def _which(dice: random.Random) -> int:
    return dice.randint(0, 5)


def _steps(dice: random.Random) -> int:
    return dice.choice((1, 2, 3, 5, 8, 13, 21, 34))


def _work(dice: random.Random) -> list[Deed]:
    word = dice.choice(("run", "run", "run", "to_send", "to_send", "to_rest", "sweep"))
    if word == "run":
        return [("run", _which(dice), _steps(dice))]
    return [(word, _off(dice))] if word == "sweep" else [(word, _which(dice))]


def _die(dice: random.Random) -> list[Deed]:
    which = _which(dice)
    to = ("to_send", which) if dice.random() < 0.6 else ("run", which, _steps(dice))
    again = [to] * dice.randint(1, 3)
    return [*again, ("crash", which), ("pass", dice.choice(_LAPSES)), ("sweep", _off(dice))]


def _die_at(dice: random.Random) -> list[Deed]:
    """A sweep dies at one of its statements: before it, after it, or once it is committed."""
    name = dice.choice(STATEMENTS)
    before: list[Deed] = []
    if name in ("rescue_batches", "retest_held"):
        before = [("to_send", -1), ("crash", -1), ("pass", 1000.0)]
    if name == "write_occurrences":
        before = [("schedule", _which(dice), 100.0)]
    if name == "finish_internal_batch":
        before = [("hold", _which(dice), 60.0), ("pass", 130.0)]
    return [
        ("promise", dice.randint(1, 4), -1.0, 7 * 86400.0),
        *before,
        ("sweep", _off(dice)),
        ("to_statement", -1, name),
        ("run", -1, dice.randint(0, 3)),
        ("crash", -1),
        ("pass", dice.choice(_LAPSES)),
        ("sweep", _off(dice)),
    ]


def _be_late(dice: random.Random) -> list[Deed]:
    """One sleeps beyond its lease in mid-window, another one rescues, the first wakes up."""
    which = _which(dice)
    asleep = [("to_send", which)] * dice.randint(1, 5)
    return [
        *asleep,
        ("pass", dice.choice(_LAPSES)),
        ("sweep", _off(dice)),
        ("run", _which(dice), dice.choice((5, 8, 13, 21, 34, 55))),
        ("run", which, _steps(dice)),
        *([("cancel", _which(dice))] if dice.random() < 0.3 else []),
        ("to_rest", dice.choice((which, _which(dice)))),
    ]


def _wake_first(dice: random.Random) -> list[Deed]:
    """The same, but the sleeper is in the middle of its flush when the other one rescues."""
    sleeper, other = 0, -1
    return [
        *([("sweep", _off(dice))] if dice.random() < 0.7 else []),
        *[("to_send", sleeper)] * dice.randint(1, 4),
        ("pass", dice.choice((130.0, 1000.0, 1000.0))),
        ("run", sleeper, dice.randint(3, 12)),
        ("sweep", _off(dice)),
        ("run", other, dice.choice((21, 34, 55))),
        ("run", sleeper, dice.choice((5, 13, 21))),
        ("run", other, dice.choice((3, 8, 21))),
    ]


def _claim_together(dice: random.Random) -> list[Deed]:
    """One has claimed and not committed when the next one claims."""
    return [
        ("promise", dice.randint(4, 8), -1.0, 7 * 86400.0),
        ("sweep", _off(dice)),
        ("to_claim", -1),
        ("sweep", _off(dice)),
        ("to_claim", -1),
        *([("crash", -2)] if dice.random() < 0.3 else [("run", -2, _steps(dice))]),
        ("run", -1, _steps(dice)),
    ]


def _tell_late(dice: random.Random) -> list[Deed]:
    """The sleeper tells what was accepted when another one has claimed it again."""
    return [
        ("sweep", _off(dice)),
        *[("to_send", 0)] * dice.randint(1, 3),
        ("pass", dice.choice((130.0, 1000.0))),
        ("sweep", _off(dice)),
        ("to_claim", -1),
        ("run", -1, dice.choice((1, 2, 3, 8))),
        ("run", 0, dice.choice((8, 13, 21, 34))),
        *([("answer", 5)] if dice.random() < 0.3 else []),
        *([("crash", -1)] if dice.random() < 0.2 else [("to_rest", -1)]),
    ]


def _race(dice: random.Random) -> list[Deed]:
    """Two move in turn, a few steps each."""
    one, other = _which(dice), _which(dice)
    turns = [("run", which, dice.randint(1, 6)) for which in (one, other) * dice.randint(1, 4)]
    return [("sweep", _off(dice)), *turns]


def _break(dice: random.Random) -> list[Deed]:
    which = _which(dice)
    if dice.random() < 0.3:
        return [("restart", dice.randint(0, 2), dice.randint(0, 7)), ("run", which, _steps(dice))]
    return [
        ("lose", which, dice.randint(0, 1)),
        ("run", which, _steps(dice)),
        *([("lose", which, dice.randint(0, 1))] if dice.random() < 0.4 else []),
        ("run", which, _steps(dice)),
    ]


def _meddle(dice: random.Random) -> list[Deed]:
    words = "cancel cancel supersede opt_out lose_contact miscount miscount stop break_text"
    word = dice.choice([*words.split(), "resolve", "resolve"])
    more: list[Deed] = []
    if word == "break_text":
        more = [("run", _which(dice), 34), ("mend_texts",), ("pass", 400.0)]
    if word == "lose_contact" and dice.random() < 0.5:
        more = [("run", _which(dice), 34), ("find_contacts",)]
    return [(word, _which(dice)), *more]


def _more(dice: random.Random) -> list[Deed]:
    due_in = dice.choice((-1.0, -1.0, 20.0, 100.0))
    give_up_in = dice.choice((7 * 86400.0, 7 * 86400.0, 600.0))
    return [("promise", dice.randint(1, 5), due_in, give_up_in)]


def _answers(dice: random.Random) -> list[Deed]:
    if dice.random() < 0.2:
        return [("double",)]
    return [("answer", *(dice.randint(0, len(ANSWERS) - 1) for _ in range(dice.randint(1, 4))))]


def _reserve(dice: random.Random) -> list[Deed]:
    """Holds come to their end, while somebody wants to confirm or to cancel one."""
    seconds = dice.choice((60.0, 100.0, 1000.0))
    word = dice.choice(("confirm", "confirm", "cancel_hold"))
    ask: Deed = (word, _which(dice), dice.randint(0, 1)) if word == "confirm" else (word, 0)
    return [
        *[("hold", _which(dice), seconds)] * dice.randint(1, 4),
        *([ask] if dice.random() < 0.3 else []),
        ("pass", dice.choice((30.0, 130.0, 1100.0))),
        ("sweep", _off(dice)),
        ("to_claim", -1),
        ("run", -1, dice.choice((0, 1, 2, 3))),
        ask,
        ("run", -1, dice.choice((1, 2, 5))),
        *([("confirm", _which(dice), 1)] if dice.random() < 0.6 else []),
    ]


def _stop_all(dice: random.Random) -> list[Deed]:
    """Something is paused for a while."""
    pause: Deed = ("pause", _which(dice), int(dice.random() < 0.2))
    return [pause, *_work(dice), *([("resume", _which(dice))] if dice.random() < 0.7 else [])]


def _remind(dice: random.Random) -> list[Deed]:
    """A schedule, and two sweeps that write its occurrences."""
    which = _which(dice)
    return [
        ("schedule", which, dice.choice((100.0, 1000.0))),
        ("sweep", _off(dice)),
        ("sweep", _off(dice)),
        ("run", -1, dice.choice((13, 21, 34))),
        ("run", -2, dice.choice((13, 21, 34))),
        *([("crash", -1)] if dice.random() < 0.3 else []),
        ("pass", dice.choice(_LAPSES)),
        *([("cancel_schedule", which)] if dice.random() < 0.4 else []),
    ]


def _claim_lost(dice: random.Random) -> list[Deed]:
    """Two senders believe that they hold the batch of one number."""
    return [
        ("pass", dice.choice((30.0, 1000.0))),
        ("promise", dice.randint(2, 4), -1.0, 7 * 86400.0),
        ("sweep", _off(dice)),
        ("fail_over", -1),
        ("sweep", _off(dice)),
        *[("to_send", -1)] * dice.randint(1, 2),
        *[("to_send", -2)] * dice.randint(1, 4),
        ("to_rest", dice.choice((-1, -2))),
    ]


# ---- playing, and making shorter ----------------------------------------------------------------


def play(world: World, history: History) -> None:
    """Let a history happen. Raises ViolationError."""
    world.begin(history.setup)
    world.promise(history.setup.promised)
    try:
        for name, *numbers in history.deeds:
            DEEDS[name](world, *numbers)
            world.look()
        world.rest()
    finally:
        world.end()


def fault_of(world: World, history: History) -> str | None:
    """What is wrong in a history, if anything."""
    try:
        play(world, history)
    except ViolationError as violation:
        return str(violation)
    return None


def shorten(world: World, history: History, most: int = 400) -> History:
    """The shortest history that still fails, by leaving out deeds and asking for fewer steps."""
    tries = 0

    def fails(deeds: Sequence[Deed]) -> bool:
        nonlocal tries
        tries += 1
        return fault_of(world, replace(history, deeds=tuple(deeds))) is not None

    deeds = list(history.deeds)
    size = max(1, len(deeds) // 2)
    while size and tries < most:
        at, was = 0, len(deeds)
        while at < len(deeds) and tries < most:
            shorter = deeds[:at] + deeds[at + size :]
            if fails(shorter):
                deeds = shorter
            else:
                at += size
        size = size // 2 if size > 1 or len(deeds) == was else size
    return replace(history, deeds=tuple(deeds))


def explain_fault(world: World, history: History, fault: str) -> str:
    """A failing seed with its shortest history, to read and to play again."""
    shortest = shorten(world, history)
    last = fault_of(world, shortest) or fault
    return f"seed {history.seed}: {fault}\nits shortest history: {last}\n{shortest}"
