# SPDX-License-Identifier: MIT
"""The recipes of the manual, on processes as they are there; and what check and
explain say of rules that take nothing, or too much."""

import json
import re
import unittest

from harness import ROOT, check_config, stage
from report import ReportTest, run

HEX64 = "0123456789abcdef" * 4
OTHER64 = "fedcba9876543210" * 4
UUID = "01234567-89ab-cdef-0123-456789abcdef"
TASK = "abcdefghijklmnopqrstuvwxy"


class Tree:
    """A captured /proc, with the files of Docker beside it."""

    def __init__(self):
        self.path = stage().new_directory()
        self.n = 0
        (self.path / "meminfo").write_text("MemTotal: 16384000 kB\n")

    def add(self, command, *, comm=None, cgroup="/init.scope", exe=None, uid=0):
        self.n += 1
        pid = 100 + self.n
        comm = comm or command.split()[0].rpartition("/")[2][:15]
        directory = self.path / str(pid)
        directory.mkdir()
        fields = ["S", "1", "1", "1", "0", "-1", "4194304"]
        fields += ["0"] * 10 + ["1", "0", str(1000 + pid)] + ["0"] * 30
        sizes = "".join(
            f"{key}: 64 kB\n" for key in ("Rss", "Pss", "Private_Dirty", "Referenced")
        )
        for name, text in {
            "stat": f"{pid} ({comm}) {' '.join(fields)}\n",
            "comm": f"{comm}\n",
            "cmdline": command.replace(" ", "\0") + "\0",
            "status": f"Name:\t{comm}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nThreads:\t1\n",
            "cgroup": f"0::{cgroup}\n",
            "statm": "100 16 0 1 0 20 0\n",
            "smaps_rollup": "0-1 ---p 00000000 00:00 0 [rollup]\n" + sizes,
        }.items():
            (directory / name).write_text(text)
        if exe:
            (directory / "exe").symlink_to(exe)
        return pid

    def name_container(self, digits, name):
        path = self.path / "var/lib/docker/containers" / digits
        path.mkdir(parents=True)
        (path / "config.v2.json").write_text(json.dumps({"Name": f"/{name}"}))


class TreeTest(ReportTest):
    def setUp(self):
        super().setUp()
        self.tree = Tree()

    def configure(self, rules):
        path = self.directory / "collectd.conf"
        path.write_text(
            f'LoadPlugin smaps\n<Plugin smaps>\nContainerRoot "{self.tree.path}"\n'
            f'{rules}\nOther "rest"\n</Plugin>\n'
        )
        return path

    def groups(self, rules):
        """{group: number of processes}, without those that are empty."""
        done = run(
            "live", "-G", "-j", "-S", self.tree.path, "-C", self.configure(rules)
        )
        self.assertEqual(done.returncode, 0, done.words)
        _, *rows = json.loads(done.text)
        return {row["group"]: row["processes"] for row in rows if row["processes"]}


def recipe(beginning):
    """The rules below the paragraph that begins so."""
    page = (ROOT / "contrib/man/collectd-smaps.5").read_text(encoding="utf-8")
    section = re.search(r"(?ms)^\.Sh RECIPES$(.*?)^\.Sh ", page).group(1)
    (found,) = re.findall(
        rf"(?ms)^{re.escape(beginning)}.*?^\.Bd.*?$(.*?)^\.Ed", section
    )
    return found.replace("\\e", "\\")


