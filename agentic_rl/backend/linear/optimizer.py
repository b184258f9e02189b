"""Adam over one dense vector."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentic_rl.training import Adam


@dataclass
class Weights:
    """The weights with Adam's moments and its count of steps."""

    theta: NDArray[np.float64]
    mean: NDArray[np.float64]
    square: NDArray[np.float64]
    step: int = 0

    @classmethod
    def zeros(cls, size: int) -> "Weights":
        return cls(np.zeros(size), np.zeros(size), np.zeros(size))

    def forget_moments(self) -> None:
        self.mean = np.zeros_like(self.theta)
        self.square = np.zeros_like(self.theta)
        self.step = 0

    def descend(self, gradient: NDArray[np.float64], optim: Adam) -> float:
        """One step; gives the gradient's length before it was clipped."""
        norm = float(np.sqrt(np.sum(gradient * gradient)))
        if 0 < optim.grad_clip_norm < norm:
            gradient = gradient * (optim.grad_clip_norm / norm)
        self.step += 1
        self.mean = optim.beta1 * self.mean + (1 - optim.beta1) * gradient
        self.square = optim.beta2 * self.square + (1 - optim.beta2) * gradient * gradient
        mean = self.mean / (1 - optim.beta1**self.step)
        root = np.sqrt(self.square / (1 - optim.beta2**self.step))
        if optim.weight_decay:
            self.theta = self.theta * (1 - optim.lr * optim.weight_decay)
        self.theta = self.theta - optim.lr * mean / (root + optim.eps)
        return norm
