#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve_pg_test.py - `pawl serve` on PostgreSQL: cases of serve_test.py, on a server that the test starts."""

import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
sys.path.insert(0, str(TOP / "test" / "e2e"))
import pg  # noqa: E402
import serve_test  # noqa: E402
import tap  # noqa: E402


class Pg:
    """Each case finds the database as it is after the migration."""

    world = None
    database = None

    def setUp(self):
        super().setUp()
        Pg.database = self.world.database(2, "serve")

    @classmethod
    def store_of(cls, _):
        server = cls.world.server
        return f"postgresql:///{Pg.database}?host={server.folder}&user={server.user}"


class Protocol(Pg, serve_test.Protocol):
    pass


class OpenApi(Pg, serve_test.OpenApi):
    pass


class Changes(Pg, serve_test.Changes):
    pass


class Once(Pg, serve_test.Once):
    STATEMENTS = {
        "under way": "update pawl.once set answer = null, held_until = held_until + interval '1 day' returning 1",
        "died": "update pawl.once set answer = null, held_until = at returning 1",
        "expired": "update pawl.once set expires_at = at returning 1",
        "gone": "delete from pawl.once returning 1",
        "there": "select 1 from pawl.once",
    }

    def change(self, what):
        return len(self.world.sql(Pg.database, self.STATEMENTS[what]))


class Webhooks(Pg, serve_test.Webhooks):
    pass


class Workers(Pg, serve_test.Workers):
    pass


class Ending(Pg, serve_test.Ending):
    pass


if __name__ == "__main__":
    serve_test.Server.store_of = Pg.store_of
    with pg.World(serve_test.PAWL) as Pg.world:
        tap.main()
