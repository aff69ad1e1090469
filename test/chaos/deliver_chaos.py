#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deliver_chaos.py - the delivery leg of the chaos test: events are published while those who deliver them are killed and stopped for
longer than their leases, and while their store is away or killed. A sink has every request; then the rules of deliver_rules.py are
asked.

Usage: deliver_chaos.py STORE [--seconds N] [--seed N] [--spoil FAULT --expect RULE] PATH-OF-PAWL
STORE is sqlite or postgres. FAULT is lose (the store drops jobs), mix (it forgets that order was asked for) or steal (on SQLite: the lease
of the first claim is another's); then that rule must be broken, and nothing goes wrong beside it.
"""

import argparse
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import deliver_rules  # noqa: E402
import pg  # noqa: E402
from commands import CLEAN  # noqa: E402
from deliver_sink import Gap, Sink  # noqa: E402

LEASE_SECONDS = 4
DELIVERERS = 3
KEYS = 4
DRAIN_SECONDS = 240
EVENTS_LEAST = 60  # however slow the machine is
# Killed; told to end, before it could listen to that or afterwards; or with a store that was away when it began.
ENDS = (-signal.SIGKILL, -signal.SIGTERM, 0, 69, 75)
# Name: what it wants, whether it keeps the order.
ENDPOINTS = {"all": ("*", "none"), "ordered": ("order.*", "key"), "some": ("order.created,bill.*", "none")}
TOPICS = {"order.created": ["all", "ordered", "some"], "order.changed": ["all", "ordered"], "bill.sent": ["all", "some"], "note": ["all"]}


# ---------------------------------------------------------------- stores

class Sqlite:
    """A file; it is away while somebody else has its lock."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="pawl-chaos-")
        self.path = f"{self.folder}/pawl.db"
        self.env = {**CLEAN, "PAWL_STORE": f"sqlite:{self.path}"}
        self.db = None

    def open(self):
        self.db = sqlite3.connect(self.path, timeout=60, isolation_level=None)

    def env_of(self, number):
        return self.env

    def publish(self, events, is_committed):
        """Publish in one transaction; gives each event's id, and {(endpoint, id): job}."""
        self.db.execute("BEGIN IMMEDIATE")
        last = self.db.execute("SELECT coalesce(max(number), 0) FROM pawl_job").fetchone()[0]
        for event in events:
            self.db.execute("INSERT INTO pawl_publish (type, payload, ordering_key) VALUES (?, ?, ?)",
                            (event["topic"], event["body"], event["key"]))
        rows = self.db.execute("SELECT j.id, q.name, p.bytes, p.headers FROM pawl_job j JOIN pawl_queue q USING (queue_id)"
                               " JOIN pawl_payload p USING (number) WHERE j.number > ?", (last,)).fetchall()
        self.db.execute("COMMIT" if is_committed else "ROLLBACK")
        return [(job.hex(), queue.removeprefix("webhook/"), bytes(body)) for job, queue, body, _ in rows]

    def away(self, seconds):
        """For so long nobody can write."""
        db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        db.execute("ROLLBACK")
        db.close()

    def kill(self):
        """There is nobody to kill."""
        self.away(LEASE_SECONDS / 2)

    def is_drained(self):
        return self.db.execute("SELECT count(*) FROM pawl_job").fetchone()[0] == 0

    def ledger(self):
        names = ["DISPATCHED", "RETRYABLE", "FAILED", "ZOMBIE_REQUEUE"]
        rows = self.db.execute("SELECT id, claimed_by, outcome FROM pawl_attempt ORDER BY id, attempt_no").fetchall()
        return [(job.hex(), worker, names[outcome]) for job, worker, outcome in rows]

    def spoil(self, fault):
        self.db.execute({"lose": "CREATE TRIGGER spoilt AFTER INSERT ON pawl_job WHEN NEW.number % 5 = 0"
                                 " BEGIN DELETE FROM pawl_job WHERE number = NEW.number; END",
                         "mix": "UPDATE pawl_endpoint SET ordering = 1",
                         "steal": "CREATE TRIGGER spoilt AFTER UPDATE OF lease_version ON pawl_job WHEN OLD.lease_version = 0"
                                  " AND NEW.queue_id = (SELECT queue_id FROM pawl_queue WHERE name = 'webhook/all')"
                                  " BEGIN UPDATE pawl_job SET claimed_by = 'thief/1/1' WHERE number = NEW.number; END"}[fault])

    def end(self):
        self.db.close()
        shutil.rmtree(self.folder)


class Postgres:
    """A server; deliverers reach it through a gap that breaks."""

    def __init__(self, program):
        import psycopg2  # of Debian's Python
        self.driver = psycopg2
        self.world = pg.World(program)
        self.world.__enter__()
        self.server = self.world.server
        self.database = self.world.database(2)
        self.env = self.env_at(self.server.folder)
        self.folder = tempfile.mkdtemp(prefix="pawl-chaos-")
        self.gap = Gap(self.folder, self.server.folder / ".s.PGSQL.5432")
        self.db = None

    def env_at(self, folder):
        return {**CLEAN, "DATABASE_URL": f"postgresql:///{self.database}?host={folder}&user={self.server.user}"}

    def env_of(self, number):
        return self.env_at(self.folder if number % DELIVERERS else self.server.folder)

    def connect(self):
        return self.driver.connect(host=str(self.server.folder), user=self.server.user, dbname=self.database)

    def open(self):
        self.db = self.connect()

    def publish(self, events, is_committed):
        """As above; repeated until there is an answer, which the ids allow."""
        while True:
            try:
                with self.db.cursor() as cursor:
                    for event in events:
                        cursor.execute("select pawl.publish(%s, %s::bytea, p_id => %s, p_ordering_key => %s)",
                                       (event["topic"], event["body"], f"evt-{event['number']}", event["key"]))
                    cursor.execute("select j.id, q.name, j.payload from pawl.job j join pawl.queue q on q.queue_id = j.line_id / 4096"
                                   " where j.payload = any (%s::bytea[])", ([e["body"] for e in events],))
                    rows = cursor.fetchall()
                (self.db.commit if is_committed else self.db.rollback)()
                return [(job.replace("-", ""), queue.removeprefix("webhook/"), bytes(body)) for job, queue, body in rows]
            except self.driver.Error:
                self.again()

    def again(self):
        """A new connection, as soon as there is somebody."""
        self.db.close()
        while self.db.closed:
            try:
                self.db = self.connect()
            except self.driver.Error:
                time.sleep(0.1)

    def away(self, seconds):
        self.gap.is_hole = True
        time.sleep(seconds)
        self.gap.cut()
        self.gap.is_hole = False

    def kill(self):
        """The server, as if by lack of memory; and it is started again."""
        command = self.server.process.args
        self.server.process.kill()
        self.server.process.wait()
        while True:
            self.server.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                                   cwd="/", **self.server.as_user())
            while self.server.process.poll() is None:
                if subprocess.run(["pg_isready", "-q"], env=self.server.env, check=False).returncode == 0:
                    return
                time.sleep(0.1)

    def rows(self, sql):
        while True:
            try:
                with self.db.cursor() as cursor:
                    cursor.execute(sql)
                    rows = cursor.fetchall()
                self.db.rollback()
                return rows
            except self.driver.Error:
                self.again()

    def is_drained(self):
        return self.rows("select count(*) from pawl.job")[0][0] == 0

    def ledger(self):
        rows = self.rows("select job_id, worker, outcome from pawl.attempts order by job_id, attempt_no")
        return [(job.replace("-", ""), worker, outcome) for job, worker, outcome in rows]

    def spoil(self, fault):
        with self.db.cursor() as cursor:
            cursor.execute({"mix": "update pawl.endpoint set ordering = 1"}[fault])
        self.db.commit()

    def end(self):
        self.db.close()
        self.gap.stop()
        self.world.__exit__(None, None, None)
        shutil.rmtree(self.folder)


