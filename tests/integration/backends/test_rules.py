"""The rules of contrib/prometheus on made-up histories: hours and days of
services that fill up, restart or end. promtool says which alerts fired at any
time, and these have to be the expected ones and no other."""

import json
import math
import random
import shutil
import unittest

from harness import stage
from test_prometheus import FILES, run_promtool

MINUTE, HOUR, DAY = 60, 3600, 86400

NAN = math.nan


def step_of(seconds):
    """Long histories have fewer values an hour, for the time that they take."""
    if seconds <= 3 * HOUR:
        return MINUTE
    if seconds <= DAY:
        return 5 * MINUTE
    return 10 * MINUTE if seconds <= 7 * DAY else 30 * MINUTE


def text_of(function, seconds):
    """The values, as promtool has them. None is no sample, and a series that
    ends is stale."""
    words = []
    for t in range(0, seconds + 1, step_of(seconds)):
        value = function(t)
        if value is not None:
            words.append(repr(float(value)).replace("nan", "NaN"))
        elif words and words[-1] not in ("stale", "_"):
            words.append("stale")
        else:
            words.append("_")
    return " ".join(words)


def pss(group, function, instance="h"):
    return {f'smaps_pss_bytes{{group="{group}",instance="{instance}"}}': function}


def processes(group, function, instance="h"):
    return {f'smaps_processes{{group="{group}",instance="{instance}"}}': function}


def alive(instance="h", function=lambda t: 0.001):
    return {f'smaps_plugin_cycle_seconds{{instance="{instance}"}}': function}


def noisy(function, amount):
    """Moves the values by this amount at most, the same in each run."""
    generator = random.Random(1)
    return lambda t: function(t) + generator.uniform(-amount, amount)


def ramp(begin, seconds, low, high):
    """From low to high, from the beginning on."""

    def value(t):
        part = min(max((t - begin) / seconds, 0), 1)
        return low + part * (high - low)

    return value


def unknown_now_and_then(function, seconds=9 * MINUTE):
    return lambda t: NAN if t % seconds < MINUTE else function(t)


def on_hosts(*histories):
    """Histories of one host beside each other, each on a host of its own."""
    return {
        selector.replace('instance="h"', f'instance="h{i}"'): function
        for i, series in enumerate(histories)
        for selector, function in series.items()
    }


class RulesTest(unittest.TestCase):
    def check(self, seconds, series, *expected, since=0, until=None, hosts=1):
        """Of {selector: function of the seconds}: exactly these alerts, as
        (name, group or None), fire at any time of the history, and on that many
        hosts. With since, what fires before does not count; with until, all
        fire before that."""
        samples = []
        for name, group in expected:
            labels = f'alertname="{name}"'
            labels += f',group="{group}"' if group else ""
            samples.append({"labels": f"{{{labels}}}", "value": hosts})
        answers = [
            {
                "expr": fired(since, end),
                "eval_time": f"{end}s",
                "exp_samples": samples,
            }
            for end in {seconds, until or seconds}
        ]
        self.promtool(seconds, series, answers)

    def promtool(self, seconds, series, answers):
        step = f"{step_of(seconds)}s"
        values = [
            {"series": selector, "values": text_of(function, seconds)}
            for selector, function in series.items()
        ]
        test = {
            "rule_files": ["rules.yml"],
            "evaluation_interval": step,
            "group_eval_order": GROUP_ORDER,
            "tests": [
                {
                    "interval": step,
                    "input_series": values,
                    "promql_expr_test": answers,
                }
            ],
        }
        directory = stage().new_directory()
        shutil.copy(FILES / "rules.yml", directory)
        # JSON is YAML.
        (directory / "test.yml").write_text(json.dumps(test))
        status, said = run_promtool(directory, "test", "rules", "test.yml")
        self.assertEqual(status, 0, said)


def fired(begin, end):
    """On how many hosts each alert has fired in that time."""
    alerts = f'ALERTS{{alertstate="firing"}}[{end - begin}s]'
    return (
        "count by (alertname, group) "
        f"(group by (alertname, group, instance) (present_over_time({alerts})))"
    )


