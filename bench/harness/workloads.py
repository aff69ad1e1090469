# SPDX-License-Identifier: Apache-2.0
"""workloads.py - what is measured: groups of candidates that take turns, and the rows of the table that they give."""

import dataclasses

from ratios import Row

# Numbers of jobs at scale 1; bench/run multiplies them.
DRAINED = 200_000
FEWER = 100_000  # where a comparison has many candidates
MORE = 600_000  # where the start of many processes would be a part of what is measured
MILLION = 1_000_000
BEHIND_KEY = 100_000
ELSEWHERE = 10_000
KEYS = 20_000
BATCH_JOBS = {1: 10_000, 10: 50_000, 100: FEWER, 1000: FEWER}
BATCH_GOALS = {1: 0.75, 10: 0.9, 100: 0.9, 1000: 0.9}


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One who takes turns. `sizes` are scaled, `settings` are not; both go to bench-turn, unless `peer` names another program."""

    name: str
    verb: str = "drain"
    sizes: dict = dataclasses.field(default_factory=dict)
    settings: dict = dataclasses.field(default_factory=dict)
    store: str = "postgres"
    prepare: dict | None = None  # sizes of what is in the database beforehand
    peer: str | None = None
    is_counted: bool = False  # its instructions are counted, not its time


@dataclasses.dataclass(frozen=True)
class Group:
    """Candidates that take turns with each other, and what is read from them."""

    name: str
    candidates: tuple
    rows: tuple
    is_peers: bool = False
    is_long: bool = False
    needs_statements: bool = False  # of a server that counts statements
    is_count: bool = False  # the same from turn to turn: one is enough
    needs_pgmq: bool = False  # the SQL of pgmq, which the user provides


def drain(name="pawl", jobs=DRAINED, prepare=None, **settings):
    return Candidate(name, "drain", {"jobs": jobs}, settings, prepare=prepare)


def group_beside(group, what, name, prepare=None, **settings):
    """A drain beside something, and without it: a pair of its own each, so that what is compared ran within seconds."""
    return Group(group, (drain(), drain(name, DRAINED, prepare, **settings)), (Row(f"drain, {what}", name, "pawl", least=0.95),))


def group_batches(batch):
    def candidate(name, verb):
        return Candidate(name, verb, {"jobs": BATCH_JOBS[batch]}, {"batch": batch})
    return Group(f"batch-{batch}", (candidate("pawl", "batches"), candidate("bare SQL", "bare-batches")),
                 (Row(f"claim and settle in batches of {batch:,}", "pawl", "bare SQL", least=BATCH_GOALS[batch]),))


def group_processes():
    names = {n: f"{n} processes" for n in (2, 4, 8)}
    return Group("processes", (drain(jobs=MORE, warm=1), *(drain(name, MORE, processes=n, warm=1) for n, name in names.items())),
                 tuple(Row(f"drain by {name}", name, "pawl", least=0.95) for name in names.values()))


def group_statistics():
    kinds = ("full", "never", "stale", "empty")
    words = {"full": "statistics full", "never": "statistics never taken", "stale": "statistics stale", "empty": "planned on an empty table"}
    # "best" is no candidate: the driver takes the best of them, turn by turn.
    return Group("statistics", tuple(drain(words[kind], FEWER, statistics=kind) for kind in kinds),
                 tuple(Row(f"drain, {words[kind]}", words[kind], "best", least=0.8) for kind in kinds))


POSTGRES = (
    Group("drain", (drain(), Candidate("bare SQL", "bare-drain", {"jobs": DRAINED})),
          (Row("drain 200,000 jobs of 100 bytes, one worker, ledger on", "pawl", "bare SQL", least=0.9),
           Row("write-ahead log of a job, whole life", "pawl", None, "wal_bytes_per_job", most=1000, unit="bytes"))),
    group_beside("old-transaction", "a transaction open since before the enqueue", "old transaction", old_transaction=1),
    group_beside("delayed", "1,000,000 delayed jobs in the queue", "delayed", {"delayed": MILLION}),
    group_beside("stuck-key", "100,000 jobs behind one stuck key", "stuck key", {"stuck": BEHIND_KEY}),
    group_beside("elsewhere", "10,000 in flight elsewhere", "elsewhere", {"elsewhere": ELSEWHERE}),
    Group("old-million", (drain(jobs=MILLION), drain("old transaction", MILLION, old_transaction=1)),
          (Row("drain 1,000,000, a transaction open since before the enqueue", "old transaction", "pawl", least=0.95),)),
    *(group_batches(batch) for batch in BATCH_JOBS),
    group_processes(),
    group_statistics(),
    Group("keyed", (drain(jobs=FEWER), Candidate("keyed", "drain", {"jobs": FEWER, "keys": KEYS}),
                    Candidate("keyed, stuck key", "drain", {"jobs": FEWER, "keys": KEYS}, prepare={"stuck": BEHIND_KEY})),
          (Row("drain with 20,000 ordering keys", "keyed", "pawl", least=0.5),
           Row("drain with 20,000 ordering keys, 100,000 jobs behind a stuck one", "keyed, stuck key", "keyed", least=0.95),
           Row("write-ahead log of a job with a key, whole life", "keyed", None, "wal_bytes_per_job", most=1400, unit="bytes"))),
    Group("renewal", (drain("without renewals", FEWER, held=100, lease_ms=3_600_000), drain("with renewals", FEWER, held=100, lease_ms=8000)),
          (Row("drain while 100 leases are renewed every two seconds", "with renewals", "without renewals", least=0.98),)),
    Group("enqueue", (Candidate("pawl", "enqueue", {"jobs": DRAINED}), Candidate("COPY", "bare-copy", {"jobs": DRAINED})),
          (Row("enqueue in batches of 1,000", "pawl", "COPY", least=0.8),)),
    Group("singles", (Candidate("pawl", "singles", {"jobs": 20_000}, {"connections": 10}),
                      Candidate("INSERT", "bare-singles", {"jobs": 20_000}, {"connections": 10})),
          (Row("enqueue one by one from ten connections", "pawl", "INSERT", least=0.95),)),
    Group("joined", (Candidate("pawl", "joined", {"jobs": 100_000}, {"connections": 100}),
                     Candidate("INSERT", "bare-singles", {"jobs": 20_000}, {"connections": 10})),
          (Row("enqueue from a hundred threads through one handle that joins them", "pawl", "INSERT", least=3),)),
    Group("latency", (Candidate("pawl", "latency", {"jobs": 1000}, {"rate": 100, "batch": 100, "buffer": 10}),
                      Candidate("NOTIFY and back", "bare-notify-trip", {"jobs": 1000}, {"rate": 100}),
                      Candidate("bare SQL", "bare-latency", {"jobs": 1000}, {"rate": 100}),
                      Candidate("NOTIFY", "bare-notify", {"jobs": 1000}, {"rate": 100})),
          (Row("enqueue to handler start at 100 jobs/s, half of them", "pawl", "NOTIFY and back", "p50_us", most=2),
           Row("enqueue to handler start at 100 jobs/s, half of them", "pawl", "bare SQL", "p50_us"),
           Row("bare INSERT with NOTIFY to the end of a bare claim at 100 jobs/s, half of them", "bare SQL", "NOTIFY and back", "p50_us"),
           Row("enqueue to handler start at 100 jobs/s, half of them", "pawl", "NOTIFY", "p50_us"),
           Row("enqueue to handler start at 100 jobs/s, 99 % of them", "pawl", "NOTIFY and back", "p99_us"),
           Row("enqueue to handler start, 99 % of them within", "pawl", None, "p99_us", unit="us"))),
)

SQLITE = (
    Group("sqlite-drain", (Candidate("pawl", "batches", {"jobs": DRAINED}, store="sqlite"),
                           Candidate("bare statements", "bare-sqlite-drain", {"jobs": DRAINED}, store="sqlite")),
          (Row("SQLite: claim and settle in batches of 1,000", "pawl", "bare statements", least=0.8),)),
    Group("sqlite-enqueue", (Candidate("pawl", "enqueue", {"jobs": DRAINED}, store="sqlite"),
                             Candidate("bare statements", "bare-sqlite-enqueue", {"jobs": DRAINED}, store="sqlite")),
          (Row("SQLite: enqueue in batches of 1,000", "pawl", "bare statements", least=0.8),)),
)

OTHERS = (
    Group("memory", (Candidate("pawl", "batches", {"jobs": MILLION}, {"batch": 100}, "memory:"),),
          (Row("memory store: claim and settle in batches of 100", "pawl", None, unit="jobs/s"),)),
    Group("resident", (Candidate("pawl", "hold", {}, {"held": 1000, "parallel": 1, "buffer": 0, "lease_ms": 60_000}),),
          (Row("worker memory with 1,000 handlers that run", "pawl", None, "resident_kib", most=32 * 1024, unit="KiB"),)),
    Group("command", (Candidate("pawl work", "command", {"jobs": 10_000}, {"parallel": 10, "program": "PAWL"}),
                      Candidate("posix_spawn", "spawn", {"jobs": 10_000}, {"parallel": 10})),
          (Row("pawl work -- true, ten at once", "pawl work", "posix_spawn", least=0.8),)),
    Group("idle", (Candidate("pawl", "idle", {}, {"processes": 4, "seconds": 20}),),
          (Row("statements per second of an idle process", "pawl", None, "statements_rate", most=5, unit="/s"),
           Row("share of a core of an idle process", "pawl", None, "cpu_share", most=0.005, unit="cores")), needs_statements=True),
)



def counted(name, verb, store, **settings):
    return Candidate(name, verb, {}, {"jobs": 2000, **settings}, store, is_counted=True)


COUNTS = (
    Group("instructions", (counted("keeper", "keeper", "memory:"), counted("memory store", "batches", "memory:", batch=100),
                           counted("PostgreSQL store, client", "batches", "postgres", batch=100)),
          (Row("instructions of the keeper for a job", "keeper", None, "instructions", unit="instructions"),
           Row("instructions of the memory store for a job", "memory store", None, "instructions", unit="instructions"),
           Row("instructions of the PostgreSQL store for a job, client side", "PostgreSQL store, client", None, "instructions", unit="instructions")),
          is_count=True),
)

LONG = (
    Group("backlog", (drain("100,000", 100_000), drain("10,000,000", 10_000_000)),
          (Row("drain a backlog of 10,000,000", "10,000,000", "100,000", least=0.9),), is_long=True),
)

PEERS = (
    Group("peers-graphile", (drain(), Candidate("graphile-worker", sizes={"jobs": DRAINED}, peer="graphile.mjs")),
          (Row("drain 200,000 jobs", "pawl", "graphile-worker", least=2),), is_peers=True),
    Group("peers-pgboss", (drain(), Candidate("pg-boss", sizes={"jobs": DRAINED}, peer="pgboss.mjs")),
          (Row("drain 200,000 jobs", "pawl", "pg-boss", least=3),), is_peers=True),
    Group("peers-pgmq", (drain(), Candidate("pgmq in turn", "pgmq-in-turn", {"jobs": DRAINED}), Candidate("pgmq", "pgmq", {"jobs": DRAINED})),
          (Row("drain 200,000 jobs", "pawl", "pgmq in turn", least=1.3), Row("drain 200,000 jobs", "pawl", "pgmq", least=1.3)), is_peers=True,
          needs_pgmq=True),
    Group("peers-sqlite", (Candidate("pawl", "drain", {"jobs": 20_000}, store="sqlite"),
                           Candidate("plainjob", sizes={"jobs": 20_000}, settings={"mode": "drain"}, store="sqlite", peer="plainjob.mjs")),
          (Row("SQLite: drain 20,000 jobs", "pawl", "plainjob", least=10),), is_peers=True),
    Group("peers-sqlite-enqueue", (Candidate("pawl", "enqueue", {"jobs": 20_000}, store="sqlite"),
                                   Candidate("plainjob", sizes={"jobs": 20_000}, settings={"mode": "enqueue"}, store="sqlite", peer="plainjob.mjs")),
          (Row("SQLite: enqueue in batches of 1,000", "pawl", "plainjob"),), is_peers=True),
    Group("peers-sqlite-singles", (Candidate("pawl", "singles", {"jobs": 5000}, {"connections": 100}, "sqlite"),
                                   Candidate("plainjob", sizes={"jobs": 5000}, settings={"mode": "singles"}, store="sqlite", peer="plainjob.mjs")),
          (Row("SQLite: enqueue one by one, from a hundred threads", "pawl", "plainjob", least=10),), is_peers=True),
    # Both in batches of 100: beanstalkd takes no more requests at once than its answers have room in the socket.
    Group("peers-memory", (Candidate("pawl", "batches", {"jobs": MILLION}, {"batch": 100}, "memory:"),
                           Candidate("beanstalkd", "beanstalkd", {"jobs": DRAINED}, {"batch": 100}, "beanstalkd")),
          (Row("memory store: claim and settle", "pawl", "beanstalkd", least=10),), is_peers=True),
)

GROUPS = POSTGRES + SQLITE + OTHERS + COUNTS + LONG + PEERS
