"""Information processing capacity: what does a physical system compute, and how sure are we?"""

__version__ = "0.1.0"
