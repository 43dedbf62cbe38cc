"""Protects the table from exceptions to answers: every class, and those that have none."""

import falcon
import pytest
import webob

from masakari_ng import errors
from masakari_ng.api import errors as faults

ANSWERS = {
    errors.InvalidInput("x"): (400, "badRequest", "Invalid input received: x"),
    errors.ValidationError("x"): (400, "badRequest", "x"),
    errors.MalformedRequest("x"): (400, "badRequest", "x"),
    errors.InvalidMicroversion("x"): (400, "badRequest", "x"),
    errors.InvalidFilter("x"): (400, "badRequest", "x"),
    errors.MarkerNotFound("7"): (400, "badRequest", "Marker 7 could not be found."),
    errors.InvalidSortKey("k"): (
        400,
        "badRequest",
        "InvalidSortKey('Sort key supplied is invalid: k')",
    ),
    errors.HostNotFoundByName("h"): (400, "badRequest", "Host with name h could not be found."),
    errors.ComputeServiceNotFound("h"): (
        400,
        "badRequest",
        "Compute service with name h could not be found.",
    ),
    errors.NotificationWithoutVMoves("n"): (
        400,
        "badRequest",
        "This notification n without vm moves.",
    ),
    errors.Forbidden("x"): (403, "forbidden", "x"),
    errors.CloudForbidden("x (HTTP 403)"): (403, "forbidden", "x (HTTP 403)"),
    errors.ResourceNotFound(): (404, "itemNotFound", "The resource could not be found."),
    errors.SegmentNotFound("s"): (404, "itemNotFound", "No failover segment with id s."),
    errors.HostNotFound("h"): (404, "itemNotFound", "No host with id h."),
    errors.NotificationNotFound("n"): (404, "itemNotFound", "No notification with id n."),
    errors.VMoveNotFound("v"): (404, "itemNotFound", "No vm move with id v."),
    errors.MethodNotAllowed("x"): (405, "badMethod", "x"),
    errors.UnsupportedMicroversion("x"): (406, "masakariFault", "x"),
    errors.SegmentExists("s"): (
        409,
        "conflictingRequest",
        "Failover segment with name s already exists.",
    ),
    errors.SegmentInUse("(s)", "deleted"): (
        409,
        "conflictingRequest",
        "Failover segment (s) can't be deleted as it is in-use to process notifications.",
    ),
    errors.HostInUse("h", "updated"): (
        409,
        "conflictingRequest",
        "Host h can't be updated as it is in-use to process notifications.",
    ),
    errors.UnsupportedContentType(): (415, "badMediaType", "Unsupported Content-Type"),
}

UNEXPECTED = [
    errors.CloudError("x"),
    errors.CloudConflict("x"),
    errors.CloudNotFound("x"),
    errors.CloudUnreachable("x"),
    errors.DatabaseUnavailable("x"),
    errors.DatabaseDeadlock("x"),
    errors.WorkflowDetailsUnavailable("x"),
    errors.NotificationOfVMoveNotFound("n"),
    ValueError("x"),
]


class Failing:
    """Raises what it is given."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        raise self._error


def answer_to(error: Exception) -> webob.Response:
    app = falcon.App()
    faults.register(app)
    app.add_route("/", Failing(error))
    return webob.Request.blank("/").get_response(app)


@pytest.mark.parametrize(("error", "expected"), ANSWERS.items(), ids=type)
def test_every_expected_error_has_its_answer(error: Exception, expected: tuple[int, str, str]):
    status, name, text = expected

    answer = answer_to(error)

    assert answer.status_int == status
    assert answer.headers["Content-Type"] == "application/json; charset=UTF-8"
    assert answer.json == {name: {"code": status, "message": text}}


@pytest.mark.parametrize("error", UNEXPECTED, ids=type)
def test_anything_else_is_an_unexpected_error_with_a_traceback_in_the_log(
    error: Exception, caplog: pytest.LogCaptureFixture
):
    answer = answer_to(error)

    assert answer.status_int == 500
    assert answer.json["masakariFault"]["message"].endswith(f"\n{type(error)}")
    assert "Traceback" in caplog.text


def test_what_a_client_sent_wrongly_is_not_in_the_log(client, segment, caplog):
    body = {"host": {"name": "c", "type": "COMPUTE", "control_attributes": "ipmi:\ts3cret"}}

    with caplog.at_level("DEBUG"):
        answer = client("POST", f"/v1/segments/{segment}/hosts", body)
        client("GET", "/v1/segments/a%0Ab")
        client("GET", "/v1/notifications/a%0Ab/vmoves/x")

    assert answer.status_code == 400
    assert "s3cret" not in caplog.text
    assert "a\nb" not in caplog.text
