# SPDX-License-Identifier: MIT
"""collectd works while AppArmor confines it."""

import re
import shutil
import subprocess
import time
from pathlib import Path

import daemon
from daemon import CONTRIB, run
from experiment import Experiment, wait_for

PROFILE = Path("/etc/apparmor.d/usr.sbin.collectd")
ABSTRACTION = Path("/etc/apparmor.d/abstractions/collectd-smaps")

# What the daemon and the other plugins of the default configuration need. They
# may miss something in /proc; that does not matter here.
RULES = """
#include <tunables/global>
/usr/sbin/collectd {{
  #include <abstractions/base>
  #include <abstractions/nameservice>
  capability setuid, capability setgid, capability dac_override,
  capability chown, capability fowner,
  unix, network, signal,
  /usr/sbin/collectd mr,
  /usr/lib/collectd/** mr,
  /usr/share/collectd/** r,
  /usr/share/collectd-smaps/** r,
  /usr/share/{{fonts,fontconfig,mime,xml}}/** r,
  /etc/{{collectd,fonts}}/** r,
  /var/lib/collectd/** rwk,
  /var/cache/fontconfig/** r,
  /run/collectd* rwk,
  /dev/shm/collectd* rwk,
  /run/systemd/notify w,
  {rules}
}}
"""
# The files that this plugin reads and others do not.
OURS = re.compile(
    r'operation="ptrace"|capname="sys_ptrace"|name="/proc/(\d+/)?'
    r'(smaps_rollup|smaps|statm|status|cgroup|exe|task/\d+/comm|meminfo)?"'
    "|/ksm/|containers"
)
ID = "5c2a" * 16
DOCKER = Path("/var/lib/docker/containers", ID)


def denials(since):
    text = run("journalctl", "-k", "-o", "cat", "--no-pager",
               f"--since=@{since:.3f}")[1]
    return [line for line in text.splitlines() if 'apparmor="DENIED"' in line]


class AppArmor(Experiment):
    def setUp(self):
        if run("aa-enabled", check=False)[0] != 0:
            self.skipTest("this kernel has no AppArmor")
        self.addCleanup(self.unload)
        super().setUp()

    @staticmethod
    def unload():
        run("systemctl", "stop", "collectd")
        run("apparmor_parser", "-R", PROFILE, check=False)
        PROFILE.unlink(missing_ok=True)
        ABSTRACTION.unlink(missing_ok=True)

    def confine(self, rules):
        ABSTRACTION.write_text(
            (CONTRIB / "security/apparmor-collectd-smaps").read_text()
        )
        PROFILE.write_text(RULES.format(rules=rules))
        run("apparmor_parser", "-r", PROFILE)
        cycle = self.start_daemon()
        mode = Path(f"/proc/{daemon.main_pid()}/attr/current").read_text()
        self.assertEqual(mode.strip("\0\n "), "/usr/sbin/collectd (enforce)")
        return cycle

    def assert_is_named(self):
        """What the plugin sees of a container of Docker has its name."""
        DOCKER.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, DOCKER)
        (DOCKER / "config.v2.json").write_text('{"Name": "/web"}')
        process = subprocess.Popen(
            ["systemd-run", "--quiet", "--scope", f"--unit=docker-{ID}",
             "sleep", "1000"]
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_for(lambda: "web" in self.next_cycle(), "the container's name")
        process.kill()

    def test_shipped_rules(self):
        began = time.time()
        self.confine("#include <abstractions/collectd-smaps>")
        self.assert_is_named()
        for _ in range(2):
            self.assert_matches()
        self.assert_quiet()
        refused = [line for line in denials(began) if OURS.search(line)]
        self.assertEqual(refused, [])

    def test_without_right_to_trace(self):
        began = time.time()
        cycle = self.confine(
            "@{PROC}/ r, @{PROC}/** r, capability sys_ptrace,"
        )
        self.assert_unknown(cycle, "redis-server.service")
        self.assert_quiet([r"check the security module"])
        self.assertNotEqual(denials(began), [])