class Recipes(TreeTest):
    def test_virtual_machines(self):
        add = self.tree.add
        add("/usr/bin/kvm -id 101 -name web,debug-threads=on -m 512")
        add("/usr/bin/qemu-system-x86_64 -name guest=win10,debug-threads=on -S")
        add("/usr/bin/qemu-system-aarch64 -machine virt -name plain")
        add("/usr/bin/tail -name web")
        self.assertEqual(
            self.groups(recipe("Virtual machines")),
            {"vm-web": 1, "vm-win10": 1, "vm-plain": 1, "rest": 1},
        )

    def test_nomad(self):
        add = self.tree.add
        add("/bin/a", cgroup=f"/nomad.slice/share.slice/{UUID}.redis.scope")
        add("/bin/b", cgroup=f"/nomad.slice/reserve.slice/{UUID}.redis.scope")
        add("/bin/c", cgroup="/nomad.slice/other")
        add("/bin/d", cgroup=f"/system.slice/docker-{HEX64}.scope")
        self.tree.name_container(HEX64, f"my-web-{UUID}")
        self.assertEqual(
            self.groups(recipe("The tasks of Nomad")),
            {"nomad-redis": 2, "nomad-my-web": 1, "rest": 1},
        )

    def test_swarm(self):
        self.tree.add("/bin/a", cgroup=f"/system.slice/docker-{HEX64}.scope")
        self.tree.add("/bin/b", cgroup=f"/system.slice/docker-{OTHER64}.scope")
        self.tree.name_container(HEX64, f"shop_web.1.{TASK}")
        self.tree.name_container(OTHER64, f"shop_web.{TASK}.{TASK}")
        self.assertEqual(
            self.groups(recipe("The services of a Docker Swarm")), {"shop_web": 2}
        )

    def test_services_of_users(self):
        user = "/user.slice/user-0.slice/user@0.service"
        self.tree.add("/bin/a", cgroup=f"{user}/app.slice/sync.service")
        self.tree.add("/bin/b", cgroup=f"{user}/app.slice/sync.service/part")
        self.tree.add("/bin/c", cgroup=f"{user}/direct.service")
        self.tree.add("/bin/d", cgroup=f"{user}/init.scope")
        self.tree.add("/bin/e", cgroup="/system.slice/sync.service")
        self.assertEqual(
            self.groups(recipe("Each user's own services")),
            {"root-sync.service": 2, "root-direct.service": 1, "rest": 2},
        )

    def test_node(self):
        node = {"exe": "/usr/bin/node", "comm": "MainThread"}
        self.tree.add("/usr/bin/node /srv/shop/server.js --port 80", **node)
        self.tree.add("node --max-old-space-size=512 worker.mjs", **node)
        self.tree.add("node", **node)
        self.tree.add("/bin/cat server.js", exe="/bin/cat")
        self.assertEqual(
            self.groups(recipe("Programs of Node.js")),
            {"node-server": 1, "node-worker": 1, "node": 1, "rest": 1},
        )

    def test_not_in_a_container(self):
        self.tree.add("nginx", cgroup="/system.slice/nginx.service")
        self.tree.add("nginx", cgroup=f"/system.slice/docker-{HEX64}.scope")
        self.tree.add("nginx", cgroup="/lxc.payload.web/system.slice/nginx.service")
        self.assertEqual(
            self.groups(recipe("A program of the host")), {"nginx": 1, "rest": 2}
        )


