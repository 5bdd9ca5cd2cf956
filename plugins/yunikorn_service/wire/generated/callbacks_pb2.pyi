# Types of proto/callbacks.proto. Made by `python -m yunikorn_service.wire.compile_protos`.

from collections.abc import Iterable, Mapping
from typing import ClassVar

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
    ScalarMap,
)
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message

from yunikorn_service.wire.generated import si_v0_11_pb2 as si_v0_11_pb2

DESCRIPTOR: FileDescriptor
Capability: EnumTypeWrapper
CAPABILITY_UNSPECIFIED: int
PREDICATES: int
SCHEDULING_STATES: int
EVENTS: int
CACHE: int
CONFIGURATION: int

class FromResourceManager(Message):
    call: int
    @property
    def open(self) -> Open: ...
    @property
    def predicates(self) -> PredicatesResponse: ...
    @property
    def configuration(self) -> si_v0_11_pb2.UpdateConfigurationResponse: ...
    @property
    def failure(self) -> Failure: ...
    @property
    def update_configuration(self) -> si_v0_11_pb2.UpdateConfigurationRequest: ...
    @property
    def fail_application(self) -> FailApplication: ...
    def __init__(self, *, call: int = ..., open: Open | None = ..., predicates: PredicatesResponse | None = ..., configuration: si_v0_11_pb2.UpdateConfigurationResponse | None = ..., failure: Failure | None = ..., update_configuration: si_v0_11_pb2.UpdateConfigurationRequest | None = ..., fail_application: FailApplication | None = ...) -> None: ...

class FromScheduler(Message):
    call: int
    @property
    def opened(self) -> Opened: ...
    @property
    def predicates(self) -> PredicatesRequest: ...
    @property
    def configuration(self) -> si_v0_11_pb2.UpdateConfigurationRequest: ...
    @property
    def states(self) -> SchedulingStates: ...
    @property
    def events(self) -> Events: ...
    @property
    def cache(self) -> si_v0_11_pb2.ReSyncSchedulerCacheArgs: ...
    @property
    def configuration_updated(self) -> si_v0_11_pb2.UpdateConfigurationResponse: ...
    @property
    def done(self) -> Done: ...
    @property
    def failure(self) -> Failure: ...
    def __init__(self, *, call: int = ..., opened: Opened | None = ..., predicates: PredicatesRequest | None = ..., configuration: si_v0_11_pb2.UpdateConfigurationRequest | None = ..., states: SchedulingStates | None = ..., events: Events | None = ..., cache: si_v0_11_pb2.ReSyncSchedulerCacheArgs | None = ..., configuration_updated: si_v0_11_pb2.UpdateConfigurationResponse | None = ..., done: Done | None = ..., failure: Failure | None = ...) -> None: ...

class Open(Message):
    rm_id: str
    @property
    def capabilities(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(self, *, rm_id: str = ..., capabilities: Iterable[int] | None = ...) -> None: ...

class Opened(Message):
    timeout_milliseconds: int
    @property
    def capabilities(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(self, *, timeout_milliseconds: int = ..., capabilities: Iterable[int] | None = ...) -> None: ...

class PredicatesRequest(Message):
    allocation_key: str
    application_id: str
    @property
    def node_ids(self) -> RepeatedScalarFieldContainer[str]: ...
    allocate: bool
    def __init__(self, *, allocation_key: str = ..., application_id: str = ..., node_ids: Iterable[str] | None = ..., allocate: bool = ...) -> None: ...

class PredicatesResponse(Message):
    @property
    def refused(self) -> ScalarMap[str, str]: ...
    def __init__(self, *, refused: Mapping[str, str] | None = ...) -> None: ...

class SchedulingStates(Message):
    @property
    def states(self) -> RepeatedCompositeFieldContainer[si_v0_11_pb2.UpdateContainerSchedulingStateRequest]: ...
    def __init__(self, *, states: Iterable[si_v0_11_pb2.UpdateContainerSchedulingStateRequest] | None = ...) -> None: ...

class Events(Message):
    @property
    def events(self) -> RepeatedCompositeFieldContainer[si_v0_11_pb2.EventRecord]: ...
    def __init__(self, *, events: Iterable[si_v0_11_pb2.EventRecord] | None = ...) -> None: ...

class FailApplication(Message):
    application_id: str
    partition_name: str
    reason: str
    def __init__(self, *, application_id: str = ..., partition_name: str = ..., reason: str = ...) -> None: ...

class Done(Message):
    def __init__(self) -> None: ...

class Failure(Message):
    reason: str
    def __init__(self, *, reason: str = ...) -> None: ...
