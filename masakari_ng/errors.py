"""Every exception that crosses a module boundary.

Texts that a client or a stored row shows are fixed here (Spec: data-model §6, rest-api, recovery).
"""


class MasakariError(Exception):
    """Ancestor of all; its text is shown to operators and never holds a secret.

    Args:
        about: the whole text, or what is filled into the `text` that the class is made with.
    """

    _text = "{}"

    def __init_subclass__(cls, text: str = "{}") -> None:
        cls._text = text

    def __init__(self, about: object) -> None:
        super().__init__(self._text.format(about))


# What an API client did wrong.
class Invalid(MasakariError):
    """The request cannot be understood or allowed; nothing was changed."""


class InvalidInput(Invalid, text="Invalid input received: {}"):
    """Text begins as upstream's."""


class ValidationError(Invalid):
    """A body does not match its schema."""


class MalformedRequest(Invalid):
    """A body is not JSON, or the project of the URL is not the caller's."""


class UnsupportedContentType(MasakariError):
    """The body is of a type that this API does not read."""

    def __init__(self) -> None:
        super().__init__("Unsupported Content-Type")


class InvalidMicroversion(Invalid):
    """The version header is no `X.Y`."""


class UnsupportedMicroversion(MasakariError):
    """The version is well-formed and out of range."""


class MethodNotAllowed(MasakariError):
    """The route exists, this action on it does not."""


class MarkerNotFound(Invalid, text="Marker {} could not be found."):
    """The page begins after a row that does not exist."""


class InvalidSortKey(Invalid, text="InvalidSortKey('Sort key supplied is invalid: {}')"):
    """Lists cannot be sorted by this key."""


class NotificationWithoutVMoves(Invalid, text="This notification {} without vm moves."):
    """Only host failures move instances."""


class InvalidFilter(Invalid):
    """A list cannot be filtered by this value."""


class Forbidden(MasakariError):
    """Policy, or Nova, refuses."""


# What is not there.
class NotFound(MasakariError):
    """Ancestor of all that could not be found."""


class ResourceNotFound(NotFound):
    """No more is known than that."""

    def __init__(self) -> None:
        super().__init__("The resource could not be found.")


class SegmentNotFound(NotFound, text="No failover segment with id {}."):
    """No live segment has this id or uuid."""


class HostNotFound(NotFound, text="No host with id {}."):
    """No live host has this id or uuid."""


class HostNotFoundUnderSegment(NotFound):
    """The host is not in this segment, or one of them does not exist."""

    def __init__(self, host: str, segment: str) -> None:
        super().__init__(f"Host '{host}' under failover_segment '{segment}' could not be found.")


class HostNotFoundByName(NotFound, text="Host with name {} could not be found."):
    """No live host has this name."""


class ComputeServiceNotFound(Invalid, text="Compute service with name {} could not be found."):
    """Nova has no compute service of this name."""


class NotificationNotFound(NotFound, text="No notification with id {}."):
    """No live notification has this uuid."""


class NotificationOfVMoveNotFound(MasakariError, text="No notification with id {}."):
    """Upstream answers 500, not 404, where a vmove is asked for below an unknown notification."""


class VMoveNotFound(NotFound, text="No vm move with id {}."):
    """No live vmove has this uuid."""


# What is in the way.
class Conflict(MasakariError):
    """The state of things does not allow it now."""


class SegmentExists(Conflict, text="Failover segment with name {} already exists."):
    """The name is taken by a live segment."""


class HostExists(Conflict, text="Host with name {} already exists."):
    """The name is taken by a live host of any segment."""


class SegmentInUse(Conflict):
    """A notification of one of its hosts is not finished."""

    def __init__(self, segment: str, change: str) -> None:
        super().__init__(
            f"Failover segment {segment} can't be {change} as it is in-use to process "
            "notifications."
        )


class HostInUse(Conflict):
    """A notification of a host of its segment is not finished."""

    def __init__(self, host: str, change: str) -> None:
        super().__init__(f"Host {host} can't be {change} as it is in-use to process notifications.")


class HostOnMaintenance(Conflict):
    """Reports of a host on maintenance are refused."""

    def __init__(self, host: str, kind: str) -> None:
        super().__init__(
            f"Notification received from host {host} of type '{kind}' is ignored as the host is "
            "already under maintenance."
        )


class DuplicateNotification(Conflict):
    """The same failure was reported already."""

    def __init__(self, host: str, kind: str) -> None:
        super().__init__(f"Notification received from host {host} of type {kind} is duplicate.")


# What failed around us.
class Interrupted(MasakariError):
    """Work cannot be brought to an end here; it is left as it is, for whoever takes it up."""


class DatabaseUnavailable(Interrupted):
    """No connection, or it was lost; the transaction did not happen as far as we know."""