# ---------------------------------------------------------------- deliverers

class Deliverer:
    """One process, at a port of the sink of its own."""

    def __init__(self, play, place):
        self.play = play
        self.place = place
        self.name = f"d{play.started}"
        play.started += 1
        port = play.sink.listen(self.name)
        self.log = open(f"{play.folder}/{self.name}.log", "wb")
        self.process = subprocess.Popen(
            [play.program, "deliver", "--name", self.name, "--webhook-proxy", f"http://127.0.0.1:{port}", "--webhook-http",
             "--webhook-ports", "8080", "--webhook-refresh", "200ms", "--poll", "200ms", "--call-timeout", "1s", "--reaper-interval",
             "1s", "--presence", "1s", "--grace", "500ms", "--webhook-failures", "1000"],
            env=play.store.env_of(place), stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.is_left_alone = False  # paused, or on its way to its end
        self.timer = None

    def pause(self, seconds):
        """For so long; whoever paused it may be waiting meanwhile for a lock that it holds."""
        self.is_left_alone = True
        self.process.send_signal(signal.SIGSTOP)
        self.timer = threading.Timer(seconds, self.resume)
        self.timer.start()

    def resume(self):
        self.process.send_signal(signal.SIGCONT)
        self.is_left_alone = False

    def has_ended(self):
        if self.process.poll() is None:
            return False
        if self.timer is not None:
            self.timer.cancel()
        self.log.close()
        return True


class Play:
    def __init__(self, arguments, store):
        self.program = arguments.program
        self.random = random.Random(arguments.seed)
        self.store = store
        self.folder = tempfile.mkdtemp(prefix="pawl-chaos-logs-")
        self.sink = Sink(arguments.seed, LEASE_SECONDS)
        self.started = 0
        self.transactions = 0
        self.deliverers = []
        self.trouble = None  # a thread: the store is away
        self.done = {"kill": 0, "pause": 0, "end": 0, "away": 0, "kill-store": 0}
        self.pauses = {}
        self.events = {}  # by number
        self.jobs = {}  # {job: (endpoint, number)}
        self.failures = []
        self.secrets = {}

    def add_endpoints(self):
        for name, (topics, ordering) in ENDPOINTS.items():
            done = subprocess.run(
                [self.program, "endpoint", "add", name, "--url", f"http://93.184.216.34:8080/{name}", "--topics", topics, "--ordering",
                 ordering, "--lease", f"{LEASE_SECONDS}s", "--timeout", "30s", "--max-retries", "1000", "--backoff-base", "20ms",
                 "--backoff-max", "100ms", "--webhook-http", "--webhook-ports", "8080"], env=self.store.env, capture_output=True,
                text=True, check=True, timeout=120)
            self.secrets[name] = done.stdout.strip()

    # ---- events

    def publish(self):
        """A transaction of some events, half of them in a row of one key; every fifth is rolled back."""
        events = []
        key = f"key-{self.random.randrange(KEYS)}" if self.random.random() < 0.5 else None
        self.transactions += 1
        is_committed = self.transactions % 5 != 0
        for _ in range(self.random.randrange(1, 5)):
            number = len(self.events) + 1
            topic = "order.changed" if key else self.random.choice(list(TOPICS))
            self.events[number] = {"number": number, "topic": topic, "key": key, "endpoints": TOPICS[topic], "is_committed": is_committed,
                                   "body": f'{{"number": {number}, "text": "{"x" * self.random.randrange(200)}"}}'.encode()}
            events.append(self.events[number])
        number_of = {event["body"]: event["number"] for event in events}
        for job, endpoint, body in self.store.publish(events, is_committed):
            self.jobs[job] = (endpoint, number_of[body])

    # ---- troubles

    def make_trouble(self, what):
        """False: nobody was there whom it could hit."""
        if what in ("away", "kill-store"):
            if self.trouble is not None and self.trouble.is_alive():
                return False
            work = self.store.kill if what == "kill-store" else lambda: self.store.away(LEASE_SECONDS * self.random.uniform(0.5, 1.5))
            self.trouble = threading.Thread(target=work)
            self.trouble.start()
            return True
        awake = [d for d in self.deliverers if not d.is_left_alone]
        # Half of the time one that has a request on the wire.
        busy = {r["owner"] for r in self.sink.requests[-50:] if r["answered"] is None}
        awake = [d for d in awake if d.name in busy] or awake
        if not awake:
            return False
        victim = self.random.choice(awake)
        if what == "pause":
            victim.pause(LEASE_SECONDS * self.random.uniform(1.1, 1.6))
            self.pauses[victim.name] = self.pauses.get(victim.name, 0) + 1
        else:
            victim.process.send_signal(signal.SIGKILL if what == "kill" else signal.SIGTERM)
            if what == "end":
                victim.is_left_alone = True
        return True

    def mend(self):
        for i, deliverer in enumerate(self.deliverers):
            if deliverer.has_ended():
                if deliverer.process.returncode not in ENDS:
                    self.failures.append(f"{deliverer.name} ended with {deliverer.process.returncode}")
                self.deliverers[i] = Deliverer(self, deliverer.place)

    def run(self, seconds, troubles):
        self.deliverers = [Deliverer(self, place) for place in range(DELIVERERS)]
        began = time.monotonic()
        schedule = sorted((self.random.uniform(0.1, 1) * seconds, what) for what, count in troubles.items() for _ in range(count))
        while schedule or time.monotonic() < began + seconds or len(self.events) < EVENTS_LEAST:
            self.publish()
            self.mend()
            if schedule and time.monotonic() > began + schedule[0][0]:
                at, what = schedule.pop(0)
                if self.make_trouble(what):
                    self.done[what] += 1
                else:
                    schedule.append((at + 0.5, what))
                    schedule.sort()
            time.sleep(0.05)

    def lose_one(self):
        """Whatever chance has brought, one is killed with a request on the wire that nobody has answered: that lease is lost."""
        if self.trouble is not None:
            self.trouble.join()
        self.sink.is_holding = True
        victim = None
        until = time.monotonic() + DRAIN_SECONDS
        while victim is None and time.monotonic() < until:
            self.publish()
            self.mend()
            waiting = {request["owner"] for _, request in list(self.sink.held)}
            victim = next((d for d in self.deliverers if d.name in waiting and not d.is_left_alone), None)
            time.sleep(0.05)
        if victim is None:
            self.failures.append("nobody sent anything")
        else:
            victim.process.kill()
            victim.process.wait()
        self.sink.is_holding = False

    def drain(self):
        """Nothing is broken any more: all that was committed arrives."""
        self.sink.is_calm = True
        until = time.monotonic() + DRAIN_SECONDS
        self.mend()
        while not self.store.is_drained() and time.monotonic() < until:
            self.mend()
            time.sleep(0.1)
        if not self.store.is_drained():
            self.failures.append("there is still work to do")

    def end(self):
        for deliverer in self.deliverers:
            deliverer.process.send_signal(signal.SIGTERM)
        for deliverer in self.deliverers:
            if deliverer.process.wait(60) not in ENDS:
                self.failures.append(f"{deliverer.name} ended with {deliverer.process.returncode}")
            deliverer.log.close()
        self.sink.stop()

    def history(self):
        """As the rules take it: by the ids under which the events were sent."""
        by_body = {event["body"]: event["number"] for event in self.events.values()}
        id_of = {}
        for request in self.sink.requests:
            number = by_body.get(request["body"])
            if number is not None and id_of.setdefault(number, request["id"]) != request["id"]:
                self.failures.append(f"event {number} was sent as {id_of[number]} and as {request['id']}")
        ledger = {}
        for job, worker, outcome in self.store.ledger():
            endpoint, number = self.jobs[job]
            ledger.setdefault((endpoint, id_of.get(number, number)), []).append(
                {"owner": worker.partition("/")[0] if worker else None, "outcome": outcome})
        return {"events": {id_of.get(number, number): event for number, event in self.events.items()}, "requests": self.sink.requests,
                "ledger": ledger, "secrets": self.secrets, "ordered": [n for n, (_, o) in ENDPOINTS.items() if o == "key"],
                "pauses": self.pauses}


# ---------------------------------------------------------------- the test

class Report:
    def __init__(self):
        self.number = self.failed = 0

    def tell(self, is_ok, what, details=()):
        self.number += 1
        self.failed += not is_ok
        print(f"{'ok' if is_ok else 'not ok'} {self.number} - {what}")
        for line in list(details)[:10]:
            print(f"# {line}")


def judge(play, arguments):
    history = play.history()
    report = Report()
    late = len(list(deliver_rules.late_requests(history)))
    committed = sum(event["is_committed"] for event in play.events.values())
    print(f"# seed {arguments.seed}: {committed} events, {len(play.events) - committed} rolled back; {len(history['requests'])} requests,"
          f" {late} late; {play.done}")
    for name, rule in deliver_rules.RULES.items():
        found = list(rule(history))
        is_wanted = name == arguments.expect
        if arguments.expect is None or is_wanted:
            report.tell(bool(found) == is_wanted, f"{name}{' is seen' if is_wanted else ''}", found)
    if arguments.expect is None:
        report.tell(not play.failures, "all of it could be done", play.failures)
        report.tell(committed > 20 and committed < len(play.events), "events were published and rolled back")
        for what in arguments.troubles:
            report.tell(play.done[what] > 0, f"there was trouble: {what}")
        recovered = sum(a["outcome"] == "ZOMBIE_REQUEUE" for attempts in history["ledger"].values() for a in attempts)
        report.tell(recovered > 0, f"leases were lost: {recovered}")
    print(f"1..{report.number}")
    return report.failed


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("store", choices=("sqlite", "postgres"))
    parser.add_argument("--seconds", type=float, default=16)
    parser.add_argument("--seed", type=int, default=random.randrange(1000000))
    parser.add_argument("--spoil", choices=("lose", "mix", "steal"))
    parser.add_argument("--expect", choices=list(deliver_rules.RULES))
    parser.add_argument("program")
    arguments = parser.parse_args()
    part = arguments.seconds / 16
    arguments.troubles = {"kill": 6, "pause": 5, "end": 2, "away": 2, "kill-store": 1}
    arguments.troubles = {what: max(1, int(count * part)) for what, count in arguments.troubles.items()} if not arguments.spoil else {}
    return arguments


def main():
    arguments = parse()
    store = (Sqlite if arguments.store == "sqlite" else Postgres)(arguments.program)
    play = Play(arguments, store)
    failed = 1
    try:
        play.add_endpoints()
        store.open()
        if arguments.spoil:
            store.spoil(arguments.spoil)
            play.sink.first_fails = True
        began = time.monotonic()
        play.run(arguments.seconds, arguments.troubles)
        if not arguments.spoil:
            play.lose_one()
        played = time.monotonic() - began
        play.drain()
        drained = time.monotonic() - began - played
        play.end()
        failed = judge(play, arguments)
        print(f"# played for {played:.0f} s, drained in {drained:.0f} s")
    finally:
        for deliverer in play.deliverers:
            deliverer.process.kill()
        store.end()
        if failed:
            print(f"# the logs are in {play.folder}")
        else:
            shutil.rmtree(play.folder)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
