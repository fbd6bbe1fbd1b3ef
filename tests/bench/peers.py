"""Other programs that give the same numbers.

Each has missing(), the name of what is not installed (or None), and
cpu_ns(load, plan), the CPU time of one pass over all processes. None of them
is told which processes to read, as in real use: our pid namespace has only the
processes of the load and a handful of ours.
"""

import os
import re
import subprocess
import time
import urllib.request
from pathlib import Path

import host
import process
from host import BenchError

PYTHON = "/usr/bin/python3"  # the one that Debian's packages are for


class Command:
    """A program that reads everything once and ends. Its start counts, because
    users of such a program start it each time."""

    name = ""

    def command(self):
        raise NotImplementedError

    def missing(self):
        raise NotImplementedError

    def check(self):
        """Checks that it prints a line per process, or for nearly all if
        processes come and go."""
        done = subprocess.run(
            self.command(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=process.DEADLINE_SECONDS,
            check=False,
            env=self.env(),
        )
        n = sum(name.isdigit() for name in os.listdir("/proc"))
        if done.stdout.count(b"\n") < 0.9 * n:
            raise BenchError("does not print all processes")

    def cpu_ns(self, load, plan):
        del load
        self.check()
        runs = []
        for _ in range(plan.command_runs):
            time.sleep(plan.interval)
            runs.append(process.run_metered(self.command(), env=self.env()))
        return sorted(runs)[len(runs) // 2]

    def env(self):
        return None


class Ps(Command):
    name = "ps (libproc2)"

    def missing(self):
        return None if host.find("ps") else "procps"

    def command(self):
        return [host.find("ps"), "-e", "-o", "pid,pss,uss,rss,args"]

    def version(self):
        return host.first_line(host.find("ps"), "--version")


class Smem(Command):
    name = "smem"

    def missing(self):
        return None if host.find("smem") else "smem"

    def command(self):
        return [host.find("smem"), "-H", "-c", "pid pss uss rss swap"]

    def version(self):
        return "smem " + package_version("smem")


class Pcp(Command):
    """PCP's reader of /proc, loaded by pminfo as the collector would load
    it."""

    name = "pcp"

    def _directory(self):
        conf = Path(os.environ.get("PCP_CONF") or "/etc/pcp.conf")
        directory = "/var/lib/pcp/pmdas"
        if conf.is_file():
            found = re.search(r"^PCP_PMDAS_DIR=(.*)$", conf.read_text(), re.M)
            directory = found.group(1) if found else directory
        return Path(directory) / "proc"

    def missing(self):
        has = host.find("pminfo") and (self._directory() / "root_proc").exists()
        return None if has else "pcp"

    def command(self):
        plugin = self._directory() / "pmda_proc.so"
        return [
            host.find("pminfo"),
            *("-L", "-K", "clear", "-K", f"add,3,{plugin},proc_init"),
            *("-n", self._directory() / "root_proc"),
            # Without the first metric it does not list the processes.
            *("-f", "proc.nprocs", "proc.smaps.pss"),
        ]

    def env(self):
        return {**os.environ, "PROC_ACCESS": "1"}

    def version(self):
        return host.first_line(host.find("pminfo"), "--version")


def package_version(package):
    line = host.first_line("dpkg-query", "-W", "-f", "${Version}", package)
    return line if re.match(r"\d", line) else ""


PSUTIL_PROGRAM = """\
import sys, time
import psutil
interval, passes = float(sys.argv[1]), int(sys.argv[2])
def read_all():
    for p in psutil.process_iter():
        try:
            p.memory_full_info()
        except psutil.Error:
            pass
read_all()
for _ in range(passes):
    time.sleep(interval)
    begin = time.process_time_ns()
    read_all()
    print(time.process_time_ns() - begin, flush=True)
"""


class Psutil:
    """An agent in Python: one process, a pass each interval."""

    name = "psutil"

    def missing(self):
        has = host.first_line(PYTHON, "-c", "import psutil; print(1)") == "1"
        return None if has else "python3-psutil"

    def cpu_ns(self, load, plan):
        del load
        arguments = [str(plan.interval), str(plan.command_runs)]
        done = subprocess.run(
            [PYTHON, "-c", PSUTIL_PROGRAM, *arguments],
            stdout=subprocess.PIPE,
            timeout=process.DEADLINE_SECONDS,
            check=True,
            text=True,
        )
        passes = sorted(int(line) for line in done.stdout.split())
        return passes[len(passes) // 2]

    def version(self):
        code = "import psutil; print('psutil', psutil.__version__)"
        return host.first_line(PYTHON, "-c", code)


EXPORTER_CONFIG = """\
process_names:
{groups}  - name: rest
    cmdline:
    - '.'
"""


class Exporter:
    """prometheus-process-exporter with the groups of the load, scraped once
    in each interval."""

    name = "process-exporter"

    def _program(self):
        return host.find("prometheus-process-exporter", "process-exporter")

    def missing(self):
        return None if self._program() else "prometheus-process-exporter"

    def _write_config(self, load):
        path = host.new_directory("exporter") / "config.yml"
        groups = "".join(
            f"  - name: {name}\n    cmdline:\n    - '{pattern}'\n"
            for name, pattern in load.groups.items()
        )
        path.write_text(EXPORTER_CONFIG.format(groups=groups))
        return path

    def cpu_ns(self, load, plan):
        port = host.free_port()
        exporter = subprocess.Popen(
            [
                self._program(),
                *("-config.path", self._write_config(load)),
                *("-web.listen-address", f"127.0.0.1:{port}"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            return self._meter(exporter, port, plan)
        finally:
            process.end(exporter)

    def _meter(self, exporter, port, plan):
        scrape_until_it_answers(exporter, port)
        scrape(port)
        begin = process.cpu_ns(exporter.pid)
        for _ in range(plan.peer_cycles):
            time.sleep(plan.interval)
            scrape(port)
        # Work after the answer counts too.
        time.sleep(0.2)
        used = process.cpu_ns(exporter.pid) - begin
        return used / plan.peer_cycles

    def version(self):
        version = package_version("prometheus-process-exporter")
        return f"process-exporter {version}".strip()


def scrape(port):
    url = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def scrape_until_it_answers(exporter, port):
    deadline = time.monotonic() + 20
    while True:
        try:
            return scrape(port)
        except OSError as error:
            if exporter.poll() is not None or time.monotonic() > deadline:
                raise BenchError(f"process-exporter: {error}") from error
            time.sleep(0.1)


PEERS = [Ps(), Smem(), Psutil(), Exporter(), Pcp()]


def versions():
    return [p.version() for p in PEERS if not p.missing()]
