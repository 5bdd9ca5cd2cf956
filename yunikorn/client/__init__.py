"""Clients for resource managers in Python: `Client` for threads, `AsyncClient` for an event loop."""

try:
    from yunikorn.client.async_client import AsyncClient as AsyncClient
except ModuleNotFoundError as error:
    missing = (error.name or "").partition(".")[0]
    if missing not in ("grpc", "google"):
        raise
    raise ModuleNotFoundError(
        f"{missing} is not installed, which the client needs: pip install 'yunikorn[grpc]'", name=error.name
    ) from error
from yunikorn.client.blocking import Client as Client
from yunikorn.client.client_errors import CallFailed as CallFailed
from yunikorn.client.client_errors import ClientError as ClientError
from yunikorn.client.client_errors import ConnectionLost as ConnectionLost
from yunikorn.client.client_errors import Refused as Refused
from yunikorn.client.client_errors import TakenOver as TakenOver
from yunikorn.client.layouts import BY_SUBJECT as BY_SUBJECT
from yunikorn.client.layouts import ONE_STREAM as ONE_STREAM
from yunikorn.client.options import ClientOptions as ClientOptions
from yunikorn.client.options import ClientTls as ClientTls
