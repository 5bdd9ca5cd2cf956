"""Translation of Kubernetes objects to messages of the scheduler interface, as pure functions.

The rules are those of the shim of Apache YuniKorn 1.9, unless a page of docs/decisions says otherwise.
"""
