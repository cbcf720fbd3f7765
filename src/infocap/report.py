"""Pages to share: the report on a result, the card of a device, a gallery of devices, a run while it is measured."""

from .lab.report import card, gallery, live, page, save

__all__ = ["card", "gallery", "live", "page", "save"]
