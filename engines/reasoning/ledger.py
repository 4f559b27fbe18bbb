"""Tokens and money: counted before they are spent, and refused when the budget is gone.

Every request first reserves the most it can cost. A reply settles the reservation with what the
server says it used; a request that timed out may have been billed, so its reservation stays
spent. A budget of money without a known price refuses everything: an unknown price is not zero.
"""

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field

from engines.contracts.base import Contract
from engines.errors import EngineError
from engines.reasoning.shared_file import State, locked_state

_MILLION = 1_000_000


class BudgetSpentError(EngineError):
    """The next request could cost more than is left, or its cost cannot be known."""


class Price(Contract):
    """What a million tokens cost, in one currency; a server of one's own may cost 0."""

    input_per_million: float = Field(ge=0)
    output_per_million: float = Field(ge=0)

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """Money for one request."""
        money = input_tokens * self.input_per_million + output_tokens * self.output_per_million
        return money / _MILLION


class Budget(Contract):
    """Hard limits; None where a kind of limit is not wanted."""

    max_tokens: int = Field(default=400_000, ge=0)
    """Input and output together, for one video."""
    max_money: float | None = Field(default=None, ge=0)
    """For one video, in the currency of the price."""
    max_tokens_per_day: int | None = Field(default=None, ge=0)
    max_money_per_day: float | None = Field(default=None, ge=0)
    """Over all processes that share the ledger's file, by UTC day."""


@dataclass
class Reservation:
    """The most that one request in flight can cost."""

    input_tokens: int
    output_tokens: int
    day: str


class Ledger:
    """What one video's questions have cost, and, in a shared file, what the day has cost."""

    def __init__(
        self, budget: Budget, price: Price | None = None, day_file: Path | None = None
    ) -> None:
        """Start at zero for the video.

        Args:
            budget: hard limits.
            price: None if unknown; then every limit of money refuses.
            day_file: needed for limits per day; shared by all processes of one machine.

        Raises:
            ValueError: a limit per day without a file to count it in.
        """
        daily = budget.max_tokens_per_day is not None or budget.max_money_per_day is not None
        if daily and day_file is None:
            msg = "a budget per day needs a file in which processes share the count"
            raise ValueError(msg)
        self._budget = budget
        self._price = price
        self._day_file = day_file if daily else None
        self._lock = threading.Lock()
        self.input_tokens = 0
        self.output_tokens = 0
        self.requests = 0

    @property
    def money(self) -> float | None:
        """Spent so far, reservations in flight included; None without a price."""
        if self._price is None:
            return None
        return self._price.cost(self.input_tokens, self.output_tokens)

    def reserve(self, input_tokens: int, output_tokens: int) -> Reservation:
        """Take the most that a request can cost out of the budget, or refuse it.

        Raises:
            BudgetSpentError: a limit would be passed, the price is unknown, or the shared count
                cannot be read.
        """
        limits_money = (self._budget.max_money, self._budget.max_money_per_day)
        if self._price is None and any(limit is not None for limit in limits_money):
            msg = "the price of the model is unknown, and the budget limits money"
            raise BudgetSpentError(msg)
        day = datetime.now(UTC).date().isoformat()
        with self._lock:
            total = self.input_tokens + self.output_tokens + input_tokens + output_tokens
            _refuse_over("tokens for this video", total, self._budget.max_tokens)
            if self._price is not None:
                money = self._price.cost(
                    self.input_tokens + input_tokens, self.output_tokens + output_tokens
                )
                _refuse_over("money for this video", money, self._budget.max_money)
            self._count_day(day, input_tokens, output_tokens, limited=True)
            self.input_tokens += input_tokens
            self.output_tokens += output_tokens
            self.requests += 1
        return Reservation(input_tokens, output_tokens, day)

    def settle(self, reservation: Reservation, input_tokens: int, output_tokens: int) -> None:
        """Put the true cost in the place of a reservation; call at most once for each.

        Raises:
            BudgetSpentError: the shared count cannot be written.
        """
        more_in = input_tokens - reservation.input_tokens
        more_out = output_tokens - reservation.output_tokens
        with self._lock:
            self.input_tokens += more_in
            self.output_tokens += more_out
            self._count_day(reservation.day, more_in, more_out, limited=False)

    def _count_day(self, day: str, input_tokens: int, output_tokens: int, *, limited: bool) -> None:
        if self._day_file is None:
            return
        money = self._price.cost(input_tokens, output_tokens) if self._price else 0.0
        try:
            with locked_state(self._day_file) as state:
                self._add(state, day, input_tokens + output_tokens, money, limited=limited)
        except (OSError, ValueError) as error:
            msg = f"the day's count cannot be kept: {error}"
            raise BudgetSpentError(msg) from error

    def _add(self, state: State, day: str, tokens: int, money: float, *, limited: bool) -> None:
        total_tokens = state.get(f"{day} tokens", 0) + tokens
        total_money = state.get(f"{day} money", 0) + money
        if limited:
            _refuse_over("tokens for this day", total_tokens, self._budget.max_tokens_per_day)
            _refuse_over("money for this day", total_money, self._budget.max_money_per_day)
        for name in [n for n in state if not n.startswith(day)]:
            del state[name]
        state[f"{day} tokens"] = total_tokens
        state[f"{day} money"] = total_money


def _refuse_over(what: str, value: float, limit: float | None) -> None:
    if limit is not None and value > limit:
        msg = f"{what}: the next request could bring it to {value:g}, the limit is {limit:g}"
        raise BudgetSpentError(msg)
