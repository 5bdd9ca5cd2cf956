"""The scheduler interface on the wire: both layouts, the callbacks, and codecs between bytes and messages."""
