"""Small source files for command-line tests."""

GEOMETRY = '''class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def norm(self):
        """Return the distance from the origin."""
        return 
'''
