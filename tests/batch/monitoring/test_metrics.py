"""Figures of a batch for Prometheus."""

import os
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.needs import package

parser = package("prometheus_client.parser")

from symbolize.batch.manifest import InputResult, Manifest
from symbolize.batch.monitoring.metrics import (
    MAX_CLIENTS,
    MAX_LABELS,
    METRICS,
    PREFIX,
    Metrics,
    MetricsFile,
    MetricsServer,
)
from symbolize.core.errors import OutputError, UsageError
from symbolize.core.reasons import Reason
from symbolize.storage.inputs import Input
from tests.support import batch_events as events

Samples = dict[tuple[str, tuple[str, ...]], float]


def samples(metrics: Metrics) -> Samples:
    """All samples by name and values of the labels in alphabetical order, as Prometheus' own parser reads them."""
    return {
        (sample.name.removeprefix("symbolize_"), tuple(sample.labels.values())): sample.value
        for family in parser.text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def unexpected(text: str) -> None:
    """A warning that no test waits for."""
    raise AssertionError(text)


def a_run(metrics: Metrics) -> None:
    """Three inputs: one is put off and done later, one is quarantined, one still waits."""
    missed = [("no-symbols", 3, 20.0), ("outside-symbols", 1, 5.0)]
    metrics.began(3, 7, 2, {})
    metrics.problem("/nowhere", "is missing")
    metrics.entered("scan", 3)
    metrics.handled(events.item(1), events.put_off(1))
    metrics.handled(events.item(2), events.quarantined(2, "time"))
    metrics.entered("decode", 2)
    metrics.decoded(events.decoded("ab12"))
    metrics.decoded(events.decoded("cd34", "gone"))
    metrics.entered("rewrite", 1)
    metrics.handled(
        events.item(1),
        events.done(
            1,
            events.coverage(
                events.mapping("app"),
                events.mapping("libc", misses=missed),
                events.mapping("x", locations=2, value=7.0, misses=[("not-found", 2, 7.0)]),
            ),
            events.coverage(events.mapping("app"), sample_type="alloc_space", unit="bytes"),
        ),
    )


def test_figures_of_a_run() -> None:
    """Every event is counted once, under the labels that it has."""
    times = iter(range(100, 200))
    metrics = Metrics("1.2", lambda: next(times))
    a_run(metrics)
    found = samples(metrics)
    assert found["build_info", ("1.2",)] == 1
    expected: Samples = {
        ("up", ()): 1,
        ("start_time_seconds", ()): 100,
        ("last_progress_time_seconds", ()): 110,
        ("pass", ("scan",)): 0,
        ("pass", ("rewrite",)): 1,
        ("pass_tasks", ("scan",)): 3,
        ("pass_tasks_finished", ("scan",)): 2,
        ("pass_tasks_finished", ("decode",)): 2,
        ("inputs_waiting", ()): 1,
        ("inputs_total", ("done",)): 1,
        ("inputs_total", ("quarantined",)): 1,
        ("inputs_total", ("skipped",)): 9,
        ("inputs_put_off_total", ()): 1,
        ("quarantined_total", ("time",)): 1,
        ("problems_total", ()): 1,
        ("input_bytes_total", ()): 2000,
        ("output_bytes_total", ()): 1400,
        ("profiles_with_warnings_total", ()): 0,
        ("profiles_total", ()): 2,
        ("samples_total", ()): 10,
        ("locations_total", ("symbolized",)): 26,
        ("locations_total", ("no-symbols",)): 3,
        ("locations_total", ("not-found",)): 2,
        ("sample_value_total", ("symbolized", "cpu", "nanoseconds")): 175,
        ("sample_value_total", ("no-symbols", "cpu", "nanoseconds")): 20,
        ("sample_value_total", ("symbolized", "alloc_space", "bytes")): 100,
        ("mappings_total", ("symbolized",)): 2,
        ("mappings_total", ("partly",)): 1,
        ("mappings_total", ("not-found",)): 1,
        ("tables_made_total", ()): 1,
        ("tables_failed_total", ()): 1,
        ("table_seconds_total", ()): 3,
        ("table_bytes_total", ()): 5000,
        ("table_addresses_total", ()): 40,
        ("input_seconds_bucket", ("0.03", "scan")): 0,
        ("input_seconds_bucket", ("0.1", "scan")): 1,
        ("input_seconds_bucket", ("0.3", "scan")): 2,
        ("input_seconds_bucket", ("+Inf", "scan")): 2,
        ("input_seconds_count", ("rewrite",)): 1,
        ("input_seconds_sum", ("rewrite",)): 0.5,
    }
    assert {key: found.get(key) for key in expected} == expected
    metrics.close()
    assert samples(metrics)["up", ()] == samples(metrics)["pass", ("rewrite",)] == 0


def test_every_line_is_of_the_format() -> None:
    """HELP and TYPE stand before the samples of each metric, once, and the text ends with a line feed."""
    metrics = Metrics("1.2")
    a_run(metrics)
    text = metrics.render().decode()
    assert text.endswith("\n")
    assert "\n\n" not in text
    lines = text.splitlines()
    seen = set()
    for i, line in enumerate(lines):
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in seen
            assert lines[i + 1].startswith(f"# TYPE {name} ")
            seen.add(name)
        elif not line.startswith("# TYPE "):
            assert line.startswith(name)
    kinds = {family.name: family.type for family in parser.text_string_to_metric_families(text)}
    assert kinds["symbolize_inputs"] == "counter"
    assert kinds["symbolize_inputs_waiting"] == "gauge"
    assert kinds["symbolize_input_seconds"] == "histogram"


def test_outcomes_are_there_before_they_happen() -> None:
    """Rates need a beginning: states and outcomes start with 0."""
    found = samples(Metrics())
    assert found["inputs_total", ("quarantined",)] == 0
    assert found["quarantined_total", ("crash",)] == found["quarantined_total", ("unwritable",)] == 0
    assert {labels[0] for name, labels in found if name == "locations_total"} == {
        reason.code for reason in Reason if reason is not Reason.HAD_NAMES
    }


def test_what_this_run_did_is_not_skipped() -> None:
    """A batch that looks again for inputs tells what is done by now; its own are not those of earlier runs."""
    metrics = Metrics()
    metrics.began(1, 4, 0, {})
    metrics.entered("scan", 1)
    metrics.handled(events.item(1), events.done(1))
    metrics.began(2, 5, 0, {})
    assert samples(metrics)["inputs_total", ("skipped",)] == 4
    assert samples(metrics)["inputs_waiting", ()] == 2


def test_inputs_of_earlier_runs(tmp_path: Path) -> None:
    """Coverage and what is done or in quarantine are those of all inputs, as the report has them, also while they
    change; what is done again counts once."""
    some = [events.coverage(events.mapping(misses=[("not-found", 5, value)])) for value in (100.0, 60.0, 20.0)]
    inputs = [Input(f"/in/{number}.prof", str(number), 1000, "v") for number in (1, 2, 3)]
    with Manifest(str(tmp_path / "manifest.sqlite")) as manifest:

        def seen(metrics: Metrics) -> tuple[float, ...]:
            found = samples(metrics)
            return (
                found["coverage_percent", ()],
                found["inputs_done", ()],
                found["inputs_quarantined", ("unreadable",)],
                found["inputs_quarantined", ("other",)],
            )

        def add(*numbers: int, again: bool = False) -> None:
            manifest.add([inputs[each - 1] for each in numbers], "x", retry=False, again=again)

        def end(metrics: Metrics, result: InputResult) -> None:
            manifest.record([result])
            metrics.handled(events.item(result.number), result)

        metrics = Metrics(manifest=manifest)
        add(1, 2, 3)
        metrics.began(3, 0, 0, {})
        assert seen(metrics) == (0, 0, 0, 0)
        end(metrics, events.done(1, some[0]))
        end(metrics, events.done(2, some[1]))
        end(metrics, events.quarantined(3))
        assert seen(metrics) == (20, 2, 1, 0)
        metrics.close()
        assert seen(metrics) == (20, 2, 1, 0)
        manifest.generation += 1
        metrics = Metrics(manifest=manifest)
        add(2, 3)
        add(1, again=True)
        metrics.began(1, 1, 1, {})
        assert seen(metrics) == (40, 1, 1, 0)
        end(metrics, events.done(1, some[2], some[2]))
        assert seen(metrics) == (pytest.approx(200 / 3), 2, 1, 0)
        manifest.make_new([1])
        metrics.began(1, 1, 1, {})
        end(metrics, events.quarantined(1, "of a later version"))
        assert seen(metrics) == (40, 1, 1, 1)
        metrics.close()
        assert seen(metrics) == (40, 1, 1, 1)


def test_how_it_ended() -> None:
    """Time and exit code of the end; a batch that an error ended has failed. While it runs neither is known."""
    for code, shown in ((0, 0), (4, 4), (None, 1)):
        metrics = Metrics(clock=lambda: 1000.0)
        assert (samples(metrics)["end_time_seconds", ()], samples(metrics)["exit_code", ()]) == (0, 0)
        if code is not None:
            metrics.ended(code)
        metrics.close()
        assert (samples(metrics)["end_time_seconds", ()], samples(metrics)["exit_code", ()]) == (1000, shown)


def test_types_of_values_are_limited() -> None:
    """Profiles cannot make as many series as they like, nor long ones."""
    metrics = Metrics()
    metrics.entered("scan", 99)
    for i in range(MAX_LABELS + 5):
        kind = f'{i}"\\\n' + "x" * 1000
        metrics.handled(events.item(i), events.done(i, events.coverage(events.mapping(), sample_type=kind)))
        metrics.handled(events.item(i), events.quarantined(i, "later"))
    found = samples(metrics)
    kinds = [labels[1] for name, labels in found if name == "sample_value_total"]
    assert len(kinds) == MAX_LABELS
    assert max(map(len, kinds)) == 100
    assert found["quarantined_total", ("other",)] == MAX_LABELS + 5


def test_unknown_sizes_do_not_count() -> None:
    """An input of unknown size, -1, takes nothing away."""
    metrics = Metrics()
    metrics.handled(events.item(1, size=-1), events.quarantined(1))
    assert samples(metrics)["input_bytes_total", ()] == 0


def test_label_values_are_escaped() -> None:
    """The parser gets back what was put in, whatever it is."""
    text = 'a\\b"c\nd\\n'
    metrics = Metrics(text)
    assert ("build_info", (text,)) in samples(metrics)


def test_text_that_cannot_be_encoded() -> None:
    """Half a surrogate pair spoils nothing."""
    metrics = Metrics()
    metrics.handled(events.item(), events.done(1, events.coverage(events.mapping(), sample_type="\udcff")))
    metrics.handled(events.item(), events.quarantined(1, "\udcff"))
    assert samples(metrics)["inputs_total", ("done",)] == 1


def test_file_is_renewed_and_closed(tmp_path: Path) -> None:
    """The file is there at once, follows the figures, and says at the end that the batch is over."""
    path = tmp_path / "symbolize.prom"
    metrics = Metrics()
    with MetricsFile(metrics, str(path), unexpected, every=0.02), metrics:
        assert b"symbolize_up 1.0\n" in path.read_bytes()
        metrics.began(17, 0, 0, {})
        wait_for(lambda: b"symbolize_inputs_waiting 17.0\n" in path.read_bytes())
    assert b"symbolize_up 0.0\n" in path.read_bytes()
    assert os.listdir(tmp_path) == ["symbolize.prom"]


def test_file_that_cannot_be_written_any_more(tmp_path: Path) -> None:
    """It costs one warning."""
    folder, said = tmp_path / "a", list[str]()
    folder.mkdir()
    metrics = Metrics()
    with MetricsFile(metrics, str(folder / "m.prom"), said.append, every=0.01):
        os.rename(folder, tmp_path / "b")
        wait_for(lambda: bool(said))
    assert said == [f"{folder}/m.prom: cannot be written: No such file or directory"]
    with pytest.raises(OutputError):
        MetricsFile(metrics, str(folder / "m.prom"), unexpected)


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_look_and_the_coverage() -> None:
    """When all inputs were listed last, and the mean percentage of the profiles that were written."""
    now = 10.0
    metrics = Metrics(clock=lambda: now)
    assert b"symbolize_last_look_time_seconds 10.0\n" in metrics.render()
    now = 70.0
    metrics.listed()
    assert b"symbolize_last_look_time_seconds 70.0\n" in metrics.render()
    metrics.entered("scan", 2)
    half = events.coverage(events.mapping(misses=[("not-found", 5, 50.0)]))
    metrics.handled(events.item(1), events.done(1, half))
    metrics.handled(events.item(2), events.done(2, events.coverage(events.mapping()), events.coverage()))
    assert b"symbolize_coverage_percent 75.0\n" in metrics.render()


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    """A server on a free port of the loopback."""
    metrics = Metrics()
    a_run(metrics)
    with MetricsServer(metrics, 0) as server:
        yield server


def ask(server: MetricsServer, path: str, method: str = "GET") -> tuple[int, str, bytes]:
    """Status, content type and body of an answer."""
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read()


def raw(server: MetricsServer, data: bytes) -> bytes:
    """What the server sends back until it closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        try:
            connection.sendall(data)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionError:
            return b""
        return answer


@pytest.mark.process
def test_server_answers(server: MetricsServer) -> None:
    """The metrics, whatever the query."""
    status, kind, body = ask(server, "/metrics")
    assert (status, kind.partition(";")[0]) == (200, "text/plain")
    assert b"symbolize_inputs_waiting 1.0\n" in body
    assert list(parser.text_string_to_metric_families(body.decode()))
    assert ask(server, "/metrics?name[]=x")[0] == 200


@pytest.mark.process
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "GETT"])
def test_only_get(server: MetricsServer, method: str) -> None:
    """Nothing can be changed."""
    assert b"symbolize" not in ask(server, "/metrics", method)[2]


@pytest.mark.process
@pytest.mark.parametrize(
    "request_",
    [
        b"\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /metrics HTTP/9.9.9\r\n\r\n",
        b"GET /metrics HTTP/2.0\r\n\r\n",
        b"GET /<script> HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"A: " + b"x" * 100_000 + b"\r\n\r\n",
    ],
)
def test_bad_requests(server: MetricsServer, request_: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    """Nonsense gets a short refusal or none; nothing of it comes back, nothing is printed, and others are served."""
    answer = raw(server, request_)
    assert b"Traceback" not in answer
    assert b"script" not in answer
    assert ask(server, "/metrics")[0] == 200
    assert capfd.readouterr() == ("", "")


@pytest.mark.process
def test_slow_clients_are_left(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that sends a byte now and then is cut off in the end."""
    monkeypatch.setattr("symbolize.batch.monitoring.metrics.MAX_SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        for _ in range(1200):
            try:
                connection.sendall(b"G")
            except ConnectionError:
                return
            time.sleep(0.05)
    pytest.fail("not cut off in a minute")


@pytest.mark.process
def test_silent_clients_are_left(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are cut off after a while, and hold up nobody meanwhile."""
    monkeypatch.setattr("symbolize.batch.monitoring.metrics.MAX_SECONDS", 0.2)
    silent = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(4)]
    assert ask(server, "/metrics")[0] == 200
    for connection in silent:
        with connection:
            assert connection.recv(1000) == b""


@pytest.mark.process
def test_many_clients_do_not_pile_up(server: MetricsServer) -> None:
    """Beyond a few silent clients new ones are turned away, and served again when those are gone."""
    before = threading.active_count()
    silent = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(30)]
    try:
        wait_for(lambda: threading.active_count() >= before + MAX_CLIENTS)
        assert raw(server, b"GET /metrics HTTP/1.0\r\n\r\n") == b""
    finally:
        for connection in silent:
            connection.close()
    wait_for(lambda: b" 200 " in raw(server, b"GET /metrics HTTP/1.0\r\n\r\n"))


@pytest.mark.process
def test_port_that_is_taken(server: MetricsServer) -> None:
    """Is a mistake of the person who asks for it."""
    with pytest.raises(UsageError, match=r"127\.0\.0\.1 port \d+: cannot listen there: Address already in use"):
        MetricsServer(Metrics(), server.port)
    for address, port in (("127.0.0.1", 70000), ("no such host.invalid", 0), ("203.0.113.1", 0)):
        with pytest.raises(UsageError, match="cannot listen there"):
            MetricsServer(Metrics(), port, address)


@pytest.mark.process
def test_closed_server_does_not_answer() -> None:
    """After the batch nobody listens."""
    server = MetricsServer(Metrics(), 0)
    server.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.port), timeout=60)


def test_figures_from_several_threads() -> None:
    """What is read while figures change is whole."""
    metrics = Metrics()
    over = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not over.is_set():
                found = samples(metrics)
                assert found["inputs_total", ("done",)] == found["profiles_total", ()]
        except BaseException as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(2000):
        metrics.handled(events.item(i), events.done(i))
    over.set()
    reader.join()
    assert failures == []
    assert samples(metrics)["inputs_total", ("done",)] == 2000


def test_docs_have_every_metric() -> None:
    """The table of metrics has each with its kind and labels, and no other."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "batch-monitoring.md").read_text()
    rows = re.findall(r"^\| `(symbolize_\w+)` \| (\w+) \| (.*?) \|", page, re.MULTILINE)
    listed = [(name, kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows]
    assert listed == [(PREFIX + name, kind, labels) for name, kind, _, labels in METRICS]


def test_a_pass_that_is_entered_again() -> None:
    """While watching: it has nothing done then, and the others keep what they did."""
    metrics = Metrics("1.2")
    a_run(metrics)
    metrics.entered("scan", 5)
    found = samples(metrics)
    assert (found["pass_tasks", ("scan",)], found["pass_tasks_finished", ("scan",)]) == (5, 0)
    assert [found["pass_tasks_finished", (each,)] for each in ("decode", "rewrite")] == [2, 1]
    assert [found["pass", (each,)] for each in ("scan", "decode", "rewrite")] == [1, 0, 0]
