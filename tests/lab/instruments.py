"""Instruments for the tests of acquisition."""

import numpy as np


def with_squares(u):
    """The inputs (n, inputs) and their squares, as readouts (n, 2 inputs)."""
    return np.column_stack([u, u**2])


class Echo:
    """An instrument whose readouts are its inputs. It counts its calls, so that a test can make one of them fail."""

    def __init__(self):
        self.n_calls = 0
        self.is_closed = False

    def measure(self, u):
        self.n_calls += 1
        return self.answer(u)

    def answer(self, u):
        return u

    def close(self):
        self.is_closed = True
