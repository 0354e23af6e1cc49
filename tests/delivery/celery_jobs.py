"""The Celery application of a test's worker process: one task, which does a run's work and notes each call."""

import os
from pathlib import Path

from celery import Celery

from rota import Rota
from rota.contrib.celery import rota_task
from rota.worker.context import RunContext

app = Celery("jobs", broker=os.environ["TEST_BROKER_URL"])
app.conf.update(task_serializer="json", accept_content=["json"], broker_connection_retry_on_startup=True)
rota = Rota(os.environ["TEST_DATABASE"])


@app.task(name="jobs.report")  # type: ignore[untyped-decorator]  # Celery brings no types
@rota_task(rota)
def report(ctx: RunContext) -> dict[str, object]:
    with Path(os.environ["TEST_CALLS"]).open("a") as calls:
        calls.write(f"{app.current_task.request.id} {ctx.run_id} {ctx.attempt}\n")
    return {"customer": ctx.params["customer"]}
