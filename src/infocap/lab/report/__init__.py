"""Pages to share: reports on results, cards of devices, galleries of them, runs in progress."""

from ._card import card, gallery
from ._live import live
from ._notebook import notebook
from ._page import page, save

__all__ = ["card", "gallery", "live", "notebook", "page", "save"]
