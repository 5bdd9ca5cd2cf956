"""Change of a configuration: checked, saved by the resource manager, then used.

See docs/decisions/archive/0038.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.config.load import DEFAULT_TEXT
from yunikorn.errors import CallbackError, ConfigError
from yunikorn.interface.configurations import log_refusal
from yunikorn.interface.messages import UpdateConfigurationRequest, UpdateConfigurationResponse

if TYPE_CHECKING:
    from yunikorn.interface.configurations import LoadedAhead
    from yunikorn.interface.session import Session


def change_configuration(session: Session, text: str, loaded: LoadedAhead) -> UpdateConfigurationResponse:
    """Use another configuration if it is valid and the resource manager has saved it.

    A configuration that is invalid is never saved, and one that could not be saved is never used. The old
    text is saved again if the new one turns out to be unusable after it was saved: the resource manager may
    change its state from within the saving call. A text equal to the one in use changes nothing.
    """
    old = session.config.text
    text = text or DEFAULT_TEXT
    try:
        config = loaded.load(text, session.registry)
        if config.checksum == session.config.checksum:
            return UpdateConfigurationResponse(True, old)
        session.check(config)
    except ConfigError as error:
        log_refusal(session.label, error)
        return UpdateConfigurationResponse(False, old, f"the configuration cannot be used: {error}")
    reason = _save(session, text)
    if reason:
        return UpdateConfigurationResponse(False, old, f"the configuration was not saved: {reason}")
    try:
        session.reload(config)
    except ConfigError as error:
        log_refusal(session.label, error)
        again = _save(session, old)
        undone = f"; the previous configuration could not be saved again: {again}" if again else ""
        return UpdateConfigurationResponse(False, old, f"the configuration cannot be used: {error}{undone}")
    return UpdateConfigurationResponse(True, old)


def _save(session: Session, text: str) -> str:
    """Let the resource manager save a text if its callback supports this; return the reason of a failure."""
    callback_adapter = session.callback_adapter
    if "update_configuration" not in callback_adapter.methods:
        return ""
    if session.paused_state is not None:
        return f"{session.label} is paused ({session.paused_state.reason})"
    try:
        answer = callback_adapter.save_configuration(UpdateConfigurationRequest(text))
    except CallbackError as error:
        session.failures.report(callback_adapter.whose, error.operation, error)
        return str(error)
    return "" if answer.success else answer.reason or "the resource manager gave no reason"
