"""The compiler's metrics for Prometheus and OpenTelemetry, with their own libraries and a real Prometheus."""

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import HistogramMetricFamily

import compilediag as cd
from compilediag.integrations.prometheus import Collector
from tests import inside

MONITORING = Path(__file__).resolve().parents[2] / "docs" / "monitoring"


def compiled(name="served"):
    def function(x, n):
        return x + len(n)

    function.__code__ = function.__code__.replace(co_name=name)
    return torch.compile(function, backend="eager", dynamic=False)


@pytest.fixture
def collector():
    """The collector of a new watch."""
    collector = Collector()
    yield collector
    collector.close()
    assert not inside.list_hooks() and cd.current() is None


@pytest.fixture
def registry(collector):
    registry = CollectorRegistry(auto_describe=True)
    registry.register(collector)
    return registry


@pytest.fixture
def exported(registry):
    """Both exporters while something compiles, before and after the warm-up: a registry, a reader, the session."""
    sdk = pytest.importorskip("opentelemetry.sdk.metrics", reason="opentelemetry-sdk is not installed")
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from compilediag.integrations.opentelemetry import instrument

    reader = InMemoryMetricReader()
    instrumentation = instrument(sdk.MeterProvider([reader]))
    session = cd.current()
    served = compiled()
    with ThreadPoolExecutor(2) as workers:  # A server: threads that take requests from a queue.

        def answer(length):
            return workers.submit(served, torch.ones(2), "n" * length).result()

        for length in (1, 2):
            answer(length)
        session.end_warmup()
        for length in (2, 3, 1):
            answer(length)
    session.flush()
    yield registry, reader, session
    instrumentation.uninstrument()


