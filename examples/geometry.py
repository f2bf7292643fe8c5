"""Shapes in the plane. `make demo` writes the body that is missing below."""

import math


class Circle:
    """A circle with a centre and a radius."""

    def __init__(self, x, y, radius):
        self.x = x
        self.y = y
        self.radius = radius

    def area(self):
        """Return the area of the circle."""
        return math.pi * self.radius**2

    def __repr__(self):
        """Return the circle as text."""
        

    def contains(self, x, y):
        """Return whether a point lies inside the circle."""
        return math.hypot(x - self.x, y - self.y) <= self.radius
