"""What `rota doctor` says of the tables' revision, whichever database has them."""

from typing import Protocol

from rota.cli.doctor_checks import Check, failure, fine, warning


class Tables(Protocol):
    @property
    def revision(self) -> str | None: ...
    @property
    def newest_revision(self) -> str: ...
    @property
    def is_up_to_date(self) -> bool: ...
    @property
    def is_newer(self) -> bool: ...


def check_tables(report: Tables) -> Check:
    if report.is_newer:
        return failure(
            "schema",
            f"Revision {report.revision}, of a newer Rota; this one knows {report.newest_revision}.",
            remedy="Run that version of Rota, or a newer one.",
        )
    if report.revision is None:
        return warning(
            "schema",
            f"No tables yet; this Rota uses revision {report.newest_revision}.",
            remedy="`rota init --partitions N` makes them, and fixes the number N from then on. The checks below this "
            "one were left out.",
        )
    if not report.is_up_to_date:
        return warning(
            "schema",
            f"Revision {report.revision}; this Rota uses {report.newest_revision}.",
            remedy="`rota init`, or a start of Rota, brings the tables up to date. The checks below this one were "
            "left out.",
        )
    return fine("schema", f"revision {report.revision}")
