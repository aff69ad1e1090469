#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tidy_test.py - breaks each rule of tools/tidy once, in a small tree of its own."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "test" / "support"))
import tap  # noqa: E402

SPDX = "SPDX-License-Identifier: Apache-2.0"


def c_file(name, body=""):
    return (f"/*\n * {SPDX}\n *\n * {name} - something.\n"
            f" * Owns:  its subject.\n * Never: anything else.\n */\n{body}")


def h_file(guard, body=""):
    return f"/* {SPDX} */\n#ifndef {guard}\n#define {guard}\n{body}\n#endif\n"


def function_of(lines, name="pawli_long"):
    """A function of exactly so many lines."""
    return f"void {name}(void)\n{{\n" + "    ;\n" * (lines - 3) + "}\n"


CLEAN = {
    "meson.build": f"# {SPDX}\n",
    "include/pawl/pawl.h": h_file("PAWL_PAWL_H", """
#ifdef __cplusplus
extern "C" {
#endif
#define PAWL_API __attribute__((visibility("default")))
/* One. */
PAWL_API int pawl_one(void);
PAWL_API const char *pawl_two(
    int number);
#ifdef __cplusplus
}
#endif
"""),
    "src/base/banned.h": h_file("PAWLI_BASE_BANNED_H", "#pragma GCC poison gets"),
    "src/base/text.h": h_file("PAWLI_BASE_TEXT_H", "int pawli_text(int a);"),
    "src/base/text.c": c_file("text.c", """#include "base/text.h"
static const char *const NAMES[] = {"}", "{", "/* no comment"};
int pawli_text(int a)
{
    return NAMES[a][0] == '}' ? '"' : a;
}
"""),
    "src/core/job.c": c_file("job.c", """#include "pawl/pawl.h"
#include "base/text.h"
#include <string.h>
int pawl_one(void)
{
    return pawli_text((int)strlen("one"));
}
"""),
    "src/store/memory.c": c_file("memory.c", """#include "pawl/pawl.h"
#include "base/text.h"
const char *pawl_two(int number)
{
    return pawli_text(number) ? "two" : "";
}
"""),
    "src/store/sqlite/open.h": h_file("PAWLI_STORE_SQLITE_OPEN_H"),
    "src/store/sqlite/open.c": c_file("open.c", """#include "base/text.h"
#include "store/sqlite/open.h"
"""),
    "test/unit/core_job_test.c": f"/* {SPDX} */\nint main(void) {{ return 0; }}\n",
    "test/unit/store_sqlite_locks_test.c": f"/* {SPDX} */\nint main(void) {{ return 0; }}\n",
    "test/unit/base_text_edges_test.c": f"/* {SPDX} */\nint main(void) {{ return 0; }}\n",
    "tools/some": f"#!/bin/sh\n# {SPDX}\n",
}


class TidyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="pawl-tidy-")
        self.addCleanup(self.folder.cleanup)
        self.root = Path(self.folder.name)
        for path, text in CLEAN.items():
            self.write(path, text)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def append(self, path, text):
        self.write(path, (self.root / path).read_text() + text)

    def build(self):
        """Compile src as the real build does, as far as tidy can see."""
        build, entries, objects = self.root / "build", [], []
        build.mkdir()
        for source in sorted(self.root.glob("src/**/*.c")):
            output = "_".join(source.relative_to(self.root / "src").parts) + ".o"
            command = ["gcc", "-std=c11", "-fPIC", "-O1", "-fvisibility=hidden", "-fno-common",
                       "-D_DEFAULT_SOURCE", f"-I{self.root}/include", f"-I{self.root}/src",
                       "-c", str(source), "-o", str(build / output)]
            subprocess.run(command, check=True)
            objects.append(build / output)
            entries.append({"directory": str(build), "file": os.path.relpath(source, build),
                            "output": output, "command": " ".join(command)})
        (build / "compile_commands.json").write_text(json.dumps(entries))
        subprocess.run(["gcc", "-shared", "-o", str(build / "libpawl.so.0.1.0"), *objects],
                       check=True)
        (build / "libpawl.so").symlink_to("libpawl.so.0.1.0")

    def tidy(self, *rules, with_build=False):
        build = []
        if with_build:
            self.build()
            build = ["--build", str(self.root / "build")]
        return subprocess.run([str(TOP / "tools" / "tidy"), "--root", str(self.root), *build, *rules],
                              capture_output=True, text=True, check=False)

    def assert_refused(self, rule, *complaints, with_build=False):
        done = self.tidy(rule, with_build=with_build)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(f"not ok 1 - {rule}: ", done.stdout)
        for complaint in complaints:
            self.assertIn(complaint, done.stdout)

    def assert_accepted(self, rule, with_build=False):
        done = self.tidy(rule, with_build=with_build)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"ok 1 - {rule}: ", done.stdout)

    # ---- a clean tree

    def test_clean_tree_passes_every_rule(self):
        done = self.tidy(with_build=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("not ok", done.stdout)
        self.assertNotIn("SKIP", done.stdout)

    def test_without_build_the_object_rules_are_skipped(self):
        done = self.tidy()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("# SKIP"), 4)

    def test_unknown_rule_is_a_usage_error(self):
        done = self.tidy("no-such-rule")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no-such-rule", done.stderr)

    def test_in_a_git_repository_ignored_files_are_left_alone(self):
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        self.write(".gitignore", "scratch.c\n")
        self.write("src/core/scratch.c", "no licence")
        self.assert_accepted("licence")
        self.write("src/core/fresh.c", "no licence")
        self.assert_refused("licence", "src/core/fresh.c")

    # ---- rules on sources

    def test_arrow_upwards(self):
        self.append("src/core/job.c", '#include "store/sqlite/open.h"\n')
        self.assert_refused("arrows", "src/core/job.c:15: core must not include store/sqlite/open.h")

    def test_client_library_past_the_port(self):
        """NFR-006: no SQL in the worker, the dispatcher or a server."""
        for folder in ("runtime", "webhook", "deliver", "server", "serve", "cli"):
            for number, library in enumerate(("<libpq-fe.h>", '"sqlite3.h"', "<postgresql/libpq-fe.h>")):
                self.write(f"src/{folder}/a{number}.c", c_file(f"a{number}.c", f"# include {library}\n"))
                name = library.strip('<>"').split("/")[-1]
                self.assert_refused("store-port", f"src/{folder}/a{number}.c:8: includes {name} past the store's port")
                (self.root / f"src/{folder}/a{number}.c").unlink()

    def test_client_library_in_its_store(self):
        self.append("src/store/sqlite/open.c", "#include <sqlite3.h>\n")
        self.append("src/core/job.c", "/* not\n#include <libpq-fe.h>\n*/\n")
        self.assert_accepted("store-port")

    def test_arrow_back_from_runtime(self):
        self.write("src/webhook/send.h", h_file("PAWLI_WEBHOOK_SEND_H"))
        self.write("src/runtime/worker.c", c_file("worker.c", '#include "webhook/send.h"\n'))
        self.assert_refused("arrows", "runtime must not include webhook/send.h")

    def test_arrow_between_durable_stores(self):
        self.write("src/store/postgres/open.c",
                   c_file("open.c", '#include "store/sqlite/open.h"\n'))
        self.assert_refused("arrows", "store/postgres must not include store/sqlite/open.h")

    def test_arrow_from_store_into_a_durable_store(self):
        self.append("src/store/memory.c", '#include "store/sqlite/open.h"\n')
        self.assert_refused("arrows", "store must not include store/sqlite/open.h")

    def test_arrow_from_a_durable_store_to_the_port(self):
        self.write("src/store/store.h", h_file("PAWLI_STORE_STORE_H"))
        self.append("src/store/sqlite/open.c", '#include "store/store.h"\n')
        self.assert_accepted("arrows")

    def test_arrow_from_cli_to_all(self):
        self.write("src/server/http.h", h_file("PAWLI_SERVER_HTTP_H"))
        self.write("src/cli/main.c",
                   c_file("main.c", '#include "server/http.h"\n#include "base/text.h"\n'))
        self.assert_accepted("arrows")

    def test_arrow_by_a_relative_path(self):
        self.append("src/core/job.c", '#include "../store/sqlite/open.h"\n')
        self.append("src/store/sqlite/open.c", '#include "open.h"\n')
        self.assert_refused("arrows", '"../store/sqlite/open.h" is not a path below src',
                            '"open.h" is not a path below src')

    def test_arrow_in_a_comment_is_none(self):
        self.append("src/core/job.c", '/*\n#include "store/sqlite/open.h"\n*/\n')
        self.assert_accepted("arrows")

    def test_folder_without_a_place(self):
        self.write("src/misc/any.c", c_file("any.c"))
        self.assert_refused("arrows", "src/misc/any.c: this folder of src has no place")

    def test_function_of_70_lines_is_accepted(self):
        self.append("src/core/job.c", function_of(70))
        self.assert_accepted("sizes")

    def test_function_of_71_lines_is_refused(self):
        self.append("src/core/job.c", function_of(71))
        self.assert_refused("sizes", "src/core/job.c:15: pawli_long() has 71 lines")

    def test_function_after_tricky_text_is_measured(self):
        self.append("src/core/job.c", """
#define OPEN {{{ \\
    {{
struct pawli_pair {
    int a; /* } */
};
static const char brace = '}', quote = '\\'', *text = "}}\\"}";
RB_GENERATE_STATIC(tree, node, link, compare)
static void
pawli_split(void (*callback)(int),
            int number)
{
""" + "    if (number) { callback('{'); } // }\n" * 66 + "}\n")
        self.assert_refused("sizes", "src/core/job.c:23: pawli_split() has 71 lines")

    def test_unbalanced_braces_are_said(self):
        self.append("src/core/job.c", "void pawli_open(void)\n{\n")
        self.assert_refused("sizes", "src/core/job.c: cannot be measured: a brace is never closed")
        self.write("src/core/job.c", c_file("job.c", "}\n"))
        self.assert_refused("sizes", "src/core/job.c: cannot be measured: line 8: a brace too many")

    def test_file_of_1001_lines(self):
        text = c_file("big.c")
        self.write("src/core/big.c", text + "\n" * (1000 - text.count("\n")))
        self.assert_accepted("sizes")
        self.append("src/core/big.c", "\n")
        self.assert_refused("sizes", "src/core/big.c: 1001 lines")

    def test_line_of_101_columns(self):
        self.append("test/unit/core_job_test.c", "/* " + "x" * 94 + " */\n")
        self.assert_accepted("width")
        self.append("src/core/job.c", "/* " + "x" * 95 + " */\n")
        self.assert_refused("width", "src/core/job.c:15: 101 columns")

    def test_module_header(self):
        self.write("src/core/a.c", f"/* {SPDX} */\nint pawli_a;\n")
        self.write("src/core/b.c", c_file("other.c"))
        self.write("src/core/c.c", c_file("c.c").replace("Never:", "Seldom:"))
        self.write("src/core/d.c", c_file("d.c").replace("Owns:", "Has:"))
        self.assert_refused("module-headers",
                            "src/core/a.c: the opening comment lacks its name and subject",
                            'src/core/a.c: the opening comment lacks "Owns:"',
                            "src/core/b.c: the opening comment lacks its name and subject",
                            'src/core/c.c: the opening comment lacks "Never:"',
                            'src/core/d.c: the opening comment lacks "Owns:"')

    def test_licence(self):
        self.write("src/core/a.h", "#ifndef A\n")
        self.write("tools/script", "#!/bin/sh\n")
        self.write("test/meson.build", "x = 1\n")
        self.write("notes.md", "free text needs none\n")
        done = self.tidy("licence")
        for path in ("src/core/a.h", "tools/script", "test/meson.build"):
            self.assertIn(f"# {path}: no SPDX line", done.stdout)
        self.assertNotIn("notes.md", done.stdout)

    def test_licence_below_the_top_does_not_count(self):
        self.write("src/core/a.c", "\n" * 6 + f"/* {SPDX} */\n")
        self.assert_refused("licence", "src/core/a.c")

    def test_header_guards(self):
        self.write("src/core/a.h", f"/* {SPDX} */\nint pawli_a(void);\n")
        self.write("src/core/b.h", h_file("PAWLI_CORE_OTHER_H"))
        self.write("src/core/c.h", h_file("PAWLI_CORE_C_H") + "int pawli_c(void);\n")
        self.assert_refused("header-guards", "src/core/a.h: not guarded",
                            "src/core/b.h: the guard is PAWLI_CORE_OTHER_H; by its path it is "
                            "PAWLI_CORE_B_H", "src/core/c.h: not guarded")

    def test_header_that_needs_another_first(self):
        self.write("src/core/a.h", h_file("PAWLI_CORE_A_H", "size_t pawli_a(void);"))
        self.assert_refused("headers-alone", "src/core/a.h: gcc: ", "src/core/a.h: clang: ")

    def test_public_header_that_is_no_cplusplus(self):
        self.write("include/pawl/pawl.h", h_file("PAWL_PAWL_H", "int pawl_one(int class);"))
        self.assert_refused("headers-alone", "include/pawl/pawl.h: as C++: ")

    def test_marks(self):
        for number, mark in enumerate(("TO" + "DO", "FIX" + "ME", "X" * 3)):
            self.write(f"notes{number}.md", f"first\n{mark}: later\n")
            self.assert_refused("marks", f"notes{number}.md:2: left for later: {mark}")

    def test_machine_paths(self):
        for number, folder in enumerate(("work", "root", "home")):
            self.write(f"notes{number}.md", f"see /{folder}/somebody\n")
            self.assert_refused("machine-paths", f"notes{number}.md:1: a path of one machine")

    def test_machine_path_in_an_address_is_none(self):
        for number, folder in enumerate(("work", "root", "home")):
            self.write(f"notes{number}.md", f"https://example.org/{folder}/index and docs/{folder}/list\n")
        self.assert_accepted("machine-paths")

    def test_banned_functions(self):
        self.append("src/core/job.c", "void pawli_a(char *a) { a = strdup(a); }\n")
        self.append("src/store/memory.c", "void pawli_b(void) { exit(1); }\n")
        self.append("test/unit/core_job_test.c", "void c(void) { usleep(1); }\n")
        self.append("src/base/text.c", "long pawli_d(void) { return time(0); }\n")
        self.assert_refused("banned", "src/core/job.c:15: calls strdup()",
                            "src/store/memory.c:14: calls exit()",
                            "test/unit/core_job_test.c:3: calls usleep()",
                            "src/base/text.c:14: calls time()")

    def test_banned_functions_where_they_belong(self):
        self.write("src/base/clock.c", c_file("clock.c", "long a(void) { return time(0); }\n"))
        self.write("src/cli/main.c", c_file("main.c", "void a(void) { exit(0); }\n"))
        self.append("src/core/job.c", "/* never exit(), */ int pawli_x(struct y *s) "
                                      "{ return s->time(1) + s->random (2) + my_exit(3); }\n")
        self.assert_accepted("banned")

    def test_banned_list_that_poisons_nothing(self):
        self.write("src/base/banned.h", h_file("PAWLI_BASE_BANNED_H"))
        self.assert_refused("banned", "src/base/banned.h: poisons nothing")

    def test_test_without_module(self):
        self.write("test/unit/core_nothing_test.c", f"/* {SPDX} */\n")
        self.write("test/unit/job.c", f"/* {SPDX} */\n")
        self.assert_refused("test-names", "test/unit/core_nothing_test.c: there is no module",
                            "test/unit/job.c: a unit test is named FOLDER_MODULE_test.c")

    def test_public_function_without_comment(self):
        header = h_file("PAWL_MORE_H", "\n/* What it does. */\n#define PAWL_API\nPAWL_API int pawl_a(void);\nPAWL_API int pawl_b(void);\n"
                                       "\nPAWL_API int pawl_c(void);\n\nPAWL_API int pawl_d(void); /* so */\n")
        self.write("include/pawl/more.h", header)
        self.assert_refused("public-comments", "include/pawl/more.h:10: pawl_c has no comment")

    def test_promises_whose_tests_are_not_there(self):
        self.write("test/e2e/a_test.py", f"# {SPDX}\ndef test_a():\n")
        page = "# A\n\n## How it is tested\n\n- [test/e2e/a_test.py](../../test/e2e/a_test.py) `test_%s`: does\n"
        self.write("docs/promises/README.md", "- [A](a.md)\n")
        self.write("docs/promises/a.md", page % "a" + "- [test/e2e/no.py](../../test/e2e/no.py) `test_a`: does\n")
        self.write("docs/promises/b.md", page % "b" + "- by hand\n")
        self.assert_refused("promises", "docs/promises/a.md: there is no test/e2e/no.py",
                            "docs/promises/b.md: is not in docs/promises/README.md",
                            "docs/promises/b.md: under", "docs/promises/b.md: test/e2e/a_test.py has no test_b")

    # ---- rules on objects

    def test_core_that_reads_a_clock(self):
        self.append("src/core/job.c", "#include <time.h>\nlong pawli_t(void) { return time(0); }\n")
        self.assert_refused("core-symbols", "src/core/job.c: needs time", with_build=True)

    def test_core_that_writes(self):
        self.append("src/core/job.c", "#include <stdio.h>\nvoid pawli_p(void) { puts(\"x\"); }\n")
        self.assert_refused("core-symbols", "src/core/job.c: needs puts", with_build=True)

    def test_core_that_locks(self):
        self.append("src/core/job.c", "#include <pthread.h>\n"
                    "void pawli_l(pthread_mutex_t *m) { pthread_mutex_lock(m); }\n")
        self.assert_refused("core-symbols", "needs pthread_mutex_lock", with_build=True)

    def test_core_that_reaches_for_the_systems_clock(self):
        self.append("src/base/text.c", "int pawl_clock_system(void) { return 0; }\n")
        self.append("src/core/job.c", "int pawl_clock_system(void);\n"
                    "int pawli_s(void) { return pawl_clock_system(); }\n")
        self.assert_refused("core-symbols", "needs pawl_clock_system", with_build=True)

    def test_core_without_objects_is_not_a_pass(self):
        (self.root / "src/core/job.c").unlink()
        self.assert_refused("core-symbols", "no object of src/core", with_build=True)

    def test_mutable_variables(self):
        self.append("src/store/memory.c", """
static int counter;
static int start = 3;
static __thread int mine;
int pawli_count(void) { static int inner = 5; mine++; return ++counter + ++start + ++inner; }
""")
        self.assert_refused("globals", "src/store/memory.c: counter can be changed",
                            "src/store/memory.c: start can be changed",
                            "src/store/memory.c: mine can be changed",
                            "src/store/memory.c: inner", with_build=True)

    def test_symbol_outside_the_namespace(self):
        self.append("src/store/memory.c", "int helper(void) { return 1; }\n")
        self.assert_refused("namespace", "src/store/memory.c: defines helper", with_build=True)

    def test_export_that_is_not_declared(self):
        self.append("src/store/memory.c",
                    "PAWL_API int pawli_leak(void);\nint pawli_leak(void) { return 1; }\n")
        self.assert_refused("exports", "pawli_leak is exported", with_build=True)

    def test_declaration_that_is_not_exported(self):
        self.write("src/store/memory.c", c_file("memory.c"))
        self.assert_refused("exports", "pawl_two is declared in a public header; the library does not",
                            with_build=True)

    def test_build_folder_that_is_not_there(self):
        done = subprocess.run([str(TOP / "tools" / "tidy"), "--root", str(self.root),
                               "--build", str(self.root / "none"), "globals"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not be checked", done.stdout)


if __name__ == "__main__":
    tap.main()
