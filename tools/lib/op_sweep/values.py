# SPDX-License-Identifier: Apache-2.0
"""Draws shapes and values."""

import numpy as np
from tensorflow.python.framework import dtypes

VALID, INVALID, GRADIENT = "valid", "invalid", "gradient"
NORMAL_SIZE = 2
_PROFILES = ("plain", "plain", "ties", "special")


class Numbers:
    """A generator of random numbers, with the profile and the size of a case."""

    def __init__(self, seed, kind, size):
        self.random = np.random.default_rng(seed)
        self.kind, self.size = kind, size
        self.has_double = True  # whether double is a wider type of the op
        self.profile = self.choice(_PROFILES)
        if self.kind == GRADIENT:  # a Jacobian has a row for each element
            self.profile, self.size = "plain", 0

    def finite(self):
        """Leaves out NaN and infinity, which convolutions may multiply by padding."""
        if self.profile == "special":
            self.profile = "plain"

    # ---- Choices -----------------------------------------------------------------

    def choice(self, values):
        return values[int(self.random.integers(len(values)))]

    def chance(self, probability):
        return bool(self.random.random() < probability)

    def integer(self, low, high):
        """Returns an integer from low to high, both included."""
        return int(self.random.integers(low, max(low, high) + 1))

    def shape(self, low=0, high=8, empty=True, most=7):
        """Returns a shape whose rank is from low to high: scalars, empty tensors,
        dimensions of 1, high ranks, long dimensions, or ordinary ones."""
        if self.size < NORMAL_SIZE:
            rank = self.integer(low, max(low, min(high, self.size + 1)))
            return [self.integer(1, min(most, 2 + self.size)) for _ in range(rank)]
        dice = self.random.random()
        if dice < .08 and low == 0:
            return []
        rank = self.integer(low, max(low, min(high, 8 if dice > .85 else 4)))
        limit = most if rank <= 4 else 3 if rank <= 6 else 2
        shape = [self.integer(1, limit) for _ in range(rank)]
        if rank and dice < .18 and empty:
            shape[self.integer(0, rank - 1)] = 0
        elif dice < .3:
            shape = [1 if self.chance(.5) else size for size in shape]
        elif rank and dice < .34 and most >= 7:
            shape[self.integer(0, rank - 1)] = self.integer(500, 20000 // 7**(rank - 1) + 500)
        return shape

    def broadcast(self, shape):
        """Returns a shape that broadcasts to a shape."""
        shape = [1 if self.chance(.25) else size for size in shape]
        return shape[self.integer(0, len(shape)) if self.chance(.5) else 0:]

    def permutation(self, count):
        return [int(i) for i in self.random.permutation(count)]

    def axis(self, rank):
        """Returns an axis, negative or not."""
        return self.integer(-rank, rank - 1) if rank else 0

    # ---- Values ------------------------------------------------------------------

    def values(self, dtype, shape, low=None, high=None, profile=None):
        """Returns an array; low and high, both included, bound its elements."""
        kind, dtype = np.dtype(dtype).kind, np.dtype(dtype)
        profile = profile or self.profile
        if dtype == bool:
            return self.random.integers(0, 2, shape).astype(bool)
        if kind in "iu":
            return self._integers(dtype, shape, low, high, profile)
        if kind == "c":
            part = np.dtype(f"float{dtype.itemsize * 4}")
            # Products and quotients of infinite complex numbers are defined nowhere.
            profile = "plain" if profile == "special" else profile
            result = np.empty(shape, dtype)
            result.real = self.values(part, shape, low, high, profile)
            result.imag = self.values(part, shape, low, high, profile)
            return result
        if kind in "OSU":
            letters = np.array([b"", b"a", b"tensor", b"\xc3\xa9"], dtype=object)
            return letters[self.random.integers(0, len(letters), shape)]
        if low is not None:
            return np.asarray(self.random.uniform(low, high, shape)).astype(dtype)
        if profile == "ties":
            x = self.random.integers(-3, 4, shape)
        else:
            x = self.random.normal(size=shape)
            if self.chance(.3) and self.kind != GRADIENT:
                x = x * 10.0**self.integer(-3, 2)
        x = np.asarray(x, "float64")
        if profile == "special":
            info = dtypes.as_dtype(dtype)
            tiny, digits = {"float64": (2.0**-1022, 52), "float16": (2.0**-14, 10)}.get(
                dtype.name, (2.0**-126, 23))
            # TensorFlow's CPU replaces denormal numbers by 0 at times, also such as
            # half of the smallest normal one in the middle of a formula. Only results in
            # double show that it did.
            if self.has_double:
                denormal = tiny / 4
            else:
                denormal = tiny = tiny * 2.0**digits
            special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, tiny,
                                denormal, float(info.max), float(info.min)])
            x = np.where(self.random.random(shape) < .2, special[
                self.random.integers(0, len(special), shape)], x)
        with np.errstate(all="ignore"):
            return x.astype(dtype)

    def _integers(self, dtype, shape, low, high, profile):
        info = np.iinfo(dtype)
        if low is not None:
            return self.random.integers(low, high, shape, endpoint=True).astype(dtype)
        x = np.asarray(self.random.integers(max(-9, info.min), 10, shape)).astype(dtype)
        if profile == "special":
            for extreme in (info.min, info.max):
                x = np.where(self.random.random(shape) < .1, dtype.type(extreme), x)
        return np.asarray(x, dtype)
