"""Pages to share: the report on a result, the card of a device, a gallery of devices, a run while it is measured."""

from ._card import card, gallery
from ._live import live
from ._notebook import notebook
from ._page import page, save

__all__ = ["card", "gallery", "live", "notebook", "page", "save"]
