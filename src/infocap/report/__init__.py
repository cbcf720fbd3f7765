"""Pages to share: the report on a result, the card of a device, a gallery of devices, a run while it is measured."""

from ._card import save_card, save_gallery
from ._live import live
from ._page import page, save

__all__ = ["live", "page", "save", "save_card", "save_gallery"]
