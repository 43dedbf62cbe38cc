"""Protects that metrics cost nothing unasked, disturb nobody, and are what documents and rules say.

What each part counts is tested beside it as far as a test there sees it; the rest is here.
"""

import json
import re
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
import yaml

from masakari_ng import errors, metrics
from masakari_ng.compute.nova import Cloud
from masakari_ng.db.session import Database
from masakari_ng.messaging.notifier import Notifier
from tests.scraped import of
from tests.servers import free_port

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "etc" / "prometheus" / "masakari-ng.rules.yml"
DASHBOARD = ROOT / "etc" / "prometheus" / "masakari-ng-dashboard.json"
UUID = "11111111-0000-4000-8000-000000000001"
NAME = re.compile(r"\bmasakari_ng_\w+")
KINDS = {"Counter": "counter", "Histogram": "histogram", "Gauge": "gauge", "": "gauge"}

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)"
)


def sample_names() -> set[str]:
    """What each metric is called in queries."""
    return {
        metric.name + suffix
        for metric in metrics.ALL
        for suffix in (("_bucket", "_sum", "_count") if metric.kind == "Histogram" else ("",))
    }


def promtool(*arguments: object, cwd: Path = ROOT) -> None:
    done = subprocess.run(
        ["promtool", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_where_nothing_is_measured_the_library_is_not_even_loaded():
    program = (
        "import sys, masakari_ng.cmd.engine_parts as _; print('prometheus_client' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "False"


def test_nothing_is_kept_before_the_begin_and_after_the_end(measured):
    metrics.VMOVES.count("failed")
    assert of(measured(), "vmoves_total") == {("failed",): 1}

    metrics.end()
    metrics.VMOVES.count("failed")

    assert of(measured(), "vmoves_total") == {("failed",): 1}


def test_what_cannot_be_kept_disturbs_nobody(measured, caplog):
    metrics.VMOVES.count("failed", "too many")
    metrics.VMOVES.count("failed")

    assert caplog.messages == ["masakari_ng_vmoves_total is measured no longer"]


def test_a_database_that_fails_or_hangs_holds_up_no_scrape():
    go = threading.Event()
    readings = []

    def read():
        readings.append(len(readings))
        if len(readings) == 1:
            raise errors.DatabaseUnavailable("away")
        go.wait(20)
        return [(metrics.SILENCE, 3.0, ())]

    failing, hanging = metrics.Reading(read), metrics.Reading(read)

    assert list(failing.collect()) == list(failing.collect()) == []
    assert readings == [0], "a failure is asked for again only after a while, too"
    assert list(hanging.collect()) == []
    go.set()
    (family,) = hanging.collect()
    assert [sample.value for sample in family.samples] == [3.0]
    assert readings == [0, 1]


def test_requests_are_told_apart_by_operation_and_answer(measured, cloud, conf):
    cloud.reset({"servers": [{"id": UUID, "name": "vm-1", "host": "compute-1"}]})
    nova = Cloud(conf).nova("req-1")
    nova.lock(UUID)
    nova.server(UUID)
    nova.services("compute-1")
    with pytest.raises(errors.CloudNotFound):
        nova.server(UUID.replace("1", "2"))

    cloud.stop()
    with pytest.raises(errors.CloudUnreachable):
        nova.server(UUID)

    asked = of(measured(), "cloud_request_seconds_count")
    assert {operation for _, operation in asked} == {
        *("token", "discovery", "lock", "GET /servers/ID", "GET /os-services")
    }
    assert asked["202", "lock"] == 1
    assert asked["200", "GET /servers/ID"] == asked["404", "GET /servers/ID"] == 1
    assert asked["none", "GET /servers/ID"] == 1


def test_the_database_is_connected_or_not_and_repeats_are_counted(measured, database):
    answers = [errors.DatabaseDeadlock("d"), errors.DatabaseUnavailable("u"), None]
    seen = []

    def run():
        answer = answers.pop(0)
        if answer:
            raise answer

    patient = Database(
        str(database.engine.url),
        patience=60,
        sleep=lambda _: seen.append(of(measured(), "connected").get(("database",))),
    )
    patient.attempt(run)
    patient.close()

    assert seen == [None, 0]
    assert of(measured(), "connected") == {("database",): 1}
    assert of(measured(), "database_repeats_total") == {("deadlock",): 1, ("unavailable",): 1}


def test_events_that_find_no_room_are_counted(measured, conf):
    group = "oslo_messaging_notifications"
    conf.set_override("driver", ["messagingv2"], group)
    conf.set_override("transport_url", f"rabbit://127.0.0.1:{free_port()}/", group)
    conf.set_override("event_buffer", 1, "masakari_ng")
    notifier = Notifier(conf)

    for _ in range(5):
        notifier.send({"priority": "INFO"}, {})

    assert of(measured(), "events_dropped_total") == {("buffer_full",): notifier.dropped}
    notifier.close()


def test_each_metric_is_documented_as_it_is():
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \| [^|]+ \| ([^|]+) \|",
        (ROOT / "docs" / "metrics.md").read_text(),
        re.MULTILINE,
    )

    assert [(name, kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows] == [
        (metric.name, KINDS[metric.kind], metric.labels) for metric in metrics.ALL
    ]


def test_rules_and_dashboard_use_metrics_that_exist():
    rules = [
        rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    ]
    panels = json.loads(DASHBOARD.read_text())["panels"]
    queries = [rule["expr"] for rule in rules] + [
        target["expr"] for panel in panels for target in panel["targets"]
    ]

    for query in queries:
        assert NAME.findall(query), query
        assert set(NAME.findall(query)) <= sample_names(), query
    shown = {
        name
        for panel in panels
        for target in panel["targets"]
        for name in NAME.findall(target["expr"])
    }
    assert {metric.name for metric in metrics.ALL} == {
        re.sub("_(bucket|count)$", "", name) for name in shown
    }
    for rule in rules:
        assert rule["annotations"].keys() == {"summary", "runbook"}, rule
        assert rule["labels"]["severity"] in {"critical", "warning"}, rule


@needs_promtool
def test_prometheus_can_read_the_rules():
    promtool("check", "rules", RULES)


@needs_promtool
def test_the_first_lost_failure_rings(tmp_path):
    """Its series begins with 1, which is no increase for Prometheus."""
    (tmp_path / "test.yml").write_text(
        textwrap.dedent(f"""
        rule_files: [{RULES}]
        evaluation_interval: 1m
        tests:
          - interval: 1m
            input_series:
              - series: masakari_ng_claims{{state="working"}}
                values: 0x30
              - series: masakari_ng_reports_refused_total{{type="VM", reason="maintenance"}}
                values: _ _ _ _ _ 1x25
              - series: masakari_ng_reports_refused_total{{type="VM", reason="duplicate"}}
                values: _ _ _ _ _ 1x25
            promql_expr_test:
              - expr: count(ALERTS{{alertstate="firing"}}) by (alertname)
                eval_time: 6m
                exp_samples:
                  - {{labels: '{{alertname="MasakariFailureRefused"}}', value: 1}}
              - expr: count(ALERTS{{alertstate="firing"}})
                eval_time: 20m
                exp_samples: []
        """)
    )

    promtool("test", "rules", "test.yml", cwd=tmp_path)
