"""Documents into rows, without a database."""

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_data import DOCUMENTS, digest, listen_document

from engines.contracts.base import FactKind, StageDocument
from engines.contracts.speech import ListenDocument
from engines.errors import EngineError
from tasks.store import fact_tables as ft
from tasks.store.ids import fact_id_of, video_id_of
from tasks.store.rows import FACT_TABLES, FactIds, Source, fact_counts, project
from tasks.store.tables import metadata

VIDEO = video_id_of("videos", "a.mp4")


def source(stage: str, document: StageDocument) -> Source:
    return Source(stage, digest(stage), uuid4(), document)


SOURCES = [source(stage, document) for stage, document in DOCUMENTS.items()]
IDS = FactIds.of(VIDEO, SOURCES)


def test_every_kind_of_fact_has_a_source() -> None:
    """A kind that no document makes could be cited and never resolved."""
    assert set(IDS.counts) == set(FactKind.__args__)


def test_every_table_of_facts_is_replaced_by_publishing() -> None:
    facts = {table for table in metadata.tables.values() if "fact_id" in table.c}
    assert set(FACT_TABLES) == facts


@pytest.mark.parametrize("made", SOURCES, ids=lambda made: made.stage)
def test_rows_fill_every_column_that_has_no_default(made: Source) -> None:
    for table, rows in project(IDS, made, {}).rows.items():
        needed = {
            column.name
            for column in table.c
            if not column.nullable and column.server_default is None and column.computed is None
        }
        for row in rows:
            assert needed <= set(row)
            assert set(row) <= set(table.c.keys())
            assert all(row[name] is not None for name in needed)


def test_words_are_numbered_through_all_utterances() -> None:
    one = listen_document("a b").utterances[0]
    document = listen_document().model_copy(update={"utterances": (one, one, one)})
    made = source("listen", document)
    rows = project(FactIds.of(VIDEO, [made]), made, {}).rows[ft.words]
    assert [row["ordinal"] for row in rows] == [0, 1, 2, 3, 4, 5]
    spoken = project(FactIds.of(VIDEO, [made]), made, {}).rows[ft.utterances]
    assert [row["utterance_id"] for row in rows] == [spoken[i // 2]["fact_id"] for i in range(6)]


def test_sounds_and_labels_are_numbered_apart() -> None:
    sound, label = IDS.resolve("sound:0"), IDS.resolve("label:0")
    assert sound == fact_id_of(VIDEO, digest("listen"), "sound", 0)
    assert label == fact_id_of(VIDEO, digest("embed"), "label", 0)


@given(kind=st.sampled_from(sorted(IDS.counts)), number=st.integers(0, 30))
def test_a_reference_resolves_exactly_when_the_fact_is_there(kind: str, number: int) -> None:
    ref = f"{kind}:{number}"
    if number < IDS.counts[kind]:
        assert isinstance(IDS.resolve(ref), UUID)
    else:
        with pytest.raises(EngineError, match=ref):
            IDS.resolve(ref)


def test_ids_of_all_rows_are_their_own() -> None:
    ids = [
        row["fact_id"]
        for made in SOURCES
        for rows in project(IDS, made, {}).rows.values()
        for row in rows
    ]
    assert len(set(ids)) == len(ids)


def test_a_kind_made_twice_is_refused() -> None:
    with pytest.raises(EngineError, match="two documents make facts of kind 'utterance'"):
        FactIds.of(VIDEO, [*SOURCES, source("listen_again", DOCUMENTS["listen"])])


def test_counts_follow_the_document() -> None:
    document = DOCUMENTS["listen"]
    assert isinstance(document, ListenDocument)
    assert fact_counts(document) == {"utterance": 1, "word": 9, "sound": 1}
