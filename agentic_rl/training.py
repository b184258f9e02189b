"""What a backend learns with, what it tells, and where its weights lie; all frozen."""

from dataclasses import astuple, dataclass
from operator import add, sub


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam's settings for one update; `grad_clip_norm` 0 is off."""

    lr: float
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-12
    weight_decay: float = 0.0
    grad_clip_norm: float = 0.0


@dataclass(frozen=True, slots=True)
class UpdateMetrics:
    """What a backend says of one update; None where it cannot tell."""

    loss: float | None = None
    ratio_mean: float | None = None
    ratio_max: float | None = None
    clip_fraction: float | None = None
    entropy: float | None = None
    grad_norm: float | None = None
    trainer_rebuilt: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens so far, as billed."""

    prefill: int = 0
    cached: int = 0
    sampled: int = 0
    trained: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(*map(sub, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where weights lie: `state` holds the optimizer too, `sampler` is enough to sample."""

    name: str
    state: str
    sampler: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend can do: an option it lacks is refused before anything is spent.

    `losses` holds `*` where any loss with a gradient of its own can be trained.
    """

    losses: frozenset[str] = frozenset()
    train: bool = False
    tokens: bool = False
    score: bool = False
    imitate: bool = False
    top_p: bool = False
    seed: bool = True
    remote: bool = False
    max_sequence_tokens: int | None = None
