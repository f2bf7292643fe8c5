"""A trace says what every pass did, survives the file, and costs nothing where it is off."""

import copy
import json

import pytest
import torch

from remask.contract.errors import InputError
from remask.contract.messages import PromptCounts
from remask.engine.decode.canvas import Canvas
from remask.engine.decode.trace import VERSION, Record, Trace, from_json, to_json


def decode(tokens):
    return bytes(tokens).decode("utf-8", "replace")


def filled_trace():
    trace = Trace()
    trace.begin(0, decode)
    trace.prompted(PromptCounts(9, 3, 5, 1))
    canvas = Canvas(3, mask_id=259)
    predicted, sure = torch.tensor([97, 98, 99]), torch.tensor([0.9, 0.2, 0.95])
    committed = torch.tensor([True, False, True])
    canvas.commit(predicted, sure, committed)
    trace.denoised(4, canvas, predicted, sure, committed)
    trace.remasked(4, canvas, [2], "names", "nothing defines 'c'")
    trace.verified(4, "canvas", [97, 98], [97, 100], [0.9, 0.5])
    trace.judged("parser", "ab", "a", "cut", "The draft has a flaw.")
    return trace


def record(trace):
    return Record(
        document="a.py",
        language="python",
        model="tiny",
        policy="parallel",
        prefix="x = ",
        suffix="",
        text="a",
        reason="cut",
        tokens=2,
        forwards=3,
        ms=1.5,
        events=trace.events,
    )


def test_what_is_recorded():
    prompt, denoised, remasked, verified, judged = filled_trace().events
    assert (prompt.total, prompt.cached, prompt.run, prompt.passes) == (9, 3, 5, 1)
    assert (denoised.ids, denoised.texts, denoised.open) == ([97, 98, 99], ["a", "b", "c"], [False, True, False])
    assert (denoised.committed, denoised.confidence) == ([0, 2], [0.9, 0.2, 0.95])
    assert (remasked.positions, remasked.texts, remasked.reason) == ([2], ["c"], "nothing defines 'c'")
    assert (verified.accepted, verified.texts, verified.own_text) == (1, ["a", "b"], "d")
    assert (judged.draft, judged.kept, judged.reason) == ("ab", "a", "cut")
    assert all(event.ms >= 0 for event in filled_trace().events)


def test_round_trip():
    records = [record(filled_trace()), record(Trace())]
    assert from_json(json.loads(json.dumps(to_json(records)))) == records


def test_entries_of_a_later_minor_change_are_dropped():
    values = to_json([record(filled_trace())])
    values["requests"][0]["new"] = 1
    values["requests"][0]["events"][0]["new"] = 1
    assert [event.kind for event in from_json(values)[0].events] == ["prompt", "denoise", "remask", "verify", "verdict"]


@pytest.mark.parametrize(
    "values", [None, [], {}, {"format": "other"}, {"format": "remask-trace"}, {"format": "remask-trace", "version": 99}]
)
def test_foreign_files_and_later_versions_are_refused(values):
    with pytest.raises(InputError):
        from_json(values)


def damaged():
    whole = json.loads(json.dumps(to_json([record(filled_trace())])))

    def with_(change):
        values = copy.deepcopy(whole)
        change(values["requests"][0])
        return values

    yield {"format": "remask-trace", "version": VERSION}
    yield {"format": "remask-trace", "version": VERSION, "requests": 3}
    yield {"format": "remask-trace", "version": VERSION, "requests": [[]]}
    yield with_(lambda r: r.pop("text"))
    yield with_(lambda r: r.update(tokens="3"))
    yield with_(lambda r: r.update(events={}))
    yield with_(lambda r: r["events"].append(7))
    yield with_(lambda r: r["events"][0].update(kind="other"))
    yield with_(lambda r: r["events"][0].pop("ms"))
    yield with_(lambda r: r["events"][1]["ids"].append(1))
    yield with_(lambda r: r["events"][1].update(committed=[3]))
    yield with_(lambda r: r["events"][1].update(open=[1, 0, 1]))
    yield with_(lambda r: r["events"][2]["texts"].append("x"))
    yield with_(lambda r: r["events"][3].update(accepted=3))
    yield with_(lambda r: r["events"][3].update(confidence=[]))


@pytest.mark.parametrize("values", list(damaged()))
def test_damaged_files_are_refused_in_one_sentence(values):
    with pytest.raises(InputError) as caught:
        from_json(values)
    assert "\n" not in str(caught.value)
