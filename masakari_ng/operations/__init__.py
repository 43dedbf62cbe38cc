"""What the API can do, without HTTP and without SQL text: one class per noun."""

from masakari_ng.db.paging import Page
from masakari_ng.operations.hosts import Hosts
from masakari_ng.operations.notifications import Notifications
from masakari_ng.operations.segments import Segments
from masakari_ng.operations.vmoves import VMoves

__all__ = ["Hosts", "Notifications", "Page", "Segments", "VMoves"]
