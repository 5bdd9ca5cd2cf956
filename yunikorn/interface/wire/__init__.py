"""The scheduler interface on the wire: both layouts, the callbacks, and how messages get there and back."""
