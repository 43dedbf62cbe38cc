"""What can be asked about the moves of a host recovery. Spec: rest-api §14."""

from collections.abc import Mapping

from sqlalchemy.orm import Session

from masakari_ng import errors
from masakari_ng.db import notifications, vmoves
from masakari_ng.db.paging import Page
from masakari_ng.db.session import Database
from masakari_ng.domain import NotificationType, VMove


class VMoves:
    """Moves of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def listed(self, notification: str, page: Page, filters: Mapping[str, str]) -> list[VMove]:
        """One page of the moves of a notification, filtered by the text of `status`, `type`.

        Raises:
            NotificationNotFound: there is none.
            NotificationWithoutVMoves: it is not about a host.
        """
        return self._database.read(lambda session: _listed(session, notification, page, filters))

    def show(self, notification: str, uuid: str) -> VMove:
        """One move, of whichever notification.

        Raises:
            NotificationOfVMoveNotFound: there is no such notification.
            NotificationWithoutVMoves: it is not about a host.
            VMoveNotFound: there is no such move.
        """
        return self._database.read(lambda session: _shown(session, notification, uuid))


def _listed(
    session: Session, notification: str, page: Page, filters: Mapping[str, str]
) -> list[VMove]:
    _check_moves_instances(session, notification)
    return vmoves.listed(session, page, notification, **filters)


def _shown(session: Session, notification: str, uuid: str) -> VMove:
    try:
        _check_moves_instances(session, notification)
    except errors.NotificationNotFound:
        # It is logged with its traceback, where nobody quotes what a client has made up.
        raise errors.NotificationOfVMoveNotFound(ascii(notification)) from None
    return vmoves.by_uuid(session, uuid)


def _check_moves_instances(session: Session, notification: str) -> None:
    found = notifications.by_uuid(session, notification)
    if found.type != NotificationType.COMPUTE_HOST:
        raise errors.NotificationWithoutVMoves(notification)
