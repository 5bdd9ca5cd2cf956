"""Certificates with their keys, in TLS contexts, without a file system that can be written."""

from __future__ import annotations

import os
import ssl
import sys
import tempfile


def load_key_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Use a certificate with its key, both in PEM; raises `ssl.SSLError` if they cannot be used."""
    # The module ssl reads files only. A file in memory works where the file system is read-only.
    content = key + b"\n" + certificate
    if sys.platform == "linux":
        with open(os.memfd_create("certificate", os.MFD_CLOEXEC), "wb", buffering=0) as file:
            file.write(content)
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    else:
        with tempfile.NamedTemporaryFile() as temporary:
            temporary.write(content)
            temporary.flush()
            context.load_cert_chain(temporary.name)
