"""A client for resource managers in Python: `Client` for threads, `AsyncClient` for an event loop."""

from yunikorn.interface.client.aio import AsyncClient as AsyncClient
from yunikorn.interface.client.blocking import Client as Client
from yunikorn.interface.client.errors import CallFailed as CallFailed
from yunikorn.interface.client.errors import ClientError as ClientError
from yunikorn.interface.client.errors import ConnectionLost as ConnectionLost
from yunikorn.interface.client.errors import Refused as Refused
from yunikorn.interface.client.errors import TakenOver as TakenOver
from yunikorn.interface.client.layouts import BY_SUBJECT as BY_SUBJECT
from yunikorn.interface.client.layouts import ONE_STREAM as ONE_STREAM
from yunikorn.interface.client.options import Options as Options
from yunikorn.interface.client.options import Tls as Tls
