"""The engine's one call, with a tiny model for what it does and the default model for what it writes."""

import ast
import itertools
import time
from dataclasses import replace
from importlib import resources

import pytest
from tiny import SPEC, scripted_model, tiny_model

from remask.contract.errors import InputError, StorageError
from remask.contract.messages import CompletionRequest, Extent, NameFacts, PromptCounts, Purpose, Reason, Snippet
from remask.engine.api import Engine
from remask.engine.attempts import Attempt, distinct
from remask.engine.decode.trace import Trace
from remask.engine.judge.names import NamesJudge
from remask.engine.prompt import build_prompt
from remask.engine.store import DiskStore
from remask.grammars import GrammarError, load_grammar

PREFIX = "def f(x):\n    "


def scripted_engine(text, prefix=PREFIX, suffix="", **faults):
    """An engine whose model writes `text` into the hole."""
    length = len(build_prompt(tiny_model(), prefix, suffix))
    return Engine(scripted_model(text, length, **faults))


def request(prefix=PREFIX, suffix="", **values):
    known = {"document": "a.py", "language": "python", "prefix": prefix, "suffix": suffix, "deadline_ms": 600_000}
    return CompletionRequest(**known | values)


@pytest.mark.parametrize(
    ("written", "prefix", "suffix", "text", "reason"),
    [
        ("return x", PREFIX, "", "return x", Reason.END),
        ("return x\n\n\ndef g():\n", PREFIX, "", "return x", Reason.BLOCK),
        ("a, b)", "print(", ")\n", "a, b", Reason.END),
        ("str(x)", "print(", ")\n", "str(x)", Reason.END),
        ("return (x", PREFIX, "\n", "", Reason.SYNTAX),
        ("y = x\n    return (y", PREFIX, "\n", "y = x", Reason.CUT),
        ("y = 1\nz = 2\nuse(y)\n", "", "\nuse(y)\n", "y = 1", Reason.LINE),
        ("", PREFIX, "\n", "", Reason.EMPTY),
        (")", "print(x", ")\n", "", Reason.DUPLICATE),
    ],
)
def test_from_draft_to_result(written, prefix, suffix, text, reason):
    result = scripted_engine(written, prefix, suffix).complete(request(prefix, suffix))
    assert (result.text, result.reason) == (text, reason)


def test_unknown_language_is_a_reason_and_runs_nothing():
    result = Engine(tiny_model()).complete(request(language="klingon"))
    assert (result.text, result.reason, result.forwards) == ("", Reason.LANGUAGE, 0)


def damaged(_language):
    raise GrammarError("The grammar python.toml is not TOML.")


def without_parser(_language):
    text = resources.files("remask.grammars").joinpath("python.toml").read_text("utf-8")
    return load_grammar(text.replace("tree_sitter_python", "tree_sitter_nowhere"), "python.toml")


@pytest.mark.parametrize("policy", ["default", "parallel:remask=all"])
@pytest.mark.parametrize("broken", [damaged, without_parser])
def test_a_grammar_that_fails_costs_the_judging_and_one_warning(broken, policy, monkeypatch, caplog):
    monkeypatch.setattr("remask.engine.judges.grammar_for_language", broken)
    engine = scripted_engine("return (x\n", PREFIX)
    texts = [engine.complete(request(document=name, policy=policy)).text for name in ("a.py", "a.py", "b.py")]
    assert texts == ["return (x"] * 3
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "python" in caplog.text


@pytest.mark.parametrize("language", ["python", "javascript", "c"])
@pytest.mark.parametrize("policy", ["default", "parallel", "parallel:remask=all"])
@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("(" * 50_000, "\n"),
        ("x = 1\n" + "[{(" * 16_667, "\n"),
        ("x = ", "(" * 50_000),
        ("x = " + "(" * 50_000, ")" * 50_000),
    ],
    ids=["open", "mixed", "behind", "closed"],
)
def test_fifty_thousand_brackets_stay_within_their_deadline(prefix, suffix, policy, language):
    engine, begun = Engine(tiny_model()), time.process_time()
    asked = request(prefix, suffix, policy=policy, language=language, deadline_ms=300, max_tokens=16)
    result = engine.complete(asked)
    assert time.process_time() - begun < 2  # the process's own time: a busy machine is not a defect
    assert result.reason in (Reason.DEADLINE, Reason.SYNTAX, Reason.EMPTY)
    assert result.text == ""


def test_unknown_policy_is_refused():
    with pytest.raises(InputError):
        Engine(tiny_model()).complete(request(policy="magic"))


@pytest.mark.parametrize("polls", range(6))
def test_cancelled_at_any_poll_gives_no_text_and_the_next_request_works(polls):
    engine = scripted_engine("return x", PREFIX)
    counter = itertools.count()
    result = engine.complete(request(), lambda: next(counter) >= polls)
    assert result.text in ("", "return x")
    if result.text == "":
        assert result.reason is Reason.CANCELLED
    assert engine.complete(request()).text == "return x"


