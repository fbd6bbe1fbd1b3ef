# SPDX-License-Identifier: MIT
"""Many hosts: the files of contrib/fleet/ in real daemons on the loopback, each
client with a host name and a process of its own in the same group."""

import time

from alerts import NotifyFile, complaints
from harness import MIB, stage, wait_until
from server import BackendTest, free_port, load_smaps, shape_group, shipped

GROUP = "postgres"
PASSWORDS = {"web1": "change-me-1", "web2": "change-me-2"}

# The server and the clients have an interval of so many seconds; FlushInterval
# is one, too.
INTERVAL = 1
TIMEOUT = 4

# Enough not to come about by chance, where values are late or counted twice.
SUMS_IN_A_ROW = 4


class FleetTest(BackendTest):
    def setUp(self):
        self.port = free_port()
        self.auth_file = stage().new_directory() / "passwd"
        lines = [f"{user}: {word}\n" for user, word in PASSWORDS.items()]
        self.auth_file.write_text("".join(lines))

    def start_fleet_server(self, extra="", replacements=None):
        text = shipped(
            "fleet/server.conf",
            {
                '"0.0.0.0" "25826"': f'"127.0.0.1" "{self.port}"',
                "/etc/collectd/passwd": self.auth_file,
                **(replacements or {}),
            },
        )
        self.server = self.start_daemon(
            f"Timeout {TIMEOUT}\n{text}\n{extra}",
            interval=INTERVAL,
            host="server",
        )
        wait_until(
            lambda: self.server.log_lines("entering read-loop"),
            "the server to begin",
        )
        self.begin = time.time()

    def wait_phase(self):
        """Until the server looks no more, and does not yet look again. Where a
        client sends just when it looks, a value may be in one sum twice and
        not in the next; that is not what is tested here."""
        wait_until(
            lambda: 0.3 < (time.time() - self.begin) % INTERVAL < 0.4,
            "the right moment",
        )

    def start_client(self, host, extra=""):
        text = shipped(
            "fleet/client.conf",
            {
                '"collectd.example.net" "25826"': f'"127.0.0.1" "{self.port}"',
                '"web1"': f'"{host}"',
                '"change-me-1"': f'"{PASSWORDS[host]}"',
            },
        )
        client = self.start_daemon(
            load_smaps("ValuesPercentage true", shape_group(host, GROUP))
            + text
            + extra,
            interval=INTERVAL,
            host=host,
        )
        client.wait_cycles(1)
        return client

    def start_two_clients(self):
        for host, mib in (("web1", 20), ("web2", 30)):
            self.start_shape("anon", name=host, mib=mib)
        self.wait_phase()
        return self.start_client("web1"), self.start_client("web2")

    # -- what the server knows --

    def fleet(self, function, metric):
        """Returns {time: value} of an aggregation over the hosts."""
        groups = self.server.values("fleet", "aggregation")
        group = groups.get(f"smaps-{GROUP}-{function}", {})
        return by_time(group.get(metric, []))

    def wait_sums(self, metric, num, expected, since=0):
        """Waits for some sums in a row, each of so many values and equal to one
        that expected() returns."""

        def find():
            right = expected()
            nums = self.fleet("num", metric)
            marks = [
                "+" if nums.get(when) == num and value in right else "-"
                for when, value in self.fleet("sum", metric).items()
                if when > since
            ]
            return SUMS_IN_A_ROW * "+" in "".join(marks)

        wait_until(find, lambda: self.describe(metric))

    def describe(self, metric):
        return (
            f"sums of {metric}: {self.fleet('sum', metric)}, "
            f"num: {self.fleet('num', metric)}; log: {self.server.log()}"
        )


def by_time(rows):
    return {row[0]: row[1] for row in rows}


def written(client, metric):
    """All values that a client has written into its own csv files."""
    return {row[1] for row in client.values()[GROUP][metric]}


def sums_of(first, second, metric):
    return {
        one + other
        for one in written(first, metric)
        for other in written(second, metric)
    }


class Transport(FleetTest):
    def test_notifications_of_clients_are_delivered_by_the_server(self):
        notify = NotifyFile()
        self.start_fleet_server(extra=notify.config())
        limits = shipped("alerts/thresholds.conf")
        self.start_client("web1", extra=limits)
        watched = f"web1/smaps-{GROUP}/memory-pss"
        wait_until(
            lambda: ("OKAY", watched)
            in [(a.severity, a.identifier) for a in notify.alerts()],
            lambda: f"an OKAY of {watched}, not {notify.alerts()}",
        )


