"""Settings: from `ROTA_*` environment variables; command line options win over them."""

from ipaddress import ip_network
from pathlib import Path

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Every setting of every process. Durations are seconds."""

    model_config = SettingsConfigDict(env_prefix="ROTA_", extra="ignore", frozen=True)

    database_url: str = Field(
        default="rota.db",
        repr=False,  # it may hold a password
        description="The database: a path or `sqlite:///<path>` for SQLite, or `postgresql://user@host/database`.",
    )
    host: str = Field(default="127.0.0.1", description="The address that the HTTP API listens on.")
    port: int = Field(
        default=8080, ge=0, le=65535, description="The port of the HTTP API; 0 takes a free one."
    )
    partitions: int = Field(
        default=64,
        ge=1,
        le=4096,
        description="How many partitions a new database gets; fixed once it is made.",
    )
    lease_seconds: float = Field(
        default=15.0,
        ge=6,  # longer than the server lets a transaction be idle, and three looks of those who share
        le=600,
        description="How long a dispatcher holds its partitions without a renewal.",
    )
    poll_seconds: float = Field(
        default=1.0,
        gt=0,
        le=60,
        description="The longest a dispatcher or an idle worker sleeps between two looks.",
    )
    batch: int = Field(
        default=2000,
        ge=1,
        le=5000,
        description="How many ordinary schedules a dispatcher admits in one commit.",
    )
    page: int = Field(
        default=200,
        ge=1,
        le=1000,
        description="How many schedules that need a closer look a dispatcher plans in one step.",
    )
    retention_days: int | None = Field(
        default=None,
        ge=1,
        le=36_500,
        description="How many days of history are kept, and the 34 before them; not set: everything is kept.",
    )
    webhook_networks: str = Field(
        default="",
        json_schema_extra={"words": "networks with commas between them"},
        description="Networks that webhooks may reach though they are not public, such as `127.0.0.0/8,10.1.0.0/16`.",
    )
    celery_app: str | None = Field(
        default=None,
        pattern=r"^[\w.]+:[\w.]+$",
        json_schema_extra={"words": "MODULE:app"},
        description="The Celery application through which a relay sends, as `MODULE:app`, with its own configuration.",
    )
    celery_broker_url: str | None = Field(
        default=None,
        repr=False,  # it may hold a password
        description="The broker through which a relay sends Celery tasks where no `ROTA_CELERY_APP` is set.",
    )
    event_source: str = Field(
        default="/rota", description="The `source` of the CloudEvents that a relay sends.", min_length=1
    )
    server_url: str | None = Field(
        default=None,
        description="The HTTP API that a worker fetches its runs from, in place of the database.",
    )
    concurrency: int = Field(
        default=10, ge=1, le=1000, description="How many attempts a worker has open at once."
    )
    drain_seconds: float = Field(
        default=30.0, ge=0, le=3600, description="How long a stopping worker waits for its attempts to end."
    )
    clock_file: Path | None = Field(
        default=None,
        description="Take the time from this file (one instant) instead of the clock; for demonstrations and tests.",
    )
    log_level: str = Field(
        default="info", pattern="^(debug|info|warning|error)$", description="The least level logged."
    )
    log_format: str = Field(default="console", pattern="^(console|json)$", description="How log lines look.")

    @field_validator("webhook_networks")
    @classmethod
    def check_networks(cls, value: str) -> str:
        """Raises `ValueError` for what is no list of networks."""
        for part in value.split(","):
            if part.strip():
                ip_network(part.strip())
        return value
