"""One function over many items, a process for each core."""

import os

import pytest

from flows import cores
from flows.cores import on_every_core


def test_results_come_in_the_order_of_the_items():
    assert list(on_every_core(abs, [-3, 1, -2])) == [3, 1, 2]
    assert list(on_every_core(abs, [])) == []


def test_other_processes_do_the_work_where_there_are_cores(monkeypatch):
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: {0, 1})
    assert os.getpid() not in on_every_core(_who, [1, 2])


def test_one_core_needs_no_other_process(monkeypatch):
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: {0})
    assert list(on_every_core(_who, [1, 2])) == [os.getpid()] * 2


def test_an_error_comes_to_whoever_asks():
    with pytest.raises(TypeError):
        list(on_every_core(abs, [1, "word"]))


def _who(_):
    return os.getpid()
