"""Protects the table from exceptions to statuses: every class of errors is in it, sensibly."""

import inspect
import logging
from dataclasses import replace

import pytest

from masakari_ng import errors
from masakari_ng.domain import NotificationStatus, NotificationType
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
    outcome = replace(outcome, reason=None)
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
def test_unexpected_failure_is_logged_with_its_traceback(caplog, kind, flow):
    outcomes.of(errors.CloudUnreachable("refused"), "n-1", kind)

    assert caplog.messages[-1] == (
        "Failed to process notification 'n-1'. Reason: "
        f"Failed to execute {flow} failure flow for notification 'n-1'."
    )
    assert "refused" in caplog.text
