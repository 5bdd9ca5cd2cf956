"""The scheduler interface: how a resource manager talks to the core, in process."""