def read_prometheus(registry):
    """{(name, its labels without empty ones): value}"""
    return {
        (sample.name, frozenset((name, value) for name, value in sample.labels.items() if value)): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


def read_opentelemetry(reader):
    """The same with the names of Prometheus."""
    found = {}
    data = reader.get_metrics_data()
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        name = metric.name.replace(".", "_")
        for point in metric.data.data_points:
            labels = frozenset(point.attributes.items())
            if hasattr(point, "bucket_counts"):
                bounds = [*point.explicit_bounds, float("inf")]
                for n, bound in enumerate(bounds):
                    text = "+Inf" if n == len(bounds) - 1 else str(bound)
                    key = f"{name}_seconds_bucket", labels | {("le", text)}
                    found[key] = sum(point.bucket_counts[: n + 1])
                found[f"{name}_seconds_count", labels] = point.count
                found[f"{name}_seconds_sum", labels] = point.sum
            else:
                found[name if metric.name.endswith("active_compiles") else f"{name}_total", labels] = point.value
    return found


def test_both_count_the_same_and_what_the_session_has(exported):
    registry, reader, session = exported
    values = read_prometheus(registry)
    assert values == read_opentelemetry(reader)
    function = ("function", f"served ({Path(__file__).name})")
    assert values["torch_compile_compiles_total", frozenset({function, ("outcome", "ok")})] == 3
    assert values["torch_compile_compilation_duration_seconds_count", frozenset({function})] == 3
    seconds = values["torch_compile_compilation_duration_seconds_sum", frozenset({function})]
    assert seconds == pytest.approx(session.compiles["duration_s"].sum())
    (finding,) = session.findings()
    assert finding.rule == "string_changes"
    fingerprint = ("fingerprint", finding.fingerprint)
    assert values["torch_compile_recompiles_total", frozenset({function, fingerprint})] == 2
    incident = frozenset({function, fingerprint, ("kind", "recompile")})
    assert values["torch_compile_after_warmup_total", incident] == 1
    assert set(session.incidents["fingerprint"]) == {finding.fingerprint}
    failures = {
        labels: value for (name, labels), value in values.items() if name == "torch_compile_guard_failures_total"
    }
    assert failures == {
        frozenset({("kind", kind)}): n for kind, n in session.guard_failures["guard_kind"].value_counts().items()
    }
    assert values["torch_compile_active_compiles", frozenset()] == 0


def test_a_scrape_before_anything_was_compiled_has_no_counts_and_registers(registry, collector):
    assert {name for name, _ in read_prometheus(registry)} <= {"torch_compile_active_compiles"}
    families = list(collector.describe())
    assert len({family.name for family in families}) == 8
    assert any(isinstance(family, HistogramMetricFamily) for family in families)


def test_functions_beyond_the_limit_are_one(registry):
    for number in range(60):
        compiled(f"f{number}")(torch.ones(2), "n")
    cd.current().flush()
    values = read_prometheus(registry)
    counts = {dict(labels)["function"]: n for (name, labels), n in values.items() if name.endswith("compiles_total")}
    assert (len(counts), counts["other"], sum(counts.values())) == (51, 10, 60)


def test_metrics_go_on_when_the_file_of_the_session_is_lost(registry):
    session, served = cd.current(), compiled()
    for length in (1, 2, 3):
        served(torch.ones(2), "n" * length)
        session.flush()
        session.path.unlink(missing_ok=True)
    values = read_prometheus(registry)
    totals = ("torch_compile_compiles_total", "torch_compile_recompiles_total")
    assert [sum(value for (name, _), value in values.items() if name == total) for total in totals] == [3, 2]


def test_the_page_has_every_metric_with_its_labels(collector):
    text = (MONITORING.parent / "monitoring.md").read_text()
    rows = re.findall(r"^\| `(torch\.compile\.[\w.]+)` \| (\w+)[^|]*\|([^|]*)\|", text, re.MULTILINE)
    found = {name: (kind, {"rank", *re.findall(r"`(\w+)`", labels)}) for name, kind, labels in rows}
    families = {family.name: family for family in collector.describe()}
    shown = {name.replace(".", "_") + "_seconds" * name.endswith("duration"): row for name, row in found.items()}
    assert shown == {name: (family.type, set(family._labelnames)) for name, family in families.items()}


# A real Prometheus


def find_program(name):
    if shutil.which(name) is None:
        pytest.skip(f"no {name} here; apt-get install prometheus")
    return name


def test_the_rules_of_the_alerts_do_what_they_say():
    done = subprocess.run(
        [find_program("promtool"), "test", "rules", "alerts_test.yml"], cwd=MONITORING, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_scrapes_and_the_board_and_the_rules_find_what_they_ask_for(exported, tmp_path):
    program = find_program("prometheus")
    registry, _, _ = exported
    server, thread = start_http_server(0, "127.0.0.1", registry)
    rules = MONITORING / "alerts.yml"
    (tmp_path / "prometheus.yml").write_text(
        f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{json.dumps(str(rules))}]\n"
        "scrape_configs:\n"
        f"  - {{job_name: serving, static_configs: [{{targets: ['127.0.0.1:{server.server_port}']}}]}}\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [program, "--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(path, **arguments):
        url = f"http://{address}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def wait_for(look):
        end = time.monotonic() + 120
        while True:
            try:
                if found := look():
                    return found
            except OSError:
                pass  # It has not begun to listen.
            assert time.monotonic() < end and process.poll() is None, "prometheus does not answer"
            time.sleep(0.1)

    try:
        counted = wait_for(lambda: ask("query", query="torch_compile_after_warmup_total")["result"])
        assert [row["value"][1] for row in counted] == ["1"]
        firing = wait_for(lambda: ask("alerts")["alerts"])
        assert {alert["labels"]["alertname"] for alert in firing} == {"TorchCompilesAfterWarmup"}
        panels = json.loads((MONITORING / "grafana.json").read_text())["panels"]
        for query in (target["expr"].replace("$job", ".*") for panel in panels for target in panel["targets"]):
            assert ask("query", query=query)["resultType"] == "vector"
            names = set(re.findall(r"torch_compile_\w+", query))
            known = {name for family in registry.collect() for name in (s.name for s in family.samples)}
            families = {f"{family.name}_total" for family in registry.collect()}
            assert names <= known | families, f"the board asks for what is not there: {query}"
    finally:
        process.terminate()
        process.wait()
        server.shutdown()
        thread.join()