def test_keystroke_after_keystroke_runs_only_new_tokens():
    engine = Engine(tiny_model())
    counts = [engine.complete(request(PREFIX + "return"[:n], "\n")).prompt for n in range(7)]
    assert counts[0].cached == 0
    assert all(c.run <= 1 for c in counts[1:])
    assert all(c.cached + c.run + 1 == c.total for c in counts)


def test_two_documents_do_not_see_each_other():
    engine, alone = Engine(tiny_model()), Engine(tiny_model())
    engine.complete(request("x = 1\n", document="a.py"))
    mixed = engine.complete(request("y = 2\n", document="b.py"))
    assert mixed.prompt.cached == 0
    assert mixed.text == alone.complete(request("y = 2\n", document="b.py")).text


def test_reopened_file_starts_warm(tmp_path):
    for expected in (0, len(build_prompt(tiny_model(), PREFIX, "")) - 1):
        engine = Engine(tiny_model(), DiskStore("w", tmp_path))
        assert engine.complete(request()).prompt.cached == expected
        engine.close()


def test_a_disk_that_refuses_costs_the_cache_not_the_completion(tmp_path, monkeypatch):
    engine = Engine(tiny_model(), DiskStore("w", tmp_path))
    monkeypatch.setattr(DiskStore, "save", lambda *_: (_ for _ in ()).throw(StorageError("The disk is full.")))
    engine.complete(request())
    engine.close()
    assert "full" in str(engine.storage_warning)


def test_the_draft_is_told_as_far_as_it_is_final():
    seen = []
    result = scripted_engine("return x + y + z").complete(request(), on_draft=seen.append)
    assert len(seen) > 1
    assert all(result.text.startswith(text) for text in seen)
    assert seen == sorted(seen, key=len)


def test_a_forgotten_document_starts_cold():
    engine = Engine(tiny_model())
    engine.complete(request())
    engine.forget("a.py")
    assert engine.complete(request()).prompt.cached == 0


def test_candidates_are_distinct_ranked_and_each_past_the_gate():
    result = Engine(tiny_model(4)).complete(request("x = 1\ny = ", "\n", candidates=4, max_tokens=6))
    texts = [result.text, *(o.text for o in result.others)]
    assert len(set(texts)) == len(texts) <= 4
    scores = [result.score, *(o.score for o in result.others)]
    assert scores == sorted(scores, reverse=True)
    for text in filter(None, texts):
        ast.parse(f"x = 1\ny = {text}\n")


class Leaping:
    """A clock that leaps past every deadline at a certain look."""

    def __init__(self, leap):
        self.looks, self.leap = 0, leap

    def monotonic(self):
        self.looks += 1
        return time.monotonic() + (1e6 if self.looks >= self.leap else 0.0)


def test_a_first_text_that_is_whole_is_never_lost_to_the_search_for_others(monkeypatch):
    monkeypatch.setattr("remask.engine.judges.grammar_for_language", damaged)  # nothing that it writes would hold
    engine = Engine(tiny_model(3))
    wanted = {"prefix": PREFIX, "suffix": "\n", "max_tokens": 6}
    alone = engine.complete(request(**wanted))
    assert alone.text
    texts, leap, clock = [], 1, Leaping(0)
    while clock.looks >= clock.leap:
        clock = Leaping(leap)
        monkeypatch.setattr("remask.engine.decode.request.time", clock)
        result = engine.complete(request(**wanted, candidates=4))
        texts.append([result.text, *(other.text for other in result.others)])
        leap += 1
    whole = [alone.text in one for one in texts]
    assert not whole[0]
    assert whole == sorted(whole)
    assert len(set(map(len, texts))) > 1, "the search itself was cut off, too"


def test_one_candidate_is_greedy_and_the_same_every_time():
    engine = Engine(tiny_model(4))
    assert engine.complete(request("x = ", "\n")).text == engine.complete(request("x = ", "\n")).text


@pytest.fixture
def engine(default_model):
    return Engine(default_model)


@pytest.mark.model
class TestDefaultModel:
    def test_completes_a_body_that_parses(self, engine):
        prefix = "class P:\n    def __init__(self, x):\n        self.x = x\n\n    def left(self):\n        "
        suffix = "\n\n    def right(self):\n        return -self.x\n"
        result = engine.complete(request(prefix, suffix, extent=Extent.BLOCK))
        assert result.text.strip()
        ast.parse(prefix + result.text + suffix)

    @pytest.mark.parametrize(
        "prefix", ["def add(a, b):\n    return ", "import os\n\nfor name in os.", "x = [1, 2, 3]\ny = "]
    )
    def test_measured_policy_equals_one_token_a_pass(self, engine, prefix):
        results = [engine.complete(request(prefix, "\n", policy=p, max_tokens=16)) for p in ("auto", "autoregressive")]
        assert results[0].text == results[1].text
        assert results[0].tokens == results[1].tokens

    def test_several_candidates_for_a_body(self, engine):
        head = "class Box:\n    def __init__(self, width):\n        self.width = width\n\n"
        prefix = f"{head}    def area(self):\n        "
        result = engine.complete(request(prefix, "\n", candidates=3, extent=Extent.BLOCK, max_tokens=24))
        texts = [result.text, *(o.text for o in result.others)]
        assert len(texts) > 1
        assert all("\n" not in text.strip() or ast.parse(prefix + text) for text in texts)

    def test_warm_equals_cold(self, engine, default_model):
        warm = [
            engine.complete(request("total = 0\nfor i in range(10):\n    to"[:n], "\nprint(total)\n"))
            for n in (30, 36, 38)
        ]
        cold = Engine(default_model).complete(
            request("total = 0\nfor i in range(10):\n    to"[:38], "\nprint(total)\n")
        )
        assert warm[-1].prompt.cached > 0
        assert cold.prompt.cached == 0
        assert warm[-1].text == cold.text

    def test_special_token_names_in_source_stay_text(self, default_model):
        marked = default_model.encode("x = '<|mask|><|endoftext|>'")
        assert default_model.spec.mask_id not in marked
        assert default_model.spec.end_ids[0] not in marked
        assert default_model.decode(marked) == "x = '<|mask|><|endoftext|>'"


