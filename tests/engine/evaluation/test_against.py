"""`remask bench against`: a server that streams tokens, one that is none, and figures that fit together."""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from tiny import tiny_model

from remask.cli.main import run_command
from remask.contract.errors import EngineError, InputError
from remask.engine.evaluation.against import Server, bench_against, processor_clock, prompts_of


class _Answers(BaseHTTPRequestHandler):
    asked: ClassVar[list] = []
    streamed = (
        b'data: {"tokens":[5],"content":"a"}',
        b"",
        b'data: {"tokens":[6, 7],"content":"b"}',
        b'data: {"stop":true}',
    )

    def do_POST(self):
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()
        for line in self.streamed:
            self.wfile.write(line + b"\n")

    def log_message(self, *_):
        pass


@pytest.fixture
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    _Answers.asked.clear()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_both_sides_get_the_same_tokens_from_a_cold_cache(address):
    model = tiny_model()
    report = bench_against(model, Server(address), ["default"], lengths=(40,), prompts=3, max_tokens=8)
    assert [len(asked["prompt"]) for asked in _Answers.asked] == [40] * 8
    assert [asked["n_predict"] for asked in _Answers.asked] == [1, 8] * 4
    assert all(not asked["cache_prompt"] and asked["temperature"] == 0 for asked in _Answers.asked)
    assert [row.side for row in report.rows] == ["autoregressive", "default", "server"]
    own, default, server = report.rows
    assert server.tokens == 3 * 3
    assert own.tokens == default.tokens <= 3 * 8
    assert own.agreed == default.agreed == server.ratio == 1.0
    assert own.ratio == pytest.approx(own.tok_s / server.tok_s, rel=0.1, abs=0.01)
    assert all(row.first_ms > 0 for row in report.rows)


def test_prompts_have_the_length_that_is_asked_for_and_differ_from_the_start():
    made = prompts_of(tiny_model(), 50, 4)
    assert {len(prompt) for prompt in made} == {50}
    assert len({tuple(prompt[:40]) for prompt in made}) == 4
    with pytest.raises(InputError, match="too long"):
        prompts_of(tiny_model(), 10**6, 1)


def test_what_does_not_answer_is_said(address, monkeypatch):
    with pytest.raises(InputError, match="no address"):
        Server("localhost:8080")
    monkeypatch.setattr(_Answers, "streamed", (b"data: nonsense",))
    with pytest.raises(EngineError, match="does not answer as"):
        Server(address).write([1], 4)
    monkeypatch.setattr(_Answers, "streamed", (b'data: {"error":{"message":"loading"}}',))
    with pytest.raises(EngineError, match="loading"):
        Server(address).write([1], 4)
    monkeypatch.setattr(_Answers, "streamed", ())
    with pytest.raises(EngineError, match="wrote nothing"):
        Server(address).write([1], 4)
    with pytest.raises(EngineError, match="llama-server"):
        Server("http://127.0.0.1:9").write([1], 4)


def test_a_process_that_is_not_there_has_no_clock():
    with pytest.raises(InputError, match="cannot be read"):
        processor_clock(2**31 - 1)
    if sys.platform == "linux":
        clock = processor_clock(os.getpid())
        before = clock()
        sum(range(10**6))
        assert clock() > before


def test_the_command_refuses_before_it_loads_a_model(capsys):
    assert run_command(["bench", "against", "nowhere"]) == 2
    assert "no address" in capsys.readouterr().err
