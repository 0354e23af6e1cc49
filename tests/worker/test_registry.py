"""Jobs by name: what may be registered, and what a handler is taken for."""

import functools
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from rota.domain.errors import Conflict, InvalidRequest
from rota.domain.job import Job, RetryPolicy
from rota.domain.overdue import Expire
from rota.worker.context import RunContext
from rota.worker.registry import Registry


def nothing(context: RunContext) -> None:
    """Does nothing at all.

    Not part of the description.
    """


async def wait_for_nothing(context: RunContext) -> None: ...


class Service:
    """Not the description of its jobs."""

    async def __call__(self, context: RunContext) -> None: ...

    async def method(self, context: RunContext) -> None: ...


def yielding(context: RunContext) -> Iterator[int]:
    yield 1


def test_the_decorator_leaves_the_handler_as_it_is() -> None:
    assert Registry().job("sales_report")(nothing) is nothing


def test_a_job_that_gives_nothing_takes_the_defaults() -> None:
    registry = Registry()
    registry.job("sales_report", description="Sells.")(nothing)
    assert registry.jobs() == [Job(name="sales_report", description="Sells.")]


def test_a_job_keeps_what_it_gives() -> None:
    registry = Registry()
    retry = RetryPolicy(max_attempts=2, initial_delay=timedelta(seconds=1), jitter=0)
    overdue = Expire(deadline=timedelta(minutes=5))
    registry.job(
        "sales_report",
        timeout=timedelta(minutes=1),
        retry=retry,
        overdue=overdue,
        lease=timedelta(minutes=2),
        params_bytes_max=100,
        description="Sells.",
    )(nothing)
    assert registry.jobs() == [
        Job(
            name="sales_report",
            overdue=overdue,
            retry=retry,
            timeout=timedelta(minutes=1),
            lease=timedelta(minutes=2),
            params_bytes_max=100,
            description="Sells.",
        )
    ]


def test_the_description_is_the_first_line_of_the_docstring() -> None:
    registry = Registry()
    registry.job("nothing")(nothing)
    registry.job("silent")(wait_for_nothing)
    registry.job("service")(Service())
    assert {job.name: job.description for job in registry.jobs()} == {
        "nothing": "Does nothing at all.",
        "service": None,
        "silent": None,
    }


def test_a_name_has_one_handler() -> None:
    registry = Registry()
    registry.job("sales_report")(nothing)
    with pytest.raises(Conflict, match="'sales_report' has a handler already"):
        registry.job("sales_report")(wait_for_nothing)


@pytest.mark.parametrize(
    ("register", "field"),
    [
        (lambda registry: registry.job("Sales Report"), "name"),
        (lambda registry: registry.job("sales", lease=timedelta(seconds=1)), "lease"),
        (lambda registry: registry.job("sales", timeout=timedelta(0)), "timeout"),
        (lambda registry: registry.job("sales", timeout=timedelta(seconds=-1)), "timeout"),
        (lambda registry: registry.job("sales", retry=RetryPolicy(max_attempts=0)), "retry.max_attempts"),
        (lambda registry: registry.job("sales", retry=RetryPolicy(factor=float("nan"))), "retry.factor"),
        (lambda registry: registry.job("sales", params_bytes_max=10**9), "params_bytes_max"),
        (lambda registry: registry.job("sales", description="x" * 1_001), "description"),
    ],
)
def test_a_job_out_of_bounds_is_refused_with_its_field(
    register: Callable[[Registry], Callable[[object], object]], field: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        register(Registry())(nothing)
    assert [error.field for error in refused.value.errors] == [field]


@pytest.mark.parametrize(
    ("register", "sentence"),
    [
        (lambda registry: registry.job("sales", timeout=30), "Give timeout as timedelta, not as int."),
        (lambda registry: registry.job("sales", retry=5), "Give retry as RetryPolicy, not as int."),
        (
            lambda registry: registry.job("sales", overdue="latest_only"),
            "Give overdue as CatchUpAll or LatestOnly or Expire, not as str.",
        ),
        (lambda registry: registry.job(nothing), 'Give the job a name: @app.job("sales_report").'),
        (lambda registry: registry.job("sales")(yielding), "yields; let it return its result"),
        (lambda registry: registry.job("sales")(lambda: None), "one argument, its context, and takes ()"),
        (lambda registry: registry.job("sales")(lambda context, day: None), "takes (context, day)"),
        (lambda registry: registry.job("sales")(lambda *, context: None), "takes (*, context)"),
        (lambda registry: registry.job("sales")(Service.method), "takes (self, context"),
        (lambda registry: registry.job("sales")("nothing"), "is a str; give a function of one argument"),
    ],
)
def test_what_is_no_job_at_all_is_refused_with_a_sentence(
    register: Callable[[Registry], object], sentence: str
) -> None:
    with pytest.raises(TypeError) as refused:
        register(Registry())
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    "handler",
    [
        lambda *contexts: None,
        lambda context, day=None, **more: None,
        functools.partial(lambda day, context: None, "today"),
        Service().method,
        str,
        max,  # a builtin that does not tell what it takes
    ],
)
def test_whatever_takes_one_argument_is_a_handler(handler: Callable[[RunContext], object]) -> None:
    Registry().job("sales")(handler)


@pytest.mark.parametrize(
    ("handler", "is_async"),
    [
        (nothing, False),
        (wait_for_nothing, True),
        (Service(), True),
        (Service().method, True),
        (functools.partial(wait_for_nothing), True),
        (functools.partial(nothing), False),
    ],
)
def test_a_handler_is_async_if_calling_it_gives_a_coroutine(
    handler: Callable[[RunContext], object], is_async: bool
) -> None:
    registry = Registry()
    registry.job("sales")(handler)
    entry = registry.get("sales")
    assert entry is not None
    assert entry.is_async is is_async
