"""Claims to devices in the shim: what pods wait for, what the core is told, and what is written."""