def test_names_that_nothing_defines_are_reported_of_the_draft_and_of_what_is_shown():
    result = scripted_engine("y = zorp\n    return (y", PREFIX, "\n").complete(request(suffix="\n"))
    assert (result.text, result.reason) == ("y = zorp", Reason.CUT)
    assert (result.names.before, result.names.after) == (1.0, 1.0)  # where the parser is lost, nothing is judged
    assert result.names.unknown == ("zorp",)


def test_names_are_not_judged_for_a_keystroke_where_that_changes_nothing(monkeypatch):
    def judged(trace=None, **fields):
        asked = []
        monkeypatch.setattr(NamesJudge, "compare", lambda *_: asked.append(1) or NameFacts())
        scripted_engine("return zorp", PREFIX, "\n").complete(request(suffix="\n", **fields), trace=trace)
        return bool(asked)

    assert not judged(name_facts=False)
    assert judged(), "the command line shows them"
    assert judged(name_facts=False, candidates=2), "they rank"
    assert judged(name_facts=False, purpose=Purpose.FILL)
    assert judged(name_facts=False, trace=Trace())
    assert judged(name_facts=False, policy="parallel:remask=all")


def test_names_from_other_files_are_known():
    context = (Snippet("b.py", "def zorp(): ...\n"),)
    engine = Engine(scripted_model("return zorp()", len(build_prompt(tiny_model(), PREFIX, "", "python", context))))
    assert engine.complete(request(context=context)).names == NameFacts(1)


def attempt(text, score, unknown=0.0):
    return Attempt(
        text=text,
        reason=Reason.END,
        detail="",
        score=score,
        names=NameFacts(4, unknown, unknown),
        tokens=1,
        forwards=1,
        prompt=PromptCounts(),
        prompted=0.0,
        decode_ms=0.0,
    )


def test_unknown_names_lower_the_rank_and_veto_nothing():
    ranked = distinct([attempt("a", -0.2, unknown=1.0), attempt("b", -0.5), attempt("c", -0.9), attempt("", 0.0)])
    assert [one.text for one in ranked] == ["b", "a", "c"]


def test_a_trace_tells_every_pass():
    trace = Trace()
    result = scripted_engine("return x", PREFIX).complete(request(), trace=trace)
    record = trace.record(request(), result)
    assert (record.text, record.forwards) == ("return x", result.forwards)
    passes = [e for e in record.events if e.kind in ("denoise", "verify")]
    prompt = next(e for e in record.events if e.kind == "prompt")
    assert len(passes) + prompt.passes == result.forwards
    written = [[*e.texts[: e.accepted], e.own_text] for e in passes if e.kind == "verify"]
    assert "".join(t for texts in written for t in texts) == "return x"
    assert [e.judge for e in record.events if e.kind == "verdict"] == ["parser", "names"]


def test_a_trace_names_the_policy_that_default_stands_for():
    trace, asked = Trace(), request(policy="default", max_tokens=2)
    engine = Engine(tiny_model(spec=replace(SPEC, policy="lookup")))
    assert trace.record(asked, engine.complete(asked, trace=trace)).policy == "lookup"


def test_an_unknown_name_is_masked_again_once_and_never_vetoed():
    trace = Trace()
    result = scripted_engine("return zorp", PREFIX, "\n").complete(
        request(suffix="\n", policy="parallel:remask=all"), trace=trace
    )
    blamed = [e for e in trace.events if e.kind == "remask"]
    assert [(e.judge, e.reason, "".join(e.texts)) for e in blamed] == [
        ("names", "nothing defines zorp", "orp")
    ]  # a canvas begins there
    assert (result.text, result.names.unknown) == ("return zorp", ("zorp",))


def test_names_are_not_masked_again_where_the_policy_does_not_want_it():
    for policy in ("parallel:remask=off", "parallel:remask=parser", "default"):
        trace = Trace()
        scripted_engine("return zorp", PREFIX, "\n").complete(request(suffix="\n", policy=policy), trace=trace)
        assert not [e for e in trace.events if e.kind == "remask"]
