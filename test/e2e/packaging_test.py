#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packaging_test.py - what packaging/ has for operators, against the program: alerts, dashboard, units."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import yaml

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import tap  # noqa: E402
from running import CLEAN  # noqa: E402
from serving import Server  # noqa: E402

PAWL = sys.argv[1]
UNITS = Path(sys.argv[2])  # where meson has made them
EXPOSURE_MAX = 25  # of systemd's scale from 0 to 100
ALERTS = TOP / "packaging" / "prometheus" / "pawl-alerts.yml"
DASHBOARD = TOP / "packaging" / "grafana" / "pawl.json"
FUNCTIONS = {"max", "min", "sum", "by", "rate", "increase", "time", "histogram_quantile", "and", "on", "count"}


def documented_labels():
    """Metric -> its labels, from the documents, which other tests hold against the program."""
    labels = {}
    text = (TOP / "docs" / "metrics.md").read_text(encoding="utf-8")
    for name, found in re.findall(r"^\| `(\w+)` \| \w+ \| (.*?) \|", text, re.MULTILINE):
        labels[name] = set(re.findall(r"`(\w+)`", found))
    text = (TOP / "docs" / "serve.md").read_text(encoding="utf-8")
    for name, found in re.findall(r"^\| `(pawl_http_\w+)` \| \w+ \| (.*?) \|", text, re.MULTILINE):
        labels[name] = set(re.findall(r"`([a-z_]+)`", found))
    return labels


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="pawl-packaging-") as folder, Server(PAWL, folder) as server:
            text = server.up().metrics()
        cls.types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
        cls.labels = documented_labels()

    def check(self, expression, where):
        """Each metric is there, is used as its type allows, and has the labels that are asked of it."""
        self.assertEqual(expression.count("("), expression.count(")"), where)
        bare = re.sub(r'"[^"]*"', '""', expression)
        names = set(re.findall(r"\b(?:pawl|process)_\w+\b", bare))
        self.assertTrue(names, where)
        labels = {"instance", "le"} if "_bucket" in bare else {"instance"}
        for name in names:
            base = name if name in self.types else re.sub(r"_(bucket|sum|count)$", "", name)
            self.assertIn(base, self.types, where)
            self.assertEqual(base != name, self.types[base] == "histogram", where)
            is_counted = bool(re.search(rf"\b(rate|increase)\({name}\b", bare))
            self.assertEqual(is_counted, self.types[base] != "gauge", (where, name))
            labels |= self.labels[base]
        asked = set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)\s*\"", bare))
        for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", bare):
            asked |= {word.strip() for word in group.split(",")}
        self.assertLessEqual(asked, labels, where)
        words = set(re.findall(r"(?<![\w$])[a-z_]+(?!\w)", re.sub(r"\{[^}]*\}|\[\w+\]|\d+(e\d+)?", "", bare)))
        self.assertLessEqual(words, FUNCTIONS | names | asked, where)

    def test_alerts_name_what_there_is(self):
        document = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))
        events = (TOP / "docs" / "logs.md").read_text(encoding="utf-8")
        commands = set(subprocess.run([PAWL, "help"], env=CLEAN, capture_output=True, text=True, check=True).stdout.split())
        seen = set()
        for group in document["groups"]:
            for rule in group["rules"]:
                name = rule["alert"]
                self.assertNotIn(name, seen)
                seen.add(name)
                self.check(rule["expr"], name)
                self.assertIn(rule["labels"]["severity"], ("page", "ticket"), name)
                self.assertTrue(rule["annotations"]["summary"], name)
                self.assertRegex(rule.get("for", "1m"), r"^\d+[smh]$", name)
                told = " ".join(rule["annotations"].values())
                for event in re.findall(r"\b[A-Z]+-[A-Z]+\b", told):
                    self.assertTrue(f"| `{event}` |" in events, (name, event))
                for command in re.findall(r"\bpawl ([a-z]+)", told):
                    self.assertIn(command, commands, name)
                for label in re.findall(r"\$labels\.(\w+)", told):
                    self.assertIn(label, " ".join(re.findall(r"by \(([^)]*)\)", rule["expr"])), name)
        self.assertGreater(len(seen), 15)

    def test_the_dashboard_shows_what_there_is(self):
        panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        taken = set()
        for panel in panels:
            grid = panel["gridPos"]
            area = {(x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])}
            self.assertFalse(area & taken, panel["title"])
            self.assertLessEqual(grid["x"] + grid["w"], 24)
            taken |= area
            if panel["type"] == "row":
                continue
            self.assertTrue(panel["targets"])
            for target in panel["targets"]:
                self.check(target["expr"], panel["title"])
                legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                self.assertLessEqual(legend, set(re.findall(r"\w+", target["expr"])) | {"instance"}, panel["title"])

    def test_what_is_wrong_would_be_seen(self):
        for wrong in ("sum(pawl_nothing)", "rate(pawl_slots_max[5m])", "sum(pawl_jobs_total)", "sum by (verb) (rate(pawl_jobs_total[5m]))",
                      "sum(rate(pawl_jobs_total{queu=\"x\"}[5m]))", "max(pawl_job_run_seconds)", "sum(pawl_slots_max", "summ(pawl_slots_max)"):
            with self.assertRaises(AssertionError):
                self.check(wrong, wrong)
                print(f"# not seen: {wrong}")


class Manual(unittest.TestCase):
    def test_operators_are_told_of_commands_and_options_that_exist(self):
        text = (TOP / "docs" / "operators.md").read_text(encoding="utf-8")
        lines = re.findall(r"`(pawl [^`\n]+)`", text) + re.findall(r"^(pawl .*)$", text, re.MULTILINE)
        self.assertGreater(len(lines), 20)
        helps = {}
        for line in lines:
            command = line.split()[1]
            if command not in helps:
                helps[command] = subprocess.run([PAWL, "help", command], env=CLEAN, capture_output=True, text=True, check=True).stdout
            for option in re.findall(r"(?<!\S)--[a-z-]+", line):
                self.assertRegex(helps[command], rf"(?<!\S){option}(?!\S)", line)


@unittest.skipUnless(shutil.which("systemd-analyze"), "there is no systemd-analyze")
class Units(unittest.TestCase):
    """As systemd reads them. Nothing is started."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pawl-units-")
        self.addCleanup(folder.cleanup)
        self.units = []
        for unit in sorted(UNITS.glob("pawl-*.service")):
            text = unit.read_text(encoding="utf-8")
            text = re.sub(r"^ExecStart=\S+/pawl ", f"ExecStart={Path(PAWL).resolve()} ", text, flags=re.MULTILINE)
            self.units.append(Path(folder.name) / unit.name.replace("@", "@mail"))
            self.units[-1].write_text(text, encoding="utf-8")
        self.assertEqual(len(self.units), 3)

    def test_they_are_well_formed(self):
        for unit in self.units:
            done = subprocess.run(["systemd-analyze", "verify", "--recursive-errors=no", "--man=no", unit], capture_output=True,
                                  text=True, check=False, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), unit.name)

    def test_they_are_hardened(self):
        for unit in self.units:
            done = subprocess.run(["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", unit],
                                  capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)

    def test_what_they_start_is_understood(self):
        for unit in self.units:
            words = re.search(r"^ExecStart=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE).group(1).split()
            known = subprocess.run([PAWL, "help", words[1]], env=CLEAN, capture_output=True, text=True, check=True).stdout
            for word in words[2:]:
                if word.startswith("--") and word != "--":
                    self.assertIn(f"  {word} ", known)


if __name__ == "__main__":
    tap.main()
