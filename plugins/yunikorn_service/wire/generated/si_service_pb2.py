"""The classes of proto/si_service.proto. Made by `python -m yunikorn_service.wire.compile_protos`."""

from yunikorn_service.wire.generated import si_current_pb2 as si_current_pb2
from yunikorn_service.wire.generated import si_v0_11_pb2 as si_v0_11_pb2
from yunikorn_service.wire.protocol import define

DESCRIPTOR = define(
    b'\n\x10si_service.proto\x12\x05si.v1\x1a\x10si_current.proto\x1a\x0esi_v0_11.proto2\xa5\x04\n\tSchedule'
    b'r\x12\x88\x01\n\x17RegisterResourceManager\x125.yunikorn.wire.current.RegisterResourceMa'
    b'nagerRequest\x1a6.yunikorn.wire.current.RegisterResourceManagerResponse\x12U\n\x06'
    b'Update\x12".yunikorn.wire.v0_11.UpdateRequest\x1a#.yunikorn.wire.v0_11.UpdateR'
    b'esponse(\x010\x01\x12k\n\x10UpdateAllocation\x12(.yunikorn.wire.current.AllocationReques'
    b't\x1a).yunikorn.wire.current.AllocationResponse(\x010\x01\x12n\n\x11UpdateApplication\x12).'
    b'yunikorn.wire.current.ApplicationRequest\x1a*.yunikorn.wire.current.Applica'
    b'tionResponse(\x010\x01\x12Y\n\nUpdateNode\x12".yunikorn.wire.current.NodeRequest\x1a#.yun'
    b'ikorn.wire.current.NodeResponse(\x010\x01b\x06proto3'
    , globals())
