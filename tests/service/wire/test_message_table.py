"""Tables of codecs: rows by name and by type, and tables that do not fit their classes."""

from __future__ import annotations

from typing import Any

import pytest

from yunikorn.interface.messages import (
    Allocation,
    AllocationAsk,
    AllocationRelease,
    ForgotAllocation,
    RejectedNode,
    UpdateRequest,
)
from yunikorn_service.wire.generated import si_v0_11_pb2 as wire
from yunikorn_service.wire.message_table import ABSENT, Row, codec


def test_an_absent_attribute_is_left_out_and_decoded_as_its_default() -> None:
    forgotten = codec(ForgotAllocation, wire.AssumedAllocation, node_id=ABSENT)
    assert not forgotten.to_wire(ForgotAllocation("k", "n1")).nodeID
    assert forgotten.from_wire(wire.AssumedAllocation(allocationKey="k", nodeID="n1")) == ForgotAllocation(
        "k"
    )


def test_a_partial_table_has_its_entries_only() -> None:
    request = codec(UpdateRequest, wire.UpdateRequest, partial=True, rm_id="rmID")
    message = request.to_wire(UpdateRequest("rm", allocations=[Allocation("k", "app")]))
    assert not message.allocations
    assert request.from_wire(message) == UpdateRequest("rm")


@pytest.mark.parametrize(
    ("kind", "message", "rows", "reason"),
    [
        (RejectedNode, wire.RejectedNode, {"cause": "reason"}, "RejectedNode has no cause"),
        (RejectedNode, wire.RejectedNode, {"reason": "cause"}, "RejectedNode has no field cause"),
        (RejectedNode, wire.AcceptedNode, {}, "AcceptedNode has no field for reason"),
        (RejectedNode, wire.RejectedNode, {"reason": ABSENT}, "reason has neither a field nor a default"),
        (AllocationRelease, wire.AllocationRelease, {}, "termination_type needs a row"),
        (AllocationAsk, wire.AllocationAsk, {"priority": Row()}, "priority_class_name"),
    ],
)
def test_a_table_that_does_not_fit_is_an_error(kind: type, message: Any, rows: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        codec(kind, message, **rows)
