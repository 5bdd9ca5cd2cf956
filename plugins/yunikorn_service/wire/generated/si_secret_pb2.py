"""The classes of proto/si_secret.proto. Made by `python -m yunikorn_service.wire.compile_protos`."""

from yunikorn_service.wire.protocol import define

DESCRIPTOR = define(
    b'\n\x0fsi_secret.proto\x12\ryunikorn.wire\x1a google/protobuf/descriptor.proto:;\n\tsi'
    b'_secret\x12\x1d.google.protobuf.FieldOptions\x18\xa3\x08 \x01(\x08R\x08siSecretb\x06proto3'
    , globals())
