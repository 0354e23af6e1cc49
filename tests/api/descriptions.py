"""Reading the description of the API: its operations, and the shapes that they refer to."""

from collections.abc import Iterator
from typing import cast

from tests.api.conftest import Body

Operation = tuple[str, str, Body]


def operations_of(described: Body) -> Iterator[Operation]:
    paths = cast("dict[str, dict[str, Body]]", described["paths"])
    for path, operations in paths.items():
        for method, operation in operations.items():
            yield method.upper(), path, operation


def references_in(value: object) -> Iterator[str]:
    match value:
        case {"$ref": str(reference)}:
            yield reference
        case dict():
            for member in value.values():
                yield from references_in(member)
        case list():
            for member in value:
                yield from references_in(member)
        case _:
            pass
