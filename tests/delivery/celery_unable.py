"""A Celery application that can write nothing."""

from celery import Celery
from kombu.serialization import registry


def refuse(value: object) -> str:
    raise TypeError(f"{type(value).__name__} is beyond me")


registry.register("refusing", refuse, refuse, content_type="application/x-refusing")  # type: ignore[no-untyped-call]  # kombu
app = Celery("unable", broker="memory://", set_as_current=False)
app.conf.task_serializer = "refusing"
