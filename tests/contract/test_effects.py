"""The ledger of effects: what a run's attempts began and recorded, under the number of the attempt (I6)."""

import pytest

from rota.domain.effect import Effect, EffectBegin, EffectState
from rota.domain.identity import RunId
from rota.domain.json_text import JsonText, encode_json
from rota.store.port import AttemptKey, Store
from tests.contract.builders import NINE, SECOND, failure, success
from tests.contract.steps import open_attempt, queue_run, run_of, settle

ID = RunId("report-7.1.20260110T090000Z")
FIRST, SECOND_TRY = (AttemptKey(run_id=ID, attempt=number) for number in (1, 2))
NEW, IN_DOUBT, STALE = (
    EffectBegin(state=state) for state in (EffectState.NEW, EffectState.IN_DOUBT, EffectState.STALE)
)
RESULT = encode_json({"id": 7})


def effects_of(store: Store) -> tuple[Effect, ...]:
    detail = store.get_run(ID)
    assert detail is not None
    return detail.effects


def test_an_effect_is_begun_and_recorded_and_shown_with_its_run(store: Store) -> None:
    open_attempt(store, queue_run(store))
    assert store.commit_effect_begin(FIRST, "mail", now=NINE) == NEW
    begun = Effect(run_id=ID, name="mail", begun_by=1, begun_at=NINE)
    assert effects_of(store) == (begun,)
    assert store.commit_effect(FIRST, "mail", result=RESULT, now=NINE + SECOND)
    assert store.commit_effect_begin(FIRST, "charge", now=NINE) == NEW
    charge = Effect(run_id=ID, name="charge", begun_by=1, begun_at=NINE)
    recorded = Effect(
        run_id=ID, name="mail", begun_by=1, begun_at=NINE, recorded_at=NINE + SECOND, result=RESULT
    )
    assert effects_of(store) == (charge, recorded)


@pytest.mark.parametrize("result", [None, RESULT])
def test_a_recorded_effect_is_told_to_later_attempts_with_its_result(
    store: Store, result: str | None
) -> None:
    open_attempt(store, queue_run(store))
    told = None if result is None else RESULT
    store.commit_effect_begin(FIRST, "mail", now=NINE)
    assert store.commit_effect(FIRST, "mail", result=told, now=NINE)
    settle(store, failure(ID, at=NINE, retry_at=NINE))
    open_attempt(store, run_of(store, ID))
    expected = EffectBegin(state=EffectState.RECORDED, result=told)
    assert store.commit_effect_begin(SECOND_TRY, "mail", now=NINE) == expected
    assert store.commit_effect(SECOND_TRY, "mail", result=JsonText("8"), now=NINE)
    assert store.commit_effect_begin(SECOND_TRY, "mail", now=NINE) == expected


def test_an_effect_that_was_begun_and_not_recorded_is_in_doubt_and_says_when_it_was_begun_first(
    store: Store,
) -> None:
    open_attempt(store, queue_run(store))
    store.commit_effect_begin(FIRST, "mail", now=NINE)
    assert store.commit_effect_begin(FIRST, "mail", now=NINE) == IN_DOUBT
    settle(store, failure(ID, at=NINE, retry_at=NINE))
    open_attempt(store, run_of(store, ID))
    assert store.commit_effect_begin(SECOND_TRY, "mail", now=NINE + SECOND) == IN_DOUBT
    assert effects_of(store) == (Effect(run_id=ID, name="mail", begun_by=1, begun_at=NINE),)
    assert store.commit_effect(SECOND_TRY, "mail", result=None, now=NINE + SECOND)


def test_an_attempt_that_is_not_current_begins_and_records_nothing(store: Store) -> None:
    assert store.commit_effect_begin(FIRST, "mail", now=NINE) == STALE
    open_attempt(store, queue_run(store))
    assert store.commit_effect_begin(SECOND_TRY, "mail", now=NINE) == STALE
    assert not store.commit_effect(FIRST, "mail", result=None, now=NINE)
    store.commit_effect_begin(FIRST, "mail", now=NINE)
    settle(store, success(ID, at=NINE))
    assert store.commit_effect_begin(FIRST, "mail", now=NINE) == STALE
    assert not store.commit_effect(FIRST, "mail", result=None, now=NINE)
    assert len(effects_of(store)) == 1


def test_what_is_recorded_twice_stays_as_it_was_first(store: Store) -> None:
    open_attempt(store, queue_run(store))
    store.commit_effect_begin(FIRST, "mail", now=NINE)
    assert store.commit_effect(FIRST, "mail", result=RESULT, now=NINE)
    assert store.commit_effect(FIRST, "mail", result=None, now=NINE + SECOND)
    assert [(each.recorded_at, each.result) for each in effects_of(store)] == [(NINE, RESULT)]


def test_a_run_that_is_full_of_effects_begins_no_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("rota.store.memory.effects", "rota.store.sql.effects"):
        monkeypatch.setattr(f"{module}.EFFECTS_MAX", 2)
    open_attempt(store, queue_run(store))
    begun = [store.commit_effect_begin(FIRST, name, now=NINE) for name in ("a", "b", "c", "a")]
    assert begun == [NEW, NEW, EffectBegin(state=EffectState.FULL), IN_DOUBT]
