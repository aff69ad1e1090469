#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deliver_counts_test.py - what is counted of `pawl deliver`: statements for each batch.

Usage: deliver_counts_test.py PATH-OF-PAWL
"""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import deliver_test  # noqa: E402  (takes the program off the words)
import pg  # noqa: E402
import tap  # noqa: E402
from commands import CLEAN  # noqa: E402
from running import wait_for  # noqa: E402

ROLE = "deliverer"
BATCH = 8  # as many as go to an endpoint at once that has not answered yet
SINGLES = 10  # events, one after the other
BOUNDS_MOST = 5  # of their calls: the first of a connection, and those of a connection that took long to come about
SETTLES_MOST = 2  # of a batch
REFUSED_MOST = 1  # of these: after a settle that would not do as a whole the next one is not tried so


class StatementsTest(deliver_test.Base, unittest.TestCase):
    world = None

    def setUp(self):
        self.database = self.world.database(1)
        self.world.sql(self.database, f"do $$ begin if to_regrole('{ROLE}') is null then create role {ROLE} login; end if; end $$;"
                                      f" select pawl.grant_runtime('{ROLE}')")
        self.env = self.env_as(self.world.server.user)
        self.start_server()

    def env_as(self, role):
        return {**CLEAN, "DATABASE_URL": f"postgresql:///{self.database}?host={self.world.server.folder}&user={role}"}

    def statements(self, text):
        """(calls, rows) of the deliverer's statements that have this in them."""
        (row,) = self.world.sql(self.database, "select coalesce(sum(calls), 0), coalesce(sum(rows), 0) from pg_stat_statements s join"
                                f" pg_roles r on r.oid = s.userid where rolname = '{ROLE}' and query like '%{text}%'")
        return int(row[0]), int(row[1])

    def settles(self):
        """How many statements have settled jobs: each by itself, and all together."""
        return self.statements("pawl.settle")[0], self.statements("pawl.succeed_all")[0]

    def publish_some(self, count):
        self.world.sql(self.database, f"select pawl.publish('order.created', convert_to('{{}}', 'UTF8')) from generate_series(1, {count})")

    def test_statements_for_a_batch(self):
        """At most three: one claims all of it, and two end it, although the first to end holds the others up. Nothing else is said
        for it, neither around it nor beside it: what bounds the time of calls is said once for each connection. Where the claim of
        a few jobs finds that there is more to look for (its marks are old, say) it answers one row that says so, and is made anew;
        otherwise its first row says what all jobs share. A settle that was held up does not do as a whole, and is made anew likewise."""
        self.world.sql(self.database, "create extension if not exists pg_stat_statements")
        self.add("crm", "/until/0", "--timeout", "5m")
        env = {**self.env, "DATABASE_URL": self.env_as(ROLE)["DATABASE_URL"]}
        with self.deliver("--verbose", "--call-timeout", "60s", env=env) as run, self.world.session(self.database) as session:
            self.publish_some(BATCH)
            wait_for(lambda: self.server.waiting == BATCH)
            self.server.released = True
            self.wait_states("crm", *["Succeeded"] * BATCH)
            self.assertGreater(self.statements("set_config")[0], 0)
            self.world.sql(self.database, "select pg_stat_statements_reset()")
            for number in range(SINGLES):
                self.publish_some(1)
                self.wait_states("crm", *["Succeeded"] * (BATCH + number + 1))
            self.assertGreaterEqual(self.statements("pawl.claim")[0] + sum(self.settles()), 2 * SINGLES)
            self.assertLessEqual(self.statements("set_config")[0], BOUNDS_MOST)
            self.server.released = False
            wait_for(lambda: len(run.events("JOB-OVER")) == BATCH + SINGLES)
            session.run("begin")
            session.run("lock table pawl.job in access exclusive mode")  # a claim is held up, and all before it was told
            wait_for(lambda: self.world.sql(self.database, "select 1 from pg_stat_activity where wait_event_type = 'Lock' and"
                                            f" usename = '{ROLE}' and query like '%pawl.claim%'"))
            self.world.sql(self.database, "select pg_stat_statements_reset()")
            before = len(run.events("CALL"))
            session.run("commit")
            waiting = self.server.waiting
            self.publish_some(BATCH)
            wait_for(lambda: self.server.waiting == waiting + BATCH)
            session.run("begin")
            session.run("select id from pawl.job for update")
            self.server.released = True
            wait_for(lambda: len(run.events("DELIVERY")) == 2 * BATCH + SINGLES)
            session.run("commit")
            self.wait_states("crm", *["Succeeded"] * (2 * BATCH + SINGLES))
            for word in ("begin", "commit", "set "):
                self.assertEqual(self.statements(word)[0], 0, word)
            self.assertEqual(run.end(), 0)
            calls = run.events("CALL")[before:]

        def told(verb):
            return [int(e["rows"]) for e in calls if e["verb"] == verb]
        self.assertEqual([rows for rows in told("claim") if rows > 0], [BATCH])
        self.assertLessEqual(len(told("settle")), SETTLES_MOST)
        (few, few_rows), (lines, lines_rows) = self.statements("pawl.claim_few"), self.statements("pawl.claim_lines")
        refused = few + lines - len(told("claim"))
        self.assertIn(refused, range(lines + 1))
        self.assertIn((few_rows - refused, lines_rows), [(1 + BATCH, 0), (0, BATCH)])
        each, together = self.settles()
        refused = each + together - len(told("settle"))
        self.assertIn(refused, range(min(each, together, REFUSED_MOST) + 1))
        self.assertEqual(sum(told("settle")), BATCH)
        self.assertLessEqual(1 + each + together, 1 + SETTLES_MOST + REFUSED_MOST)

    def test_all_goes_through_the_port(self):
        """NFR-006: whoever delivers says nothing to the database but calls of the store's functions, renewals among them."""
        self.world.sql(self.database, "create extension if not exists pg_stat_statements")
        self.add("crm", "/hang", "--timeout", "5m", "--lease", "12s")
        self.world.sql(self.database, "select pg_stat_statements_reset()")
        env = {**self.env, "DATABASE_URL": self.env_as(ROLE)["DATABASE_URL"]}
        with self.deliver("--verbose", env=env) as run:
            self.publish_some(BATCH)
            wait_for(lambda: [e for e in run.events("CALL") if e["verb"] == "renew"])
            self.server.released = True
            self.wait_states("crm", *["Succeeded"] * BATCH)
            self.assertEqual(run.end(), 0)
        said = [row[0] for row in self.world.sql(
            self.database, "select query from pg_stat_statements s join pg_roles r on r.oid = s.userid where rolname ="
            f" '{ROLE}' and toplevel")]
        self.assertTrue([text for text in said if "pawl.renew" in text], said)
        for text in said:
            self.assertRegex(text, r"(?s)^(select (.* from )?pawl\.\w+\(|select pg_catalog\.set_config\(|select pg_notify\(|listen )")


if __name__ == "__main__":
    settings = ("fsync=off", "shared_preload_libraries=pg_stat_statements")
    with pg.World(deliver_test.Store.program, settings=settings) as StatementsTest.world:
        tap.main()
