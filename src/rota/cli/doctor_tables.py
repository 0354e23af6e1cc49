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
    if not report.is_up_to_date:
        return warning(
            "schema",
            f"Revision {report.revision or 'none'}; this Rota uses {report.newest_revision}.",
            remedy="Start Rota: it brings the tables up to date. The checks below this one were left out.",
        )
    return fine("schema", f"revision {report.revision}")
