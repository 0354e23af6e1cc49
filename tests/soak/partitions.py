"""Watches who owns the partitions: an epoch only rises, and by one at least where the owner is another one (I6)."""

import psycopg

OWNERS = "SELECT partition, owner, epoch FROM partitions ORDER BY partition"


class PartitionWatch:
    """Looks at the partitions again and again; what it saw before is compared with what it sees."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection | None = None
        self._seen: dict[int, tuple[str | None, int]] = {}
        self.take_overs = 0
        """Of a partition by another owner than the last that was seen."""
        self.faults: list[str] = []
        self._last_owner: dict[int, str] = {}

    def look(self) -> None:
        """Nothing is seen while the server is away."""
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(self._url, autocommit=True)
            rows = self._connection.execute(OWNERS).fetchall()
        except psycopg.OperationalError:
            self.close()
            return
        for partition, owner, epoch in rows:
            self._compare(partition, owner, epoch)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def epochs(self) -> int:
        """All of them added: each taking raised one by one."""
        return sum(epoch for _, epoch in self._seen.values())

    def _compare(self, partition: int, owner: str | None, epoch: int) -> None:
        before = self._seen.get(partition)
        if before is not None and epoch < before[1]:
            self.faults.append(f"the epoch of partition {partition} fell from {before[1]} to {epoch}")
        if before is not None and owner not in (None, before[0]) and epoch <= before[1]:
            self.faults.append(f"{owner} owns partition {partition} under the epoch of {before[0]}, {epoch}")
        last = self._last_owner.get(partition)
        if owner is not None:
            self.take_overs += last not in (None, owner)
            self._last_owner[partition] = owner
        self._seen[partition] = (owner, epoch)