class Reasons(TreeTest):
    def reasons(self, rules):
        """The lines of check behind the rules."""
        config = self.configure(f'ProcRoot "{self.tree.path}"\n{rules}')
        done = run("check", "-C", config)
        self.assertEqual(done.returncode, 0, done.words)
        return [
            line
            for line in done.text.splitlines()
            if re.match("The command line|Rule |Groups? .*(with one name|host and)", line)
        ]

    def test_correct_configuration_has_no_remarks(self):
        """A host without services and containers. Groups by name can have no
        values of a control group, and the number of rules is that of the log."""
        self.tree.add("x")
        config = self.directory / "collectd.conf"
        body = f'<Plugin smaps>\nProcRoot "{self.tree.path}"\n%s</Plugin>\n'
        for rules, n in ("", 4), ('Process "x"\nOther "o"\n', 2):
            with self.subTest(rules):
                config.write_text(f"LoadPlugin smaps\n{body % rules}")
                done = run("check", "-C", config)
                self.assertEqual(done.returncode, 0, done.words)
                lines = done.text.splitlines()
                self.assertRegex(lines[-2], rf'^ +\d.* {n}: Other "o')
                self.assertRegex(lines[-1], "^ +0 +none$")
                self.assertEqual(len(lines), n + 2)
                status, said = check_config(body % rules)
                self.assertEqual(status, 0, said)
                self.assertIn(f", {n} rules", said)
        config.write_text(f"LoadPlugin smaps\n{body}" % 'Process "no"\n')
        self.assertIn("\nRules that took nothing: 1", run("check", "-C", config).text)

    def test_long_command_line(self):
        rule = '<Group "g">\nCommandLineMatch "WORD"\n</Group>'
        self.tree.add("/usr/bin/java " + "-Dx " * 900 + "WORD")
        self.assertEqual(self.reasons(rule), [])
        pid = self.tree.add("/usr/bin/java " + "-Dx " * 1100 + "WORD")
        (line,) = self.reasons(rule)
        self.assertIn("The command line of 1 process is cut at 4096 bytes", line)
        self.assertIn(f"the first is {pid} java", line)
        self.assertEqual(self.reasons('<Group "g">\nComm "x"\n</Group>'), [])

    def test_explain_says_them_of_a_document(self):
        path = self.write(
            {
                "format": "smaps-snapshot", "version": 2,
                "rules": ['ProcessMatch "g" "x"', 'Other "rest"'],
                "processes": [
                    {"pid": 7, "comm": "java", "command_line": "j" * 4096},
                    {"pid": 8, "comm": "java", "command_line": "j" * 4000},
                ],
            }
        )  # fmt: skip
        words = "cut at 4096 bytes"
        self.assertEqual(self.report("explain", path).count(words), 2)
        self.assertIn(words, self.report("explain", path, 7))
        one = self.report("explain", path, 8)
        self.assertNotIn(words, one)
        self.assertIn(f'  CommandLine "{"j" * 197}..."\n', one)
        (reason,) = json.loads(self.report("explain", "-j", path))["reasons"]
        self.assertIn("The command line of 1 process", reason)

    def test_explain_reads_this_host_and_the_configuration(self):
        """No state file is needed to find a wrong selector."""
        pid = self.tree.add("/usr/sbin/nginx", cgroup="/a.slice/nginx@1.service")
        rules = '<Group "web">\nUnit "nginx.service"\n</Group>'
        args = "live", "-S", self.tree.path, "-C", self.configure(rules)
        # The tree has no whole rollup, which standard error says.
        text = run("explain", *args, pid).text
        self.assertIn("  group        rest\n", text)
        self.assertIn('               Unit "nginx@1.service"\n', text)
        self.assertIn(
            '  not in rule  1: <Group "web"> Unit "nginx.service"\n', text
        )
        self.assertIn("               Container: none or unknown\n", text)
        text = run("explain", *args, "-g", "web").text
        self.assertIn(" 0         0         0         0  1: <Group", text)
        path = self.directory / "collectd.conf"
        path.write_text(path.read_text().replace('Other "rest"\n', ""))
        text = run("explain", *args, pid).text
        self.assertIn("  groups       none\n  rule         none matches\n", text)
        self.assertIn('  not in rule  1: <Group "web"> Unit "nginx', text)
        done = run("explain", *args, 7)
        self.assertEqual(done.returncode, 2)
        self.assertIn("live: there is no process 7", done.words)

    def test_name_of_a_thread(self):
        for _ in range(3):
            self.tree.add("x", comm="MainThread", exe="/opt/node/bin/node")
        for rule in ('Process "node"', '<Group "g">\nComm "nod?"\n</Group>'):
            with self.subTest(rule):
                (line,) = self.reasons(rule)
                self.assertRegex(line, r'^Rule 1: .*Executable "\*/nod[e?]" would match 3$')
        self.tree.add("node", comm="node")
        self.assertEqual(self.reasons('Process "node"'), [])

    def test_host_and_container(self):
        self.tree.add("nginx", cgroup="/system.slice/nginx.service")
        self.tree.add("nginx", cgroup=f"/system.slice/docker-{HEX64}.scope")
        (line,) = self.reasons('Process "nginx"')
        self.assertRegex(line, '^Groups with .* host and of containers .*: nginx$')
        rule = '<Group "g">\nComm "nginx"\nContainer ""\n</Group>'
        self.assertEqual(self.reasons(rule), [])
        self.assertEqual(self.reasons('<Group "g">\nSlice "*"\n</Group>'), [])

    def test_one_name_of_two_rules(self):
        self.tree.add("x", cgroup="/system.slice/web.service")
        self.tree.add("x", cgroup=f"/system.slice/docker-{HEX64}.scope")
        self.tree.name_container(HEX64, "web.service")
        rules = (
            '<Group "%{unit}">\nUnit "*.service"\n</Group>\n'
            '<Group "%{container_name}">\nContainerName "*"\n</Group>'
        )
        self.assertEqual(
            self.reasons(rules),
            ["Group web.service has processes of rules 1 and 2, with one name"],
        )

    def test_one_name_in_two_runtimes(self):
        self.tree.add("x", cgroup=f"/system.slice/docker-{HEX64}.scope")
        self.tree.add("x", cgroup="/lxc.payload.web")
        self.tree.add("x", cgroup="/lxc.payload.db")
        self.tree.name_container(HEX64, "web")
        rules = '<Group "%{container_name}">\nContainerName "*"\n</Group>'
        words = "Group web has containers of several runtimes, with one name"
        self.assertEqual(self.reasons(rules), [words])
        self.assertEqual(
            self.reasons('<Group "all">\nContainerName "*"\n</Group>'), []
        )


if __name__ == "__main__":
    unittest.main()
