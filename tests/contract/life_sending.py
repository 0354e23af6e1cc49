"""The part of a random life that is about messages and effects: relays take and end deliveries, attempts do things."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from rota.domain.delivery import DeliveryEnd, failed, sent
from rota.domain.identity import RunId
from rota.domain.job import Job
from rota.domain.json_text import encode_json
from rota.domain.run import AttemptOutcome, RunEvent
from rota.domain.settlement import AttemptEnd
from rota.domain.sink import CelerySink, DeliveryPolicy, Sink, WorkerSink
from rota.store.port import Answer, AttemptKey, DeliveryFilter, Intent, TakenDelivery
from tests.contract.builders import MINUTE, SECOND, audit_event, change_of, run_at, settlement
from tests.contract.life import Life
from tests.contract.life_known import JOBS

POLICY = DeliveryPolicy(
    initial_delay=SECOND, max_delay=MINUTE, max_age=5 * MINUTE, redeliver_after=2 * MINUTE
)
EFFECTS = ["mail", "charge"]
SINKS: list[Sink] = [WorkerSink(), CelerySink(task="tasks.report"), CelerySink(task="tasks.mail")]


class LifeOfMessages(Life):
    """Of jobs that are sent, and change; what schedules do is only there to make runs."""

    def _actions(self) -> Sequence[Callable[[], None]]:
        often = [self.ask_for_runs, self.take, self.claim, self.end_tries, self.come_back, self.settle]
        often += [self.answer]
        sometimes = [self.cancel, self.redrive, self.do_something, self.heartbeat, self.recover, self.prune]
        schedules = [self.admit, self.admit, self.hold, self.fall_due, self.plan, self.change_job]
        return [*often, *often, *sometimes, *schedules]

    def ask_for_runs(self) -> None:
        schedule = self.known_schedule()
        made = [
            run_at(schedule, self.soon() + number * MINUTE) for number in range(self.random.randrange(1, 4))
        ]
        runs = tuple(
            replace(run, origin="manual", turn=self.random.choice([0, 0, 1, 2]), available_at=self.now)
            for run in made
        )
        self.both.commit_change(replace(change_of(schedule, at=self.now), expected_cursor=None, runs=runs))
        self.deliveries += [
            Intent(run_id=run.run_id, attempt=1, job=run.job, available_at=self.now) for run in runs
        ]

    def change_job(self) -> None:
        job = Job(
            name=self.random.choice(JOBS[:2]),
            lease=self.random.choice([20, 90]) * SECOND,
            priority=self.random.choice([2, 5, 5, 9]),
            max_running=self.random.choice([None, 1, 2, 4]),
            sink=self.random.choice(SINKS),
        )
        self.both.commit_job(job, now=self.now)

    def take(self) -> None:
        lease = self.random.choice([SECOND, MINUTE])
        limit = self.random.randrange(5)
        taken = self.both.commit_takes(
            self.wanted(),
            now=self.now,
            lease=lease,
            limit=limit,
            intents_first=self.chance(0.3),
            backlog_first=self.chance(0.3),
        )
        self.taken += taken

    def end_tries(self) -> None:
        latest = self.random.choice([self.taken, self.taken[-2:], self.taken[-2:]])
        ends = [self._end(self.remembered(latest)) for _ in range(2) if latest]
        self.both.commit_delivery_ends(ends, now=self.now)

    def _end(self, taken: TakenDelivery) -> DeliveryEnd:
        random, delivery = self.random, taken.delivery
        becomes = random.choice(
            [
                sent(delivery, POLICY, now=self.now),
                failed(delivery, POLICY, error="refused", now=self.now),
                failed(delivery, POLICY, error="busy", now=self.now, retry_after=timedelta(seconds=7)),
                failed(delivery, POLICY, error="no such queue", now=self.now, is_final=True),
                None,
            ]
        )
        return DeliveryEnd(
            run_id=delivery.run_id,
            attempt=delivery.attempt,
            tries=delivery.tries + random.choice([0, 0, 0, 0, 1]),
            becomes=becomes,
        )

    def come_back(self) -> None:
        """Messages come back from where they were sent, and are opened; some come twice, some late."""
        messages = [self.remembered(self.taken).delivery for _ in range(2) if self.taken]
        opened = self.both.commit_openings("receiver", messages, now=self.now)
        self.attempts += [(attempt.run.run_id, attempt.run.attempt) for attempt in opened if attempt]

    def answer(self) -> None:
        """Messages that are the work itself; some answers are told twice, some late."""
        messages = [self.remembered(self.taken).delivery for _ in range(2) if self.taken]
        answers = [self._answer(message.run_id, message.attempt) for message in messages]
        self.both.commit_answers("relay", self.random.choice([answers, answers * 2]))

    def _answer(self, run_id: RunId, attempt: int) -> Answer:
        event, retry_at = self.random.choice(
            [
                (RunEvent.SUCCEEDED, None),
                (RunEvent.FAILED_FOR_GOOD, None),
                (RunEvent.RETRY_SCHEDULED, self.soon()),
            ]
        )
        has_succeeded = event is RunEvent.SUCCEEDED
        end = AttemptEnd(
            outcome=AttemptOutcome.SUCCEEDED if has_succeeded else AttemptOutcome.FAILED,
            error=None if has_succeeded else "gone",
            result=self.random.choice([None, encode_json({"attempt": attempt})]),
        )
        settled = settlement(run_id, end, event, at=self.now, attempt=attempt)
        began = self.now - self.random.choice([0, 1, 5]) * MINUTE
        return Answer(
            run_id=run_id, attempt=attempt, opened_at=began, settlement=replace(settled, retry_at=retry_at)
        )

    def redrive(self) -> None:
        dead = self.both.list_deliveries(DeliveryFilter(), after=None, limit=100)
        run_id = self.random.choice([*[delivery.run_id for delivery in dead], RunId("unknown")])
        event = audit_event(run_id.partition(".")[0], at=self.now)
        self.both.commit_redrive(run_id, event=event, now=self.now)

    def do_something(self) -> None:
        for run_id, number in [*self.attempts[-2:], self.remembered(self.attempts)]:
            attempt, name = AttemptKey(run_id=run_id, attempt=number), self.random.choice(EFFECTS)
            if self.chance(0.6):
                self.both.commit_effect_begin(attempt, name, now=self.now)
            if self.chance(0.5):
                result = self.random.choice([None, encode_json({"sent": number})])
                self.both.commit_effect(attempt, name, result=result, now=self.now)
