"""Pages to share: reports on results, cards of devices, galleries of them, runs in progress."""

from .lab.report import card, gallery, live, page, save

__all__ = ["card", "gallery", "live", "page", "save"]
