"""The comparison with other memories: its drivers' protocol and its figures, without any peer."""

from __future__ import annotations

import base64
import json
import sys

import numpy as np
import pytest

from lab.evals.peers.__main__ import Tally, counts, places_of
from lab.evals.peers.drivers.lines import notes
from lab.evals.peers.embeddings import response
from lab.evals.peers.install import PEERS, Peer
from lab.evals.peers.process import Driver, PeerFailed, parse_stat, session_stats
from lab.evals.run import write_notes
from lab.evals.sets import EvalSet, Item, Query

ECHO = """
import sys
from lab.evals.peers.drivers.lines import serve
def search(query, limit):
    print("noise of the peer", flush=True)
    if query == "die":
        sys.exit("the last words")
    return [query] * limit
serve(lambda: None, search)
"""


@pytest.fixture
def driver(tmp_path):
    running = Driver([sys.executable, "-c", ECHO], {}, tmp_path / "log")
    yield running
    running.close()


def test_a_driver_answers_on_a_clean_line_whatever_the_peer_prints(driver):
    assert driver.ask({"op": "start"}) == {}
    assert driver.ask({"op": "index"}) == {}
    assert driver.ask({"op": "search", "query": "猫", "limit": 2}) == {"paths": ["猫", "猫"]}


def test_a_failing_peer_is_reported_with_its_last_words(driver):
    with pytest.raises(PeerFailed, match="TypeError"):
        driver.ask({"op": "search", "query": "q", "limit": "many"})
    with pytest.raises(PeerFailed, match="the last words"):
        driver.ask({"op": "search", "query": "die", "limit": 1})


def test_the_cost_of_a_driver_includes_its_children(driver):
    driver.ask({"op": "start"})
    cpu_s, rss_mb = driver.cost()
    assert cpu_s >= 0
    assert rss_mb > 1
    assert list(session_stats(10**9)) == []


def test_a_stat_line_is_read_behind_a_name_with_spaces():
    stat = parse_stat("7 (tmux: server) S 1 7 42 0 -1 0 0 0 0 0 100 50 20 30 20 0 1 0 9 4096 256 0")
    assert (stat.session, stat.cpu_s, stat.rss_mb) == (42, pytest.approx(2.0), pytest.approx(1.0))


def test_peers_without_files_get_texts_with_their_day(tmp_path):
    items = [Item("a", "g", "The cat sleeps.", "2025-03-01"), Item("b", "g", "No day.", None)]
    by_path = write_notes(tmp_path, items)
    assert {by_path[path]: text for path, text in notes(tmp_path).items()} == {
        "a": "2025-03-01: The cat sleeps.",
        "b": "No day.",
    }


def test_embeddings_are_served_as_numbers_or_as_base64():
    row = np.array([[0.5, -1.0]], np.float32)
    numbers = response(["a b"], row, "float")
    assert numbers["data"] == [{"object": "embedding", "index": 0, "embedding": [0.5, -1.0]}]
    assert numbers["usage"] == {"prompt_tokens": 2, "total_tokens": 2}
    packed = response(["a b"], row, "base64")["data"][0]["embedding"]
    assert np.frombuffer(base64.b64decode(packed), np.float32).tolist() == [0.5, -1.0]


def test_a_tally_becomes_plain_figures():
    tally = Tally(index_s=2.0, search_s=0.1, rss_mb=50, items=3)
    tally.add(Query("1", "g", "?", "c", ("a",), language="en"), ["a"])
    tally.add(Query("2", "g", "?", "c", ("a",), language="zh"), [])
    found = tally.figures()
    assert json.loads(json.dumps(found)) == found
    assert (found["queries"], found["nDCG@10"]["mean"], found["search_ms"]) == (2, 0.5, pytest.approx(50))
    assert found["languages"] == {"en": 1.0, "zh": 0.0}


def test_only_groups_with_items_and_answerable_questions_are_asked():
    items = (Item("a", "g", "text"), Item("b", "h", "text"))
    queries = (
        Query("1", "g", "?", "c", ("a",)),
        Query("2", "g", "?", "c", ()),
        Query("3", "h", "?", "c", ("b",)),
        Query("4", "empty", "?", "c", ("x",)),
    )
    places = places_of([EvalSet("toy", items, queries)], counts("toy:2"), questions=5)
    assert [(group, [query.id for query in asked]) for _, group, _, asked in places] == [
        ("g", ["1"]),
        ("h", ["3"]),
    ]
    assert counts("locomo:2,beam") == {"locomo": 2, "beam": 1}


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_every_peer_has_a_driver_and_a_pinned_version(peer: Peer):
    drivers = {path.name for path in (peer_root() / "drivers").iterdir()}
    assert {peer.driver, f"{peer.driver}.py"} & drivers
    assert not peer.packages or peer.version in peer.packages[0]
    assert peer.is_installed or peer.packages


def peer_root():
    from lab.evals.peers.install import ROOT

    return ROOT / "lab" / "evals" / "peers"
