"""Route of the metrics for Prometheus."""

from __future__ import annotations

from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.endpoints import Call, Route
from yunikorn_rest.metrics.families import CONTENT_TYPE
from yunikorn_service.runtime.threaded import CoreStopped

OFF = "metrics are off: start the service with --metrics on"


@Route("/ws/v1/metrics", errors=(404, 503), content_type="text/plain", is_unlimited=True)
async def metrics(call: Call) -> Answer:
    """Metrics in the text format of Prometheus.

    The answer is compressed like any other, and so only once.
    """
    source = call.context.metrics
    if source is None:
        raise RequestRefused(404, OFF)
    status = 500
    try:
        text = await source.scrape()
        status = 200
    except CoreStopped:
        status = 503
        raise
    finally:
        source.answered(status)
    return Answer(pieces=(text,), content_type=CONTENT_TYPE)


ENDPOINTS = (metrics,)
