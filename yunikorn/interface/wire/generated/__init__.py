"""The classes of the .proto files, made by `python -m yunikorn.interface.wire.build`; nothing here is edited."""
