"""Protects the table from exceptions to statuses: every class of errors is in it, sensibly."""

import inspect
import logging
from dataclasses import replace

import pytest

from masakari_ng import errors
from masakari_ng.domain import Correction, NotificationStatus, NotificationType
from masakari_ng.engine import outcomes
from masakari_ng.engine.outcomes import Outcome

HOST = NotificationType.COMPUTE_HOST
ERROR, FINISHED = NotificationStatus.ERROR, NotificationStatus.FINISHED

SKIPPED = {errors.SkipHostRecovery, errors.SkipInstanceRecovery}


def instance(kind):
    parameters = inspect.signature(kind.__init__).parameters
    texts = [name for name in parameters if name not in {"self", "args", "kwargs"}]
    return kind(*texts) if texts else kind()


def all_errors():
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    return [kind for kind in kinds if issubclass(kind, Exception)]


@pytest.mark.parametrize("kind", [*all_errors(), KeyError, OSError, Exception])
def test_every_exception_has_an_outcome(kind):
    error = instance(kind)

    outcome = outcomes.of(error, "n-1", HOST)

    assert outcome.reason
    assert outcome.error is error
    outcome = replace(outcome, reason=None, error=None)
    if kind is errors.ClaimLost:
        assert outcome == Outcome(None)
    elif issubclass(kind, errors.Interrupted):
        assert outcome == Outcome(None, handed_over=True)
    elif kind in SKIPPED:
        assert outcome == Outcome(FINISHED)
    elif kind is errors.IgnoreInstanceRecovery:
        assert outcome == Outcome(NotificationStatus.IGNORED)
    else:
        assert outcome == Outcome(ERROR, str(error) if kind is errors.HostNotFound else None)


def test_table_names_no_class_twice_over():
    for kind, ending in outcomes.ENDINGS.items():
        ancestors = [kin for kin in kind.__mro__[1:] if kin in outcomes.ENDINGS]
        assert not ancestors or outcomes.ENDINGS[ancestors[0]] != ending


def test_expected_failure_is_logged_with_its_own_text(caplog):
    outcomes.of(errors.HostRecoveryFailure("2 of 3 moved"), "n-1", HOST)

    assert caplog.record_tuples[-1][1:] == (
        logging.ERROR,
        "Failed to process notification 'n-1'. Reason: 2 of 3 moved",
    )
    assert caplog.records[-1].exc_info is None


@pytest.mark.parametrize(
    ("kind", "flow"),
    [(HOST, "host"), (NotificationType.VM, "instance"), (NotificationType.PROCESS, "instance")],
)
@pytest.mark.parametrize("error", [errors.CloudUnreachable("refused"), OSError("refused")])
def test_only_a_fault_is_logged_with_its_traceback(caplog, kind, flow, error):
    outcomes.of(error, "n-1", kind)

    assert caplog.messages[-1] == (
        "Failed to process notification 'n-1'. Reason: "
        f"Failed to execute {flow} failure flow for notification 'n-1'. refused"
    )
    assert bool(caplog.records[-1].exc_info) is isinstance(error, OSError)


REAL = frozenset({Correction.ERROR_TEXTS})
MESSAGES = {
    "faults 86": (errors.ComputeServiceNotFound("c1"), "Compute service with name c1 could not be"),
    "a failure": (errors.HostRecoveryFailure("2 of 3 moved"), "2 of 3 moved"),
    "faults 97": (errors.IgnoreInstanceRecovery("it is paused"), "it is paused"),
    "nothing to do": (errors.SkipHostRecovery("nothing there"), "nothing there"),
    "a fault, whose text may hold anything": (KeyError("secret"), "Failed to execute host failure"),
}


@pytest.mark.parametrize(("error", "message"), MESSAGES.values(), ids=list(MESSAGES))
def test_message_tells_the_reason_where_that_is_corrected(error, message):
    assert outcomes.of(error, "n-1", HOST).message is None
    assert outcomes.of(error, "n-1", HOST, REAL).message.startswith(message)


def test_message_fits_its_column():
    message = outcomes.of(errors.HostRecoveryFailure("ü" * 65536), "n-1", HOST, REAL).message

    assert 1000 < len(message.encode()) < 65536


@pytest.mark.parametrize(("corrections", "flow"), [((), "instance"), (REAL, "process")])
def test_flow_of_a_process_is_called_so_where_that_is_corrected(corrections, flow):
    outcome = outcomes.of(KeyError("x"), "n-1", NotificationType.PROCESS, corrections)

    assert outcome.reason == f"Failed to execute {flow} failure flow for notification 'n-1'."