GROUP_ORDER = ["smaps-own", "smaps", "smaps-growth", "smaps-alerts"]


class Limits(RulesTest):
    def test_a_limit_that_is_passed_is_told_beside_unknown_values(self):
        self.check(
            HOUR,
            pss("postgres", unknown_now_and_then(lambda t: 7e9)),
            ("SmapsPssAboveLimit", "postgres"),
            until=20 * MINUTE,
        )
        often = unknown_now_and_then(lambda t: 7e9, 4 * MINUTE)
        self.check(
            HOUR, pss("postgres", often), ("SmapsPssAboveLimit", "postgres")
        )

    def test_a_peak_of_five_minutes_is_not_told(self):
        def peak(t):
            return 7e9 if HOUR <= t < HOUR + 5 * MINUTE else 2e9

        self.check(3 * HOUR, pss("postgres", peak))

    def test_an_unknown_value_is_told_and_not_taken_for_less(self):
        self.check(
            HOUR,
            pss("postgres", lambda t: NAN),
            ("SmapsPssUnknown", "postgres"),
        )

    def test_growth_towards_the_limit_is_told_before(self):
        growth = noisy(ramp(2 * HOUR, 4 * HOUR, 4.2e9, 5.9e9), 20e6)
        self.check(
            8 * HOUR, pss("postgres", growth), ("SmapsLimitSoon", "postgres")
        )

    def test_a_service_that_stays_below_the_limit_is_not_told(self):
        functions = (
            noisy(lambda t: 5.5e9, 20e6),
            noisy(ramp(0, 3 * HOUR, 1e8, 4.5e9), 20e6),
            ramp(0, 10 * HOUR, 5.9e9, 5e9),
        )
        self.check(
            12 * HOUR, on_hosts(*(pss("postgres", f) for f in functions))
        )

    def test_a_host_that_fills_up_is_told(self):
        """Two groups, of which neither is much. MemTotal comes from the memory
        plugin on one host, and from percentages on the other."""
        growth = ramp(2 * HOUR, 4 * HOUR, 5e9, 7.5e9)
        groups = {**pss("a", growth), **pss("b", growth)}
        memory = {
            'collectd_memory{memory="used",instance="h"}': lambda t: 9e9,
            'collectd_memory{memory="free",instance="h"}': lambda t: 7e9,
        }
        percentages = {
            'smaps_pss_share_percent{group="a",instance="h"}': lambda t: (
                100 * growth(t) / 16e9
            )
        }
        self.check(
            8 * HOUR,
            on_hosts({**groups, **memory}, {**groups, **percentages}),
            ("SmapsHostFullSoon", None),
            until=5 * HOUR,
            hosts=2,
        )

    def test_a_host_with_room_is_not_told(self):
        memory = {'collectd_memory{memory="used",instance="h"}': lambda t: 16e9}
        functions = (
            noisy(lambda t: 12e9, 50e6),
            ramp(0, 3 * HOUR, 1e9, 10e9),
            ramp(0, 10 * HOUR, 14e9, 12e9),
        )
        hosts = ({**pss("a", f), **memory} for f in functions)
        self.check(12 * HOUR, on_hosts(*hosts))

    def test_a_host_that_is_full_and_grows_no_more_is_told(self):
        memory = {'collectd_memory{memory="used",instance="h"}': lambda t: 16e9}
        self.check(
            4 * HOUR,
            {**pss("a", lambda t: 15e9), **memory},
            ("SmapsHostFullSoon", None),
        )


