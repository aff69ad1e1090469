#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""standard_webhooks_test.py - the package `standardwebhooks` of npm, which receivers use, verifies what `pawl deliver` sends; and
libcrypto the signatures that the package does not know.

Usage: standard_webhooks_test.py BUILD-FOLDER PATH-OF-PAWL
The package is installed into the build folder, by the lock file that stands beside this: the same bytes, or none.
"""

import base64
import fcntl
import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import deliver_test  # noqa: E402  (takes the program off the words)
import tap  # noqa: E402
from running import wait_for  # noqa: E402

BUILD = Path(sys.argv.pop()).resolve()
LOCKED = Path(__file__).resolve().parent / "standardwebhooks"
# As RFC 8410 writes it: what stands before the 32 bytes of a public key.
ED25519 = bytes.fromhex("302a300506032b6570032100")


def install():
    """The folder in which the package is. Several tests may want it at once."""
    folder = BUILD / "standardwebhooks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = (LOCKED / "package-lock.json").read_bytes()
        installed = folder / "installed.json"
        if installed.exists() and installed.read_bytes() == wanted:
            return folder
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(LOCKED / name, folder / name)
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, capture_output=True, text=True,
                              check=False, timeout=240, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise AssertionError(f"npm could not install standardwebhooks: {done.stderr}")
        shutil.copyfile(LOCKED / "package-lock.json", installed)
    return folder


class PackageTest(deliver_test.Base, unittest.TestCase):
    setUp = deliver_test.SqliteTest.setUp
    package = None

    @classmethod
    def setUpClass(cls):
        cls.package = install()

    def verify(self, *rows):
        """What the package says of each (secret, request)."""
        lines = [json.dumps({"secret": secret, "headers": request["headers"], "body": request["body"]}) for secret, request in rows]
        done = subprocess.run(["node", LOCKED / "verify.js", self.package], input="\n".join(lines) + "\n", capture_output=True,
                              text=True, check=True, timeout=120)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(answers), len(rows))
        return answers

    def is_verified_by_key(self, public, request, signature):
        """Whether a v1a signature is that of a public key, by openssl."""
        headers = request["headers"]
        what = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + deliver_test.body(request)
        key = ED25519 + base64.b64decode(public.removeprefix("whpk_"))
        folder = Path(self.folder)
        for name, data in (("key", key), ("what", what), ("signature", base64.b64decode(signature.removeprefix("v1a,")))):
            (folder / name).write_bytes(data)
        done = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "key", "-keyform", "DER", "-rawin", "-in", "what",
                               "-sigfile", "signature"], cwd=folder, capture_output=True, check=False, timeout=60)
        return done.returncode == 0

    def test_what_it_says_of_deliveries(self):
        """Each is verified; none with another secret, another body, another id or another time."""
        secret = self.add("crm", "/first/1/500")
        payload = '{"text": "Größe 🦀", "number": 17}'
        with self.deliver():
            self.publish(payload=payload)
            self.wait_states("crm", "Succeeded")
        first, again = self.server.of("/first/1/500")
        other = "whsec_" + base64.b64encode(b"another secret of 24 byte").decode()
        spoilt = [{**again, "body": base64.b64encode(payload.encode() + b" ").decode()}]
        for name, value in (("webhook-id", "evt_other"), ("webhook-timestamp", str(int(again["headers"]["webhook-timestamp"]) - 1))):
            spoilt.append({**again, "headers": {**again["headers"], name: value}})
        good_1, good_2, *bad = self.verify((secret, first), (secret, again), (other, again), *((secret, s) for s in spoilt))
        self.assertEqual([good_1, good_2], [{"ok": True, "payload": json.loads(payload)}] * 2)
        self.assertEqual([b["ok"] for b in bad], [False] * 4)
        self.assertEqual({b["error"] for b in bad}, {"WebhookVerificationError: No matching signature found"})

    def test_while_secrets_are_rotated(self):
        """Receivers with the old secret, with the new one, and with the public key all verify the same request."""
        old = self.add("crm", "/ok/crm")
        with self.deliver():
            self.publish()
            self.wait_requests("/ok/crm", 1)
            new = self.json("endpoint", "rotate", "crm")["secret"]
            pair = self.json("endpoint", "rotate", "crm", "--key-pair")

            def last():
                self.publish()
                request = self.server.of("/ok/crm")[-1]
                return len(deliver_test.signatures(request)) == 3 and request
            request = wait_for(last)
        answers = self.verify((old, request), (new, request), (old, self.server.of("/ok/crm")[0]), (new, self.server.of("/ok/crm")[0]))
        self.assertEqual([a["ok"] for a in answers], [True, True, True, False])
        by_key = deliver_test.signatures(request)[0]
        self.assertTrue(self.is_verified_by_key(pair["public_key"], request, by_key))
        spoilt = {**request, "body": base64.b64encode(b"{}").decode()}
        self.assertFalse(self.is_verified_by_key(pair["public_key"], spoilt, by_key))

    def test_structured_events(self):
        secret = self.add("crm", "/ok/crm", "--format", "cloudevents-structured")
        with self.deliver():
            event = self.publish()
            (request,) = self.wait_requests("/ok/crm", 1)
        (answer,) = self.verify((secret, request))
        self.assertEqual((answer["ok"], answer["payload"]["id"], answer["payload"]["data"]), (True, event, {"order": 17}))


if __name__ == "__main__":
    tap.main()
