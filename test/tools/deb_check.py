#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deb_check.py FOLDER - installs the Debian packages in FOLDER, starts what the service would start, removes and purges them.

All of it happens in a copy of this machine's files that ends with the test: an overlay that only this process and its
children see, in namespaces of their own. That takes root; without it the tests are skipped. There is no systemd in there:
the maintainer scripts run for real, and the unit's command is started by hand, as the unit's user, with its environment.
"""

import fcntl
import grp
import http.client
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import unittest
from pathlib import Path

INSIDE = Path("/pawl-deb-check")
TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(INSIDE if INSIDE.is_dir() else TOP / "test" / "support"))
import tap  # noqa: E402

SECONDS = 60
ENTER = """
set -eu
mount -t tmpfs tmpfs "$1"
mkdir "$1/up" "$1/work" "$1/tree"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" "$1/tree"
mount -t proc proc "$1/tree/proc"
mount --rbind /dev "$1/tree/dev"
mount -t tmpfs tmpfs "$1/tree/tmp"
mkdir "$1/tree{inside}"
cp "$2"/*.deb "$3" "$4" "$1/tree{inside}"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
    chroot "$1/tree" /usr/bin/python3 {inside}/deb_check.py --inside
""".replace("{inside}", str(INSIDE))


def run(*words, is_checked=True):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=SECONDS)
    if is_checked and done.returncode != 0:
        raise AssertionError(f"{words}: exit {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def raise_loopback():
    """A new network namespace has its loopback down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP


class Unit:
    """What a unit file says."""

    def __init__(self, path):
        self.rows = re.findall(r"^(\w+)=(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)

    def all(self, name):
        return [value for key, value in self.rows if key == name]

    def one(self, name):
        (value,) = self.all(name)
        return value


class Package(unittest.TestCase):
    def install(self):
        run("dpkg", "-i", *(p for p in sorted(INSIDE.glob("*.deb")) if "-dbgsym_" not in p.name))

    def start(self):
        """The unit's command, until it says that it is ready."""
        unit = Unit(Path("/lib/systemd/system/pawl-serve.service"))
        user = pwd.getpwnam(unit.one("User"))
        group = grp.getgrnam(unit.one("Group"))
        path = "/tmp/notify"
        Path(path).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            os.chmod(path, 0o777)
            manager.settimeout(SECONDS)
            env = dict(word.split("=", 1) for value in unit.all("Environment") for word in value.split())
            process = subprocess.Popen(unit.one("ExecStart").split(), env={**env, "NOTIFY_SOCKET": path}, user=user.pw_uid,
                                       group=group.gr_gid, extra_groups=[], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.kill)
            said = manager.recv(100)
            self.assertEqual(said, b"READY=1")
        return process

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", 7295, timeout=SECONDS)
        connection.request(method, path, body)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(SECONDS), 0)

    def owner(self, path):
        at = os.stat(path)
        return pwd.getpwuid(at.st_uid).pw_name, grp.getgrgid(at.st_gid).gr_name, stat.S_IMODE(at.st_mode)

    def test_install_start_by_hand_upgrade_remove_purge(self):
        files_before = {p for p in map(Path, ("/etc/pawl", "/var/lib/pawl", "/usr/bin/pawl")) if p.exists()}
        self.assertEqual(files_before, set(), "Pawl is installed on this machine already")
        self.install()
        listed = [Path(p) for name in ("pawl", "libpawl0", "libpawl-dev") for p in run("dpkg", "-L", name).splitlines()]
        self.assertIn(Path("/usr/share/man/man1/pawl-serve.1.gz"), listed)
        self.assertEqual(self.owner("/etc/pawl"), ("root", "pawl", 0o750))
        self.assertEqual(self.owner("/etc/pawl/pawl.conf"), ("root", "pawl", 0o640))
        self.assertEqual(self.owner("/var/lib/pawl"), ("pawl", "pawl", 0o750))
        wanted = Path("/etc/systemd/system/multi-user.target.wants")
        self.assertEqual([p.name for p in wanted.glob("pawl-*")], ["pawl-serve.service"])
        self.assertEqual(run("pkg-config", "--modversion", "pawl"), run("pawl", "version").split()[1] + "\n")

        process = self.start()
        self.assertEqual(self.ask("POST", "/v1/queues/q/jobs", "x")[0], 201)
        self.end(process)
        self.assertEqual(self.owner("/var/lib/pawl/pawl.db")[:2], ("pawl", "pawl"))

        with open("/etc/pawl/pawl.conf", "a", encoding="utf-8") as file:
            file.write("# mine\n")
        self.install()  # once more, as an upgrade does
        self.assertIn("# mine", Path("/etc/pawl/pawl.conf").read_text(encoding="utf-8"))
        process = self.start()
        status, body = self.ask("GET", "/v1/queues/q/stats")
        self.assertEqual(status, 200)
        self.assertIn(b'"ready":1', body)
        self.end(process)

        run("dpkg", "-r", "pawl", "libpawl-dev", "libpawl0")
        self.assertFalse(Path("/usr/bin/pawl").exists())
        self.assertTrue(Path("/etc/pawl/pawl.conf").exists() and Path("/var/lib/pawl/pawl.db").exists())

        # The jobs are left, with the user whose they are, and it is said where.
        said = run("sh", "-c", "dpkg -P pawl libpawl-dev libpawl0 2>&1")
        self.assertIn("/var/lib/pawl", said)
        self.assertFalse(Path("/etc/pawl").exists())
        self.assertEqual(self.owner("/var/lib/pawl/pawl.db")[:2], ("pawl", "pawl"))
        self.install()  # and are there again
        process = self.start()
        self.assertIn(b'"ready":1', self.ask("GET", "/v1/queues/q/stats")[1])
        self.end(process)
        shutil.rmtree("/var/lib/pawl")
        run("dpkg", "-P", "pawl", "libpawl-dev", "libpawl0")
        self.assertEqual([str(p) for p in listed if os.path.lexists(p) and not p.is_dir()], [])
        left = [p for p in map(Path, ("/etc/pawl", "/var/lib/pawl", "/usr/share/pawl", "/usr/share/doc/pawl")) if p.exists()]
        self.assertEqual(left, [])
        for folder in ("/etc/systemd", "/var/lib/systemd"):
            self.assertEqual([str(p) for p in Path(folder).glob("**/pawl*")], [])
        with self.assertRaises(KeyError):
            pwd.getpwnam("pawl")


def enter(folder):
    """Run this program inside the copy. Gives None where that cannot be had, with the reason said as TAP does."""
    tools = [name for name in ("unshare", "mount", "chroot", "dpkg") if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
    reason = f"there is no {tools[0]}" if tools else "it takes root" if os.geteuid() != 0 else None
    if reason is None:
        scratch = Path("/tmp") / f"pawl-deb-{os.getpid()}"
        scratch.mkdir()
        try:
            done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "sh", "-c", ENTER, "sh",
                                   scratch, folder, Path(__file__).resolve(), TOP / "test" / "support" / "tap.py"], check=False)
        finally:
            scratch.rmdir()
        return done.returncode
    print(f"1..1\nok 1 - Package # SKIP {reason}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--inside"]:
        raise_loopback()
        tap.main()
    sys.exit(enter(Path(sys.argv[1]).resolve()))
