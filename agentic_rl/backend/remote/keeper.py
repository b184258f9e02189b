"""A trainer that is made again from its last saved state where it broke."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from agentic_rl.backend.remote.guard import Guard
from agentic_rl.backend.remote.service import Remedy, RemoteError, Service, Trainer

T = TypeVar("T")

log = logging.getLogger(__name__)

_MENDABLE = (Remedy.REPEAT, Remedy.REBUILD)


@dataclass(frozen=True, slots=True)
class Origin:
    """The state a trainer is made from; an empty address is a fresh adapter."""

    state: str = ""
    optimizer: bool = False


class Keeper:
    """Makes the trainer when it is first needed.

    A call that failed half-way may have left gradients or a step behind, so it is never sent again
    to the same trainer: a new one starts from `origin`, and the whole operation is done once more.
    """

    def __init__(self, service: Service, guard: Guard, seconds: float) -> None:
        self._service = service
        self._guard = guard
        self._seconds = seconds
        self._trainer: Trainer | None = None
        self._origin = Origin()
        self._steps = 0
        self.rebuilt = 0

    def start_from(self, origin: Origin) -> None:
        """The next trainer begins here."""
        self._trainer = None
        self.saved(origin)

    def saved(self, origin: Origin) -> None:
        """The trainer as it is now can be had again from `origin`."""
        self._origin = origin
        self._steps = 0

    def stepped(self) -> None:
        self._steps += 1

    async def run(self, operation: Callable[[Trainer], Awaitable[T]], doing: str) -> T:
        """`operation` must leave no trace outside the trainer until it has succeeded."""
        try:
            return await self._attempt(operation, doing)
        except RemoteError as error:
            if error.remedy not in _MENDABLE:
                raise
            if self._steps:
                raise RemoteError(
                    f"{error}; the last saved state lies {self._steps} updates back, so the update"
                    " cannot be redone: continue from it with `agentic-rl resume`",
                ) from error
            log.warning("%s; the trainer is made again from its last saved state", error)
        self.rebuilt += 1
        self._trainer = None
        return await self._attempt(operation, doing)

    async def _attempt(self, operation: Callable[[Trainer], Awaitable[T]], doing: str) -> T:
        if self._trainer is None:
            origin = self._origin
            self._trainer = await self._guard.call(
                lambda: self._service.trainer(origin.state, optimizer=origin.optimizer),
                "making a trainer",
                self._seconds,
            )
        trainer = self._trainer
        return await self._guard.call(lambda: operation(trainer), doing, self._seconds)
