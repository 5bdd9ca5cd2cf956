"""Clients for resource managers in Python: `Client` for threads, `AsyncClient` for an event loop."""

try:
    from yunikorn.interface.client.async_client import AsyncClient as AsyncClient
except ModuleNotFoundError as error:
    missing = (error.name or "").partition(".")[0]
    if missing not in ("grpc", "google"):
        raise
    raise ModuleNotFoundError(
        f"{missing} is not installed, which the client needs: pip install 'yunikorn[grpc]'", name=error.name
    ) from error
from yunikorn.interface.client.blocking import Client as Client
from yunikorn.interface.client.client_errors import CallFailed as CallFailed
from yunikorn.interface.client.client_errors import ClientError as ClientError
from yunikorn.interface.client.client_errors import ConnectionLost as ConnectionLost
from yunikorn.interface.client.client_errors import Refused as Refused
from yunikorn.interface.client.client_errors import TakenOver as TakenOver
from yunikorn.interface.client.layouts import BY_SUBJECT as BY_SUBJECT
from yunikorn.interface.client.layouts import ONE_STREAM as ONE_STREAM
from yunikorn.interface.client.options import ClientOptions as ClientOptions
from yunikorn.interface.client.options import ClientTls as ClientTls
