# SPDX-License-Identifier: MIT
"""SELinux watches the domain of collectd. It is permissive, and logs what it
would refuse."""

import re
import time
from pathlib import Path

import daemon
from daemon import CONTRIB, HOME, run
from experiment import Experiment

SOURCE = CONTRIB / "security/collectd_smaps.te"
# The domain is Fedora's and Debian's. Other plugins read /proc as well, and may
# miss what we do not.
OURS = re.compile(
    r"scontext=\w+:\w+:collectd_t:.*"
    r"(capability=19 |tclass=cap_userns|tclass=(file|dir|lnk_file) )"
)


def forget_denials():
    """Each denial is logged once until then. We act as if a boolean of the
    policy had changed."""
    Path("/sys/fs/selinux/commit_pending_bools").write_text("1")


def denials(since):
    text = run("journalctl", "-o", "cat", "--no-pager", "_TRANSPORT=audit",
               "_TRANSPORT=kernel", f"--since=@{since:.3f}")[1]
    return [
        line
        for line in text.splitlines()
        if "denied" in line
        and OURS.search(line)
        and ('dev="proc"' in line or "sys_ptrace" in line or "cap" in line)
    ]


class SELinux(Experiment):
    seconds = 3600

    def setUp(self):
        if not Path("/sys/fs/selinux/enforce").exists():
            self.skipTest("this kernel was not started with SELinux")
        super().setUp()
        context = Path(f"/proc/{daemon.main_pid()}/attr/current").read_text()
        self.assertIn(":collectd_t:", context)

    def load_module(self):
        # semodule takes this without semodule_package, which is not here.
        module = HOME / "collectd_smaps.cil"
        run("checkmodule", "-M", "-m", "-C", "-o", module, SOURCE)
        self.addCleanup(run, "semodule", "-r", "collectd_smaps", seconds=1800)
        run("semodule", "-i", module, seconds=1800)

    def test_permissive(self):
        self.assert_matches()
        self.assert_quiet()

    def test_shipped_module(self):
        """Without it something would be refused, with it nothing."""
        began = time.time()
        forget_denials()
        self.start_daemon()
        self.assert_matches()
        self.assertNotEqual(denials(began), [])
        self.load_module()
        began = time.time()
        self.start_daemon()
        for _ in range(2):
            self.assert_matches()
        self.assertEqual(denials(began), [])
        self.assert_quiet()
