#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cli_test.py - the program `pawl` from outside: its words, its exit codes, the story of `pawl demo`.

Usage: cli_test.py PATH-OF-PAWL
"""

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import tap  # noqa: E402

PAWL = sys.argv.pop()
USAGE, IO_ERROR = 64, 74  # sysexits
LEASE_MS = 30000


def pawl(*words, stdout=subprocess.PIPE, **more):
    return subprocess.run([PAWL, *words], stdout=stdout, stderr=subprocess.PIPE, text=True,
                          check=False, stdin=subprocess.DEVNULL, timeout=60, **more)


def demo():
    done = pawl("demo", "--json")
    return json.loads(done.stdout)


class WordsTest(unittest.TestCase):
    def assert_refused(self, words, *complaints):
        done = pawl(*words)
        self.assertEqual(done.returncode, USAGE, done.stderr)
        self.assertEqual(done.stdout, "")
        for complaint in complaints:
            self.assertIn(complaint, done.stderr)

    def test_help_is_on_standard_output(self):
        for words in (("help",), ("--help",), ("-h",)):
            done = pawl(*words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for command in ("demo", "help", "version"):
                self.assertRegex(done.stdout, rf"(?m)^  {command} ")

    def test_help_of_a_command(self):
        for words in (("demo", "--help"), ("demo", "--json", "-h")):
            done = pawl(*words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("usage: pawl demo [--json]", done.stdout)

    def test_version(self):
        for words in (("version",), ("--version",)):
            done = pawl(*words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, r"^pawl \d+\.\d+\.\d+\n$")

    def test_no_command(self):
        self.assert_refused((), "usage: pawl COMMAND", "demo")

    def test_unknown_command_with_a_guess(self):
        self.assert_refused(("dmeo",), 'unknown command "dmeo"', "did you mean demo?")

    def test_unknown_command_without_a_guess(self):
        done = pawl("frobnicate")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn('unknown command "frobnicate"', done.stderr)
        self.assertNotIn("did you mean", done.stderr)

    def test_migrate_needs_an_action(self):
        self.assert_refused(("migrate",), "say status, plan or up")
        self.assert_refused(("migrate", "stats"), "did you mean status?")
        self.assert_refused(("migrate", "up", "--store"), "--store needs a value")
        self.assert_refused(("migrate", "up", "--shards", "x"),
                            '--shards is "x"; it must be a whole number from 1 to 4096')

    def test_no_word_shows_a_password(self):
        """NFR-003: connection strings and passwords appear in no error."""
        secret = "canary-51c0"
        url = f"postgresql://user:{secret}@127.0.0.1:1/db"
        for words in (("migrate", "status", url), ("migrate", "status", f"--stoer={url}"),
                      ("migrate", "status", "--store", url), ("migrate", "up", f"--store={url}"),
                      ("migrate", "plan", "--store", f"password={secret} nonsense"),
                      ("migrate", "status", f"password={secret}")):
            done = pawl(*words)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertNotEqual(done.stderr, "")
            self.assertNotIn(secret, done.stderr + done.stdout)

    def test_unknown_option_before_the_command(self):
        self.assert_refused(("--jsno",), 'unknown option "--jsno"')

    def test_unknown_option_with_a_guess(self):
        self.assert_refused(("demo", "--jsn"), 'pawl demo: unknown option "--jsn"',
                            "did you mean --json?")

    def test_arguments_that_nobody_takes(self):
        self.assert_refused(("demo", "now"), 'unknown argument "now"')
        self.assert_refused(("demo", "--json", ""), 'unknown argument ""')
        self.assert_refused(("version", "--all"), 'pawl version: unknown option "--all"')
        self.assert_refused(("help", "me"), 'pawl help: unknown command "me"')
        self.assert_refused(("help", "demo", "me"), 'pawl help: unknown argument "me"')


class EveryCommandTest(unittest.TestCase):
    """What each command and each action has, from the one table."""

    WITHOUT_JSON = {"completion", "help"}  # they print what shells, readers and people read

    @classmethod
    def setUpClass(cls):
        shells = {shell: pawl("completion", shell).stdout for shell in ("bash", "fish", "zsh")}
        cls.table = {name: words.split() for name, words in re.findall(r"(?m)^ +'([a-z ]+)'\) echo '(.*)' ;;$", shells["bash"])}
        cls.others = (shells["fish"], shells["zsh"])

    def test_help_options_and_completion(self):
        self.assertGreater(len(self.table), 25)
        for name, words in self.table.items():
            done = pawl(*name.split(), "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertTrue(" " in name or "\nexamples:\n" in done.stdout, name)
            has_actions = not words[0].startswith("--")
            self.assertEqual("--json" in words, not has_actions and name not in self.WITHOUT_JSON, name)
            for option in (w for w in words if w.startswith("--") and w != "--help"):
                self.assertIn(f"  {option}", done.stdout, name)
                for text in self.others:
                    self.assertRegex(text, rf"{option}\b|-l '?{option[2:]}\b", name)

    def test_manual_pages(self):
        build = (TOP / "src" / "meson.build").read_text(encoding="utf-8")
        pages = set(re.findall(r"'([a-z]+)'", re.search(r"man_commands = \[(.*?)\]", build, re.S)[1]))
        self.assertEqual(pages, {name.split()[0] for name in self.table})
        for name in pages:
            page = pawl("help", "--scdoc", name).stdout
            self.assertIn("# EXAMPLES", page, name)
            for option in (w for n, words in self.table.items() if n.split()[0] == name for w in words
                           if w.startswith("--") and w != "--help"):
                self.assertIn("*" + option.replace("-", "\\-") + "*", page, name)

    def test_an_option_that_is_nearly_right(self):
        for name, words in self.table.items():
            option = next((w for w in words if w.startswith("--") and len(w) > 6), None)
            if option is None or option == "--help":
                continue
            wrong = option[:3] + option[4:]  # a letter is missing
            done = pawl(*name.split(), wrong)
            self.assertEqual(done.returncode, USAGE, name)
            self.assertIn(f'unknown option "{wrong}"', done.stderr)
            self.assertIn(f"did you mean {option}?", done.stderr)


class OutputTest(unittest.TestCase):
    def test_full_disk(self):
        for words in (("demo",), ("demo", "--json"), ("help",), ("version",)):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = pawl(*words, stdout=full)
            self.assertEqual(done.returncode, IO_ERROR, words)
            self.assertIn("cannot write the output", done.stderr)

    def test_reader_that_went_away(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = pawl("demo", stdout=writer)
        os.close(writer)
        self.assertEqual(done.returncode, IO_ERROR)
        self.assertIn("cannot write the output", done.stderr)

    def test_closed_output(self):
        done = subprocess.run(["sh", "-c", 'exec "$0" demo >&-', PAWL], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, IO_ERROR)

    def test_wrong_words_stay_wrong_words_on_a_full_disk(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assertEqual(pawl("demo", "--jsn", stdout=full).returncode, USAGE)


class DemoTest(unittest.TestCase):
    def test_every_run_tells_the_same(self):
        for words in (("demo",), ("demo", "--json")):
            first, second = pawl(*words), pawl(*words)
            self.assertEqual((first.returncode, first.stderr), (0, ""))
            self.assertEqual(first.stdout, second.stdout)

    def test_json_is_one_document(self):
        document = demo()
        self.assertEqual(pawl("version").stdout, f"pawl {document['version']}\n")
        self.assertEqual([s["job"]["queue"] for s in document["stories"]],
                         ["mail", "billing", "reports"])

    def test_time_never_goes_back(self):
        times = [step["at_ms"] for story in demo()["stories"] for step in story["steps"]]
        self.assertEqual(times, sorted(times))

    def test_ledgers_are_gapless(self):  # OL-APPEND-ONLY
        for story in demo()["stories"]:
            ledger = story["job"]["ledger"]
            self.assertEqual([r["attempt_no"] for r in ledger], list(range(1, len(ledger) + 1)))

    def test_job_that_succeeds(self):  # Q-ACK
        story = demo()["stories"][0]
        self.assertEqual([s["step"] for s in story["steps"]], ["enqueue", "claim", "turn", "settle"])
        self.assertEqual(story["steps"][-1]["answer"], "OK")
        self.assertEqual(story["job"]["state"], "Succeeded")
        self.assertEqual([r["outcome"] for r in story["job"]["ledger"]], ["DISPATCHED"])

    def test_job_that_is_retried_until_it_is_dead(self):  # Q-RETRY-BOUND, Q-DEAD-LETTER
        job = demo()["stories"][1]["job"]
        self.assertEqual((job["state"], job["reason"]), ("Failed", "exhausted"))
        self.assertEqual((job["retries"], job["max_retries"]), (2, 2))
        self.assertEqual([r["outcome"] for r in job["ledger"]], ["RETRYABLE", "RETRYABLE", "FAILED"])
        self.assertEqual({r["error_code"] for r in job["ledger"]}, {"CARD-DECLINED"})

    def test_retries_wait_for_their_due_time(self):  # Q-RETRY-VISIBLE, Q-BACKOFF
        steps = demo()["stories"][1]["steps"]
        settles = [s for s in steps if s["step"] == "settle"]
        self.assertEqual([s["state"] for s in settles], ["Ready", "Ready", "Failed"])
        for number, settle in enumerate(settles[:-1]):
            delay = settle["due_at_ms"] - settle["at_ms"]
            self.assertTrue(0 <= delay <= 500 * 2 ** number, delay)
            claims = [s for s in steps if s["step"] == "claim" and s["at_ms"] > settle["at_ms"]]
            self.assertEqual((claims[0]["answer"], claims[0]["at_ms"]),
                             ("none", settle["due_at_ms"] - 1))
            self.assertEqual((claims[1]["answer"], claims[1]["at_ms"]), ("OK", settle["due_at_ms"]))

    def test_job_that_loses_its_worker(self):  # Q-TTL, Q-VERSION, RULE-020-021
        story = demo()["stories"][2]
        first, second = [s for s in story["steps"] if s["step"] == "claim"]
        self.assertEqual((first["worker"], second["worker"]), ("worker-a", "worker-b"))
        self.assertEqual(first["lease_expires_at_ms"], first["at_ms"] + LEASE_MS)
        self.assertEqual((first["lease_version"], second["lease_version"]), (1, 2))
        reap = next(s for s in story["steps"] if s["step"] == "reap")
        self.assertEqual((reap["answer"], reap["state"], reap["worker"]),
                         ("expired", "Ready", "worker-a"))
        self.assertGreaterEqual(reap["at_ms"], first["lease_expires_at_ms"])
        self.assertEqual((story["job"]["state"], story["job"]["lost_leases"]), ("Succeeded", 1))
        self.assertEqual([(r["outcome"], r["worker"]) for r in story["job"]["ledger"]],
                         [("ZOMBIE_REQUEUE", "worker-a"), ("DISPATCHED", "worker-b")])

    def test_late_completions_are_refused(self):  # Q-STALE
        story = demo()["stories"][2]
        settles = [(s["worker"], s["answer"]) for s in story["steps"] if s["step"] == "settle"]
        self.assertEqual(settles, [("worker-a", "STALE"), ("worker-b", "OK"), ("worker-a", "STALE")])
        for step in story["steps"]:
            self.assertTrue(step.get("answer") != "STALE" or "state" not in step)

    def test_queues_add_up(self):
        document = demo()
        self.assertEqual({q["queue"]: (q["ready"], q["in_flight"], q["succeeded"], q["failed"])
                          for q in document["queues"]},
                         {"mail": (0, 0, 1, 0), "billing": (0, 0, 0, 1), "reports": (0, 0, 1, 0)})

    def test_no_token_is_shown(self):
        self.assertNotIn("token", pawl("demo", "--json").stdout)

    def test_text_tells_what_json_tells(self):
        text, document = pawl("demo").stdout, demo()
        lines = iter(text.split("\n"))
        for story in document["stories"]:
            self.assertIn(story["title"], lines)
            for step in story["steps"]:
                # In this order, somewhere further down: time, step, worker, answer, what it means.
                seconds = f"{step['at_ms'] // 1000}.{step['at_ms'] % 1000:03} s"
                words = [seconds, step["step"], step.get("worker", ""), step.get("answer", ""),
                         step.get("note", step.get("state", ""))]
                pattern = r"\s+" + r"\s+".join(re.escape(w) for w in words if w) + r"\b.*"
                self.assertTrue(any(re.fullmatch(pattern, line) for line in lines), pattern)
            for row in story["job"]["ledger"]:
                pattern = rf"\s+{row['attempt_no']}\s+{row['outcome']}\s+{row['reason']}\s+.*"
                self.assertTrue(any(re.fullmatch(pattern, line) for line in lines), pattern)

    def test_text_needs_no_wide_terminal(self):
        self.assertLessEqual(max(len(line) for line in pawl("demo").stdout.split("\n")), 100)


if __name__ == "__main__":
    tap.main()
