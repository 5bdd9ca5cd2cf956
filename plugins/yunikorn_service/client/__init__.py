"""Clients for resource managers in Python: `Client` for threads, `AsyncClient` for an event loop."""

try:
    from yunikorn_service.client.async_client import AsyncClient as AsyncClient
except ModuleNotFoundError as error:
    missing = (error.name or "").partition(".")[0]
    if missing not in ("grpc", "google"):
        raise
    raise ModuleNotFoundError(
        f"{missing} is not installed, which the client needs: pip install 'yunikorn[grpc]'", name=error.name
    ) from error
from yunikorn_service.client.blocking import Client as Client
from yunikorn_service.client.client_options import BY_SUBJECT as BY_SUBJECT
from yunikorn_service.client.client_options import ONE_STREAM as ONE_STREAM
from yunikorn_service.client.client_options import ClientOptions as ClientOptions
from yunikorn_service.client.client_options import ClientTls as ClientTls
from yunikorn_service.client.connection import CallFailed as CallFailed
from yunikorn_service.client.connection import ClientError as ClientError
from yunikorn_service.client.connection import ConnectionLost as ConnectionLost
from yunikorn_service.client.connection import Refused as Refused
from yunikorn_service.client.connection import TakenOver as TakenOver
