# SPDX-License-Identifier: MIT
"""Containers by the names that their runtimes keep."""

import json
import math
import re
from pathlib import Path

from cgroup import CgroupMixin
from harness import (
    PLUGIN_SAYS,
    ROOT,
    IntegrationTest,
    group,
    need_program,
    plugin,
    stage,
    wait_until,
)
from report import run
from test_captured import MODERN, WrittenTree, rollup_text
from test_hang import Hung, readers_of
from test_service import AppArmorRules, find_opened

IDS = [digits * 16 for digits in ("5c2a", "7e01", "90ab", "d3f4")]
ID, OTHER_ID = IDS[:2]


class Paths(IntegrationTest):
    """What the default rules make of the path of a control group."""

    def setUp(self):
        self.root = stage().new_directory()
        self.tree = WrittenTree()
        self.pids = 100

    def put(self, cgroup, **files):
        self.pids += 1
        self.tree.add(
            self.pids,
            cgroup=f"0::{cgroup}\n",
            smaps_rollup=rollup_text(MODERN),
            **files,
        )

    def report(self, command, options=""):
        config = self.root / "collectd.conf"
        config.write_text(
            f'LoadPlugin smaps\n<Plugin smaps>\nProcRoot "{self.tree.path}"\n'
            f'ContainerRoot "{self.root}"\n{options}\n</Plugin>\n'
        )
        return run(command, "-C", config)

    def groups(self):
        """The names of the groups that have processes, sorted."""
        lines = self.report("live").text.split("\n\n")[1].splitlines()[1:]
        return sorted(line.split()[-1] for line in lines if line.split()[4] != "0")

    def test_group_has_the_name_that_the_path_has(self):
        task = "0123456789abcdef" * 2
        self.put(f"/ecs/{task}/{task}-1234567890")
        self.put("/default/redis")
        self.put("/machine.slice/machine-my\\x2dweb.scope/payload")
        self.put("/machine.slice/machine-lxc\\x2d12\\x2ddb.scope")
        self.put(
            "/nomad.slice/share.slice/"
            "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0.api.scope"
        )
        self.put("/lxc.payload.web-1")
        (self.root / "var/lib/lxc/web").mkdir(parents=True)
        self.assertEqual(
            self.groups(),
            [f"{task}-1234567890", "api", "db", "my-web", "redis", "web"],
        )

    def test_containers_without_a_name_are_one_line(self):
        (self.root / "etc/docker").mkdir(parents=True)
        (self.root / "etc/docker/daemon.json").write_text(
            '{"userns-remap": "default"}'
        )
        names = self.root / f"var/lib/docker/100000.100000/containers/{IDS[0]}"
        names.mkdir(parents=True)
        (names / "config.v2.json").write_text('{"Name": "/web"}')
        for id_ in IDS[:3]:
            self.put(f"/system.slice/docker-{id_}.scope")
            self.put(f"/system.slice/docker-{id_}.scope")
        self.assertEqual(
            self.groups(), sorted([IDS[1][:12], IDS[2][:12], "web"])
        )
        for command in "live", "check":
            lines = [
                line
                for line in self.report(command).words.splitlines()
                if "has no known name" in line
            ]
            self.assertEqual(len(lines), 1, lines)
            self.assertIn(
                '"name-103" (one of 2) has no known name: config.v2.json of '
                "Docker: No such file",
                lines[0],
            )

    def test_check_shows_what_looks_like_a_container_and_is_not_known(self):
        half = "0123456789abcdef" * 2
        uuid = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"
        self.put(f"/garden/{uuid}/init")
        self.put(f"/garden/{uuid}")
        self.put(f"/box/x-{half}")
        # These are known, or have another meaning.
        self.put(f"/docker/{half}{half}")
        self.put(f"/machine.slice/libpod-conmon-{half}{half}.scope")
        self.put(f"/system.slice/run-r{half}.scope")
        self.put(f"/system.slice/dev-disk-by\\x2duuid-{uuid}.mount")
        self.put(f"/kubepods.slice/kubepods-pod{uuid.replace('-', '_')}.slice")
        self.put("/system.slice/abcdef0123456789.scope")
        said = [
            line
            for line in self.report("check").words.splitlines()
            if "like containers" in line
        ]
        self.assertEqual(len(said), 1, said)
        self.assertRegex(
            said[0],
            rf" no rule takes their processes \(3\): /garden/{uuid}, "
            f"/box/x-{half}; see ",
        )
        # The rule that it shows takes the first, and those beside it.
        rule = re.search('<Group "[^"]*"> CgroupMatch "[^"]*"$', said[0])[0]
        rule = rule.replace("> ", ">\n") + "\n</Group>\nOther \"rest\""
        self.assertIn(
            f"no rule takes their processes (1): /box/x-{half}; see ",
            self.report("check", rule).words,
        )


