"""Texts and problems that answers of every kind have."""

from typing import Annotated, Literal

from pydantic import Field

from rota.api.request_shapes import Shape

Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"}, examples=["2026-01-10T14:00:00Z"])]
Local = Annotated[
    str,
    Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?$", examples=["2026-01-10T09:00"]),
]
Offset = Annotated[str, Field(pattern=r"^[+-]\d{2}:\d{2}(:\d{2})?$", examples=["-05:00"])]
Cursor = Annotated[
    str | None, Field(description="Hand it back as `cursor` for the next page; null: there is none.")
]
Boundary = Annotated[
    Literal["keep_period", "now"],
    Field(description="Whether it took the periods over that its forerunners used, or began anew."),
]


class FieldProblem(Shape):
    """One bad field of a request."""

    field: str = Field(description="Its path (`recurrence.cron`), or the name of a parameter or header.")
    message: str


class Problem(Shape):
    """What went wrong (RFC 9457)."""

    type: str = Field(description="A name that programs may rely on; see the page about errors.")
    title: str
    status: int
    detail: str
    instance: str = Field(description="The path of the request.")
    errors: list[FieldProblem] = Field(description="The bad fields one by one; empty where none is to blame.")