class Sums(FleetTest):
    def test_the_aggregations_are_those_that_the_file_names(self):
        self.start_fleet_server()
        self.start_client("web1")
        text = shipped("fleet/server.conf")
        for function, metric in (
            ("sum", "memory-pss"),
            ("num", "memory-pss"),
            ("average", "memory-pss"),
            ("sum", "count-unreadable"),
            ("max", "percent-pss"),
            ("average", "percent-pss"),
            ("max", "duration-age"),
        ):
            name = f"fleet/aggregation-smaps-GROUP-{function}/{metric}"
            self.assertIn(name, text)
            wait_until(lambda: self.fleet(function, metric), name)
        for metric in ("memory-uss", "memory-swap"):
            wait_until(lambda: self.fleet("sum", metric), metric)

    def test_the_sum_is_over_the_clients_that_are_there(self):
        notify = NotifyFile()
        self.start_fleet_server(extra=notify.config())
        first, second = self.start_two_clients()
        for metric in ("memory-pss", "memory-uss"):
            self.wait_sums(metric, 2, lambda: sums_of(first, second, metric))
        sums = self.fleet("sum", "memory-pss").values()
        self.assertTrue(any(value > 50 * MIB for value in sums))
        for daemon in (self.server, first, second):
            self.assertEqual(complaints(daemon), [])
        second.stop()
        lost = time.time()
        alert = self.wait_silent(notify, "web2")
        self.wait_sums(
            "memory-pss", 1, lambda: written(first, "memory-pss"), lost
        )
        # The number goes down long before the server misses the client.
        nums = self.fleet("num", "memory-pss")
        alone = [t for t, num in nums.items() if t > lost and num == 1]
        self.assertLess(min(alone), alert.time - INTERVAL)
        first.stop()
        self.wait_silent(notify, "web1")
        nums = self.fleet("num", "memory-pss")
        last = max(nums)
        self.assertEqual(nums[last], 0)
        self.assertNotIn(last, self.fleet("sum", "memory-pss"))
        self.start_client("web2")
        self.wait_severities(notify, "web2", ["OKAY", "FAILURE", "OKAY"])

    def wait_silent(self, notify, host):
        self.wait_severities(notify, host, ["OKAY", "FAILURE"])
        alert = alerts_of(notify, host)[-1]
        self.assertIn("has not been updated", alert.message)
        return alert

    def wait_severities(self, notify, host, expected):
        wait_until(
            lambda: [a.severity for a in alerts_of(notify, host)] == expected,
            lambda: f"{expected}, not {notify.alerts()}",
        )

    def wait_alert(self, notify, function, severity, since=0):
        identifier = f"fleet/aggregation-smaps-{GROUP}-{function}/memory-pss"

        def find():
            return [
                alert
                for alert in notify.alerts()
                if alert.identifier == identifier
                and alert.severity == severity
                and alert.time > since
            ]

        return wait_until(
            find, lambda: f"{severity} of {function}: {notify.alerts()}"
        )[0]

    def test_a_client_that_stops_does_not_end_a_warning(self):
        """The sum falls from 50 to 20 MiB, and is known not to be whole. The
        limits are 20 MiB a host, and two hosts."""
        notify = NotifyFile()
        limit = "WarningMax 6000000000\n        Hits 3"
        self.start_fleet_server(
            extra=notify.config(),
            replacements={
                limit: f"WarningMax {20 * MIB}",
                "FailureMin 10": "FailureMin 2",
            },
        )
        _, second = self.start_two_clients()
        alert = self.wait_alert(notify, "average", "WARNING")
        self.assertGreater(alert.value, 20 * MIB)
        self.wait_alert(notify, "num", "OKAY")
        second.stop()
        stopped = time.time()
        alert = self.wait_alert(notify, "num", "FAILURE", stopped)
        self.assertEqual(alert.value, 1)
        self.wait_until_sums_of_one(stopped)
        averages = [
            alert.severity
            for alert in notify.alerts()
            if "-average/" in alert.identifier and alert.time > stopped
        ]
        self.assertNotIn("OKAY", averages)
        self.start_client("web2")
        self.wait_alert(notify, "num", "OKAY", alert.time)

    def wait_until_sums_of_one(self, since):
        def find():
            nums = self.fleet("num", "memory-pss")
            return sum(n == 1 for t, n in nums.items() if t > since) > 6

        wait_until(find, lambda: self.describe("memory-pss"))


def alerts_of(notify, host):
    """Returns the alerts that show whether a client is there."""
    identifier = f"{host}/smaps/duration-cycle"
    return [a for a in notify.alerts() if a.identifier == identifier]