class Containers(CgroupMixin, IntegrationTest):
    """Each is a control group with the name that the runtime gives it."""

    def setUp(self):
        self.make_top()
        self.root = stage().new_directory()

    def start_container(self, name):
        """Starts a container of one process."""
        cgroup = self.make_below(name)
        shape = self.start_shape("anon", mib=4)
        cgroup.add(*shape.pids)
        return cgroup

    def write(self, path, text=""):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def write_docker(self, id_, name):
        return self.write(
            f"var/lib/docker/containers/{id_}/config.v2.json",
            json.dumps({"ID": id_, "Config": {}, "Name": f"/{name}"}),
        )

    def watch(self, *options):
        return self.start_collectd(
            plugin(f'ContainerRoot "{self.root}"', *options)
        )

    def test_group_has_the_name_of_the_container_and_its_memory(self):
        cgroup = self.start_container(f"docker-{ID}.scope")
        self.write_docker(ID, "shop-web-1")
        collectd = self.watch(
            group("%{container_name}", 'ContainerNameMatch "^shop-"')
        )
        cycle = collectd.next_cycle()
        self.assertEqual(cycle.counts("shop-web-1")[0], 1)
        # It is the whole control group of the container.
        self.assert_near(
            cycle.value("shop-web-1", "memory-cgroup"),
            cgroup.usage(),
            1 << 20,
            "memory of the control group",
        )

    def test_containers_of_a_service_of_compose_are_one_group(self):
        """The manual has this pattern. Compose of Debian 12 uses "_"."""
        shown = set()
        for path in "man/collectd-smaps.5", "alerts/thresholds.conf":
            text = (ROOT / "contrib" / path).read_text()
            shown.update(re.findall(r"ContainerNameMatch .+\[-_\].+", text))
        self.assertEqual(len(shown), 1, shown)
        for id_, name in zip(
            IDS, ["shop-web-1", "shop-web-2", "shop_db_1", "shop_db_12"]
        ):
            self.start_container(f"docker-{id_}.scope")
            self.write_docker(id_, name)
        cycle = self.watch(group("%{1}", *shown)).next_cycle()
        self.assertEqual(cycle.counts("shop-web")[0], 2)
        self.assertEqual(cycle.counts("shop_db")[0], 2)

    def test_image_has_a_container_by_name_and_its_monitor_in_other(self):
        """Else each container made a group of 64 digits beside its own."""
        text = (ROOT / "contrib/container/collectd.conf").read_text()
        options = re.search("<Plugin smaps>(.*)</Plugin>", text, re.S)[1]
        top = self.make_cgroup(f"{self.top.path}.slice").path
        for name in f"docker-{ID}.scope", f"libpod-conmon-{ID}.scope":
            cgroup = self.make_cgroup(f"{top}/{name}", needs_memory=False)
            cgroup.add(*self.start_shape("anon", mib=4).pids)
        self.write_docker(ID, "web")
        collectd = self.start_collectd(
            plugin(options.replace("/host", str(self.root)))
        )
        groups = collectd.next_cycle().all_groups()
        self.assertIn("container-web", groups)
        self.assertEqual([name for name in groups if ID in name], [])

    def test_apparmor_allows_every_opened_file(self):
        strace = need_program("strace")
        trace = self.root / "trace"
        for id_ in IDS:
            self.start_container(id_)  # of any runtime
        self.write("etc/docker/daemon.json", "{}")
        self.write_docker(ID, "web")
        for name in "containers.json", "volatile-containers.json":
            self.write(f"var/lib/containers/storage/overlay-containers/{name}")
        self.write(f"var/log/containers/pod_namespace_name-{OTHER_ID}.log")
        self.write(
            "run/containerd/io.containerd.runtime.v2.task/k8s.io/"
            f"{IDS[2]}/config.json",
            "{}",
        )
        self.write("etc/containers/storage.conf")
        self.write("etc/nerdctl/nerdctl.toml")
        self.write("var/lib/nerdctl/1935db59/names/default/db", IDS[3])
        self.write(f"var/lib/docker/1.1/containers/{IDS[2]}/config.v2.json")
        self.write("var/snap/docker/current/config/daemon.json", "{}")
        self.start_collectd(
            plugin(
                f'ContainerRoot "{self.root}"',
                group("%{container_name}", 'ContainerName "*"'),
            ),
            wrapper=(strace, "-D", "-f", "-y", "-o", trace, "-e", "openat"),
        ).next_cycle()
        opened = find_opened(trace, self.root)
        self.assertEqual(len(opened), 17, opened)
        rules = AppArmorRules()
        self.assertEqual([o for o in sorted(opened) if not rules.allow(*o)], [])

    def test_hung_file_does_not_delay_other_containers(self):
        hung = Hung(self, "file")
        containers = self.root / "var/lib/docker/containers"
        self.start_container(f"docker-{OTHER_ID}.scope")
        containers.mkdir(parents=True)
        (containers / OTHER_ID).symlink_to(Path(hung.path).parent)
        self.start_container(f"docker-{ID}.scope")
        self.write_docker(ID, "well")
        collectd = self.watch(
            "ReadTimeout 0.5",
            group("%{container_name}", 'Comm "shape*"', 'ContainerName "*"'),
            group("empty", 'ContainerName "empty"'),
        )
        wait_until(
            lambda: collectd.log_lines(PLUGIN_SAYS), "the file to hang"
        )
        for _ in range(3):
            cycle = collectd.next_cycle()
        # The name of the other is not known, and nothing waits for it.
        self.assertEqual(readers_of(collectd.process.pid), 2)
        self.assertGreater(cycle.memory(ID[:12], "pss"), 4 << 20)
        # The one that hangs may be of that name.
        self.assertTrue(math.isnan(cycle.memory("empty", "pss")))
        lines = collectd.log_lines(PLUGIN_SAYS)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("ReadTimeout: the files of its container", lines[0])

        hung.release()
        wait_until(
            lambda: collectd.next_cycle().counts("empty")[0] == 0,
            "the file to be read",
        )
