"""The report: one HTML page that shows a result, explains it, and carries its numbers."""

from ._page import page, save

__all__ = ["page", "save"]