class DatabaseDeadlock(Interrupted):
    """The database gave up this transaction in favour of another; repeating it may succeed."""


class DuplicateKey(MasakariError):
    """A unique key is taken; queries turn it into a class that says which."""


class MigrationRefused(MasakariError):
    """The tables are in a state from which they cannot be upgraded."""


class PurgeRefused(MasakariError):
    """Old rows cannot be removed because others refer to them."""


class BrokerUnavailable(MasakariError):
    """RabbitMQ did not take the message in time."""


class BrokerRefused(BrokerUnavailable):
    """RabbitMQ is there, but has no queue for the message, or one of another kind."""


class WorkflowDetailsUnavailable(MasakariError):
    """What the tasks of a recovery reported cannot be read."""


class NoAnswer(MasakariError):
    """No engine has answered in time."""


class RemoteFailure(MasakariError):
    """A call has failed in the engine."""


class SegmentDisabled(MasakariError):
    """The segment is not to be recovered; as in upstream, the text is never filled in."""

    def __init__(self, notification: str, kind: str) -> None:
        text = (
            "Notification %(notification_uuid)s of type: %(type)s is ignored, because the failover "
            "segment is disabled."
        )
        Exception.__init__(self, (text, {"notification_uuid": notification, "type": str(kind)}))


# What is wrong with a message of the bus. Its sender is told if it waits for an answer.
class BadMessage(MasakariError):
    """A message cannot be read; it is logged and dropped. Ancestor of the others."""


class UnsupportedVersion(BadMessage):
    """The peer speaks another version of the interface."""

    def __init__(self, version: object, method: object) -> None:
        super().__init__(
            f"Endpoint does not support RPC version {version}. Attempted method: {method}"
        )


class ShortVersion(BadMessage):
    """A version has no minor number."""


class UnknownMethod(BadMessage, text="Endpoint does not support RPC method {}"):
    """The engine has no such method."""


class WrongArguments(BadMessage):
    """A request does not have the arguments of its method."""


class NotAnObject(BadMessage):
    """A value is of another type than the one it has to be."""


class UnsupportedObject(BadMessage, text="Unsupported object type {}"):
    """There is no object of this name in this namespace."""

    def __init__(self, objtype: str) -> None:
        super().__init__(objtype)
        self.objtype = objtype


class IncompatibleObject(BadMessage):
    """The object is of a version that is not known here."""

    def __init__(self, objname: str, objver: object, supported: str) -> None:
        super().__init__(
            f"Version {objver} of {objname} is not supported, supported version is {supported}"
        )
        self.objname, self.objver, self.supported = objname, objver, supported


class ConfigurationError(MasakariError):
    """The service cannot start with these options."""


# What Nova or Keystone answered. Spec: recovery §9.1.
class CloudError(MasakariError):
    """Any failure of a Nova or Keystone request that has no class of its own."""


class CloudUnreachable(CloudError):
    """Refused, dropped or timed out; whether the request was carried out is not known."""


class CloudBadRequest(CloudError, text="Invalid input received: {}"):
    """400."""


class CloudForbidden(CloudError):
    """403."""


class CloudNotFound(CloudError):
    """404."""


class CloudConflict(CloudError):
    """409: the object is in a state that does not allow it."""


# How a recovery ends. Spec: recovery §5 to §7.
class WaitTimeout(MasakariError):
    """A condition did not come true in time."""


class Stopped(Interrupted):
    """The process has been asked to end; what was under way is left for a takeover."""


class ClaimLost(Interrupted):
    """Another engine has taken over; nothing of this recovery may be written any more."""


class RecoveryFailure(MasakariError):
    """A recovery did not reach its aim; the text is the reason."""


class HostRecoveryFailure(RecoveryFailure):
    """Not every instance of the host was moved."""


class ReservedHostsUnavailable(RecoveryFailure):
    """No reserved host is left to take the instances."""

    def __init__(self) -> None:
        super().__init__("No reserved_hosts available for evacuation.")


class InstanceEvacuateFailed(RecoveryFailure):
    """The instance went into error while it moved."""


class InstanceRecoveryFailure(RecoveryFailure):
    """The instance did not stop, or did not come back."""


class ProcessRecoveryFailure(RecoveryFailure):
    """Nova did not disable the service of the process."""


class LockAlreadyAcquired(MasakariError, text="Lock is already acquired on {}."):
    """Another recovery of this process fills this reserved host."""


class SkipHostRecovery(MasakariError):
    """Nothing to be done for this host; counts as success."""


class SkipInstanceRecovery(MasakariError):
    """The instance is not to be recovered; counts as success."""


class IgnoreInstanceRecovery(MasakariError):
    """The state of the instance is its user's wish."""


class DemoFailure(MasakariError):
    """A scene cannot be played to its end."""