class Services(RulesTest):
    def test_a_service_that_was_killed_is_gone(self):
        self.check(
            9 * HOUR,
            processes("web", lambda t: 5 if t < 8 * HOUR else 0),
            ("SmapsServiceGone", "web"),
            until=8 * HOUR + 10 * MINUTE,
        )

    def test_a_service_that_was_killed_soon_after_a_restart_is_gone(self):
        def restarted(t):
            if 8 * HOUR <= t < 8 * HOUR + 5 * MINUTE or t >= 10 * HOUR:
                return 0
            return 5

        self.check(
            11 * HOUR,
            processes("web", restarted),
            ("SmapsServiceGone", "web"),
        )

    def test_a_restart_is_none(self):
        def restarted(t):
            return 0 if 8 * HOUR <= t < 8 * HOUR + 5 * MINUTE else 5

        self.check(12 * HOUR, processes("web", restarted))

    def test_a_nightly_job_that_ends_is_not_gone(self):
        def job(t):
            return 3 if t % DAY // HOUR in (1, 2, 3, 7, 8, 9) else 0

        self.check(3 * DAY, processes("backup", job))

    def test_a_unit_that_ends_is_gone_where_it_is_expected(self):
        def ended(t):
            return 1 if t < HOUR else None

        self.check(
            2 * HOUR,
            {
                **processes("ssh.service", ended),
                **processes("cron.service", ended),
                **processes("ssh.service", lambda t: 1, instance="fine"),
                **alive("h"),
                **alive("fine"),
            },
            ("SmapsServiceGone", "ssh.service"),
        )

    def test_a_host_that_is_silent_is_not_told_for_each_of_its_services(self):
        def ended(t):
            return 1 if t < 8 * HOUR else None

        self.check(
            9 * HOUR,
            {
                **processes("ssh.service", ended),
                **processes("web", ended),
                **alive("h", ended),
            },
            ("SmapsSilent", None),
        )


class ControlGroups(RulesTest):
    """A service that systemd starts again when it was killed."""

    @staticmethod
    def web(percent, kills):
        return {
            'smaps_cgroup_limit_percent{group="web",instance="h"}': percent,
            'smaps_oom_kill{group="web",instance="h"}': kills,
            **pss("web", lambda t: 1e9),
        }

    def test_a_service_that_fills_up_and_is_killed_is_told_before_and_after(
        self,
    ):
        def percent(t):
            return 50 + t / MINUTE / 4 if t < 3 * HOUR + 15 * MINUTE else 30

        def kills(t):
            killed = 3 * HOUR + 15 * MINUTE
            return 1 if killed <= t < killed + HOUR else 0

        self.check(
            6 * HOUR,
            self.web(unknown_now_and_then(percent), kills),
            ("SmapsCgroupNearLimit", "web"),
            ("SmapsOomKill", "web"),
        )
        # The first comes before the kill, and neither stays.
        self.check(
            3 * HOUR + 10 * MINUTE,
            self.web(percent, kills),
            ("SmapsCgroupNearLimit", "web"),
        )
        self.check(6 * HOUR, self.web(percent, kills), since=5 * HOUR)

    def test_saw_teeth_of_a_garbage_collector_below_the_limit_are_none(self):
        def percent(t):
            return 60 + 38 * (t % (20 * MINUTE)) / (20 * MINUTE)

        self.check(6 * HOUR, self.web(percent, lambda t: 0))

    def test_an_unknown_count_is_none(self):
        self.check(2 * HOUR, self.web(lambda t: math.nan, lambda t: math.nan))


class Quality(RulesTest):
    @staticmethod
    def error(function):
        return {
            'smaps_pss_error_bytes{group="web",instance="h"}': function,
            **pss("web", lambda t: 2e9),
        }

    def test_a_large_error_is_told(self):
        self.check(
            2 * HOUR,
            self.error(unknown_now_and_then(lambda t: 6e8)),
            ("SmapsErrorLarge", "web"),
        )

    def test_an_error_that_is_small_or_short_is_not_told(self):
        small = self.error(lambda t: 4e8)
        short = self.error(lambda t: 2e9 if t < 20 * MINUTE else 0)
        self.check(2 * HOUR, on_hosts(small, short))

    def test_a_job_without_relabelling_is_told(self):
        raw = 'collectd_smaps_duration_seconds{smaps="cycle",job="collectd"}'
        self.check(
            HOUR, {raw: lambda t: 0.001}, ("SmapsNotRelabelled", None)
        )


if __name__ == "__main__":
    unittest.main()
