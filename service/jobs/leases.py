"""Which workers are alive.

A worker is a process that holds a slot, and counts up while it lives. Others watch the count with their own clocks, so
that the clocks of two machines need not agree. On one machine the kernel tells at once which processes are gone.
"""

import os
import socket
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from partita.service.jobs.tables import workers


@dataclass(frozen=True, slots=True)
class Seen:
    """A worker as another one sees it: its slot, who holds it, how far it has counted, and where it runs."""

    slot: str
    token: str
    beats: int
    machine: str
    process: str


class Lease:
    """The slot of this process, and the watch over the others.

    Parameters
    ----------
    engine
        The database.
    solves
        How many solves run here at once; for those who ask who is there.
    lease_s
        After how long without a sign a worker counts as gone.
    """

    def __init__(self, engine: sa.Engine, solves: int, lease_s: float) -> None:
        self._engine, self._solves, self._lease_s = engine, solves, lease_s
        self._token = str(uuid.uuid4())
        self._machine, self._process = _machine(), _process(os.getpid())
        self._watched: dict[str, tuple[str, int, float]] = {}
        self.slot = ""

    def acquire(self) -> str:
        """Take the first slot of this host that no living process holds, and give its name.

        A process that starts again after it was killed so gets the slot that it had.
        """
        host, number = socket.gethostname(), 0
        while True:
            slot = f"{host}:{number}"
            if self._insert(slot) or self._replace(slot):
                self.slot = slot
                return slot
            number += 1

    def beat(self) -> bool:
        """Give a sign of life; False where another worker thought this one gone and has taken its jobs."""
        with self._engine.begin() as connection:
            done = connection.execute(
                workers.update()
                .where(workers.c.slot == self.slot, workers.c.token == self._token)
                .values(beats=workers.c.beats + 1, beat_at=time.time())
            )
        return done.rowcount == 1

    def gone(self) -> list[Seen]:
        """Give the workers that are gone."""
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(workers).where(workers.c.slot != self.slot)).all()
        seen = [Seen(row.slot, row.token, row.beats, row.machine, row.process) for row in rows]
        now = time.monotonic()
        before, self._watched = self._watched, {}
        for each in seen:
            token, beats, since = before.get(each.slot, ("", -1, now))
            same = (token, beats) == (each.token, each.beats)
            self._watched[each.slot] = (each.token, each.beats, since if same else now)
        return [each for each in seen if self._is_gone(each) or now - self._watched[each.slot][2] > self._lease_s]

    def bury(self, worker: Seen) -> bool:
        """Take over the jobs of a worker that is gone; False where another one does so, or it is back."""
        with self._engine.begin() as connection:
            done = connection.execute(
                workers.update()
                .where(
                    workers.c.slot == worker.slot,
                    workers.c.token == worker.token,
                    workers.c.beats == worker.beats,
                )
                .values(beats=workers.c.beats + 1, token=self._token)
            )
        return done.rowcount == 1

    def remove(self, slot: str) -> None:
        """Give up a slot that this process holds."""
        with self._engine.begin() as connection:
            connection.execute(workers.delete().where(workers.c.slot == slot, workers.c.token == self._token))

    def renew(self) -> None:
        """Hold the slot again after others took it for abandoned, once they are done with it."""
        if not self._insert(self.slot):
            self._replace(self.slot)

    def _is_gone(self, worker: Seen) -> bool:
        """Tell whether the process of a worker on this machine has ended."""
        return worker.machine == self._machine and _process(int(worker.process.split()[0])) != worker.process

    def _insert(self, slot: str) -> bool:
        """Take a slot that nobody has."""
        try:
            with self._engine.begin() as connection:
                connection.execute(workers.insert().values(slot=slot, **self._values()))
            return True
        except sa.exc.IntegrityError:
            return False

    def _replace(self, slot: str) -> bool:
        """Take a slot whose process has ended on this machine."""
        with self._engine.begin() as connection:
            row = connection.execute(sa.select(workers).where(workers.c.slot == slot)).one_or_none()
            if row is None or not self._is_gone(Seen(slot, row.token, row.beats, row.machine, row.process)):
                return False
            done = connection.execute(
                workers.update().where(workers.c.slot == slot, workers.c.token == row.token).values(**self._values())
            )
            return done.rowcount == 1

    def _values(self) -> dict[str, object]:
        """Describe this process."""
        return {
            "token": self._token,
            "machine": self._machine,
            "process": self._process,
            "solves": self._solves,
            "beats": 0,
            "beat_at": time.time(),
        }


def alive(engine: sa.Engine, lease_s: float) -> int:
    """Give how many workers have shown themselves lately; the clocks of the machines must roughly agree for that."""
    with engine.connect() as connection:
        lately = workers.c.beat_at > time.time() - lease_s
        return connection.execute(sa.select(sa.func.count()).select_from(workers).where(lately)).scalar_one()


def _machine() -> str:
    """Name this machine, or the container in which process numbers mean the same."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    space = Path("/proc/self/ns/pid")
    known = f"{boot.read_text().strip()} {space.stat().st_ino}" if boot.exists() and space.exists() else "unknown"
    return f"{socket.gethostname()} {known}"


def _process(pid: int) -> str:
    """Name a process so that no later one has the same name: by its number and when it began."""
    try:
        figures = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return f"{pid} gone"
    state, began = figures[0], figures[19]
    return f"{pid} {'gone' if state in 'ZX' else began}"
