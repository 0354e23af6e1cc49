"""Jobs with sinks in a world: what is sent, what a receiver makes of it, and when it is sent once more."""

from collections.abc import Iterator
from datetime import timedelta

from rota import RetryPolicy, SqsSink, WebhookSink
from rota.testing import Completed, Failed, Rejected, Sent, World

QUEUE = SqsSink(queue_url="https://sqs.eu-central-1.amazonaws.com/1/reports")
SHOP = WebhookSink(url="https://shop.example/due")
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
MANY = 200


def daily(world: World, job: str) -> None:
    """Due at 09:00 UTC, in a world that begins at 00:00."""
    world.app.create_schedule(
        id="report-7", job=job, timezone="UTC", recurrence={"cron": "0 9 * * *"}, params={"report": "sales"}
    )


def test_a_run_of_a_queue_is_recorded_and_opened_by_its_message() -> None:
    with World() as world:
        world.app.declare("report", sink=QUEUE)
        daily(world, "report")
        world.pass_time(timedelta(hours=9))
        [sent] = world.sent
        assert (sent.sink, sent.message["job"], sent.message["attempt"]) == (QUEUE, "report", 1)
        assert "params" not in sent.message
        attempt = world.app.open_attempt(sent.message)
        assert attempt is not None
        with attempt as ctx:
            attempt.result = ctx.params
        [run] = world.app.runs()
        assert (run["state"], run["run_id"]) == ("succeeded", sent.message["run_id"])
        world.pass_time(timedelta(hours=1))
        assert len(world.sent) == 1


def test_a_message_that_nobody_opens_is_sent_once_more_at_its_time() -> None:
    with World() as world:
        world.app.declare("report", sink=QUEUE)
        daily(world, "report")
        world.pass_time(DAY)
        assert len(world.sent) > 1
        assert {(sent.message["run_id"], sent.message["attempt"]) for sent in world.sent} == {
            ("report-7.1.20260101T090000Z", 1)
        }


def test_a_receiver_says_what_becomes_of_what_it_is_sent() -> None:
    outcomes: Iterator[Failed | Completed | Rejected] = iter(
        [Failed(error="503"), Completed(result=None), Rejected(error="410")]
    )

    def receive(sent: Sent) -> Failed | Completed | Rejected:
        assert sent.message["params"] == {"report": "sales"}
        return next(outcomes)

    with World(receive=receive, log_level="error") as world:
        world.app.declare("notify", sink=SHOP)
        daily(world, "notify")
        world.pass_time(2 * DAY)
        assert [run["state"] for run in world.app.runs()] == ["failed", "succeeded"]
        assert len(world.sent) == 3


def test_a_receiver_may_do_the_work_itself_or_raise() -> None:
    def receive(sent: Sent) -> None:
        if len(world.sent) == 1:
            raise ConnectionError("refused")
        attempt = world.app.open_attempt(sent.message)
        assert attempt is not None
        with attempt:
            attempt.result = "done"

    with World(receive=receive, log_level="error") as world:
        world.app.declare("report", sink=QUEUE, retry=RetryPolicy(max_attempts=1))
        daily(world, "report")
        world.pass_time(timedelta(hours=10))
        [run] = world.app.runs()
        assert (run["state"], len(world.sent)) == ("succeeded", 2)


def test_many_runs_of_one_instant_are_all_sent() -> None:
    with World() as world:
        world.app.declare("report", sink=QUEUE)
        for _ in range(MANY):
            world.app.create_schedule(job="report", timezone="UTC", recurrence={"at": world.now + MINUTE})
        world.pass_time(MINUTE)
        assert len({str(sent.message["run_id"]) for sent in world.sent}) == MANY
