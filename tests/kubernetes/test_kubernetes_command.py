"""`yunikorn kubernetes`: errors of the call, of credentials and of missing packages, in one line each."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner, Result

from yunikorn_commands.command_group import group
from yunikorn_kubernetes.commands import kubernetes
from yunikorn_service.commands import serve


def call(*arguments: str, **environment: str) -> Result:
    """Run the command."""
    empty = {"KUBECONFIG": "", "KUBERNETES_SERVICE_HOST": "", "HOME": "/nonexistent", **environment}
    return CliRunner().invoke(group, ["kubernetes", *arguments], env=empty)


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    result = call("--kubeconfig", str(tmp_path / "none"), "--rest", "off")
    assert result.exit_code == 2
    assert str(tmp_path / "none") in result.output
    assert "Traceback" not in result.output


def test_no_credentials_at_all_are_an_error() -> None:
    result = call("--rest", "off")
    assert result.exit_code == 2
    assert "no credentials for a cluster" in result.output


def test_a_missing_package_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> ModuleType:
        raise ModuleNotFoundError("No module named 'aiohttp'", name="aiohttp")

    monkeypatch.setattr(kubernetes, "import_default", fail)
    result = call("--rest", "off")
    assert result.exit_code == 2
    assert "pip install 'yunikorn[kubernetes]'" in result.output


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    result = call("--config", str(tmp_path / "queues.yaml"), "--rest", "off")
    assert result.exit_code == 2
    assert "queues.yaml" in result.output


def test_a_limit_of_recordings_needs_a_recording() -> None:
    result = call("--record-size", "1Gi")
    assert result.exit_code == 2
    assert "needs --record FILE" in result.output


def test_options_shared_with_serve_are_all_there() -> None:
    of_serve, own = (
        {option.name for option in command.get_params(click.Context(command))}
        for command in (serve.command, kubernetes.command)
    )
    alone = {"configs", "watch", "allow_rm_config", "session_timeout", "demo"}
    of_grpc = {"address", "callback_timeout", "callback_default", "limits", "rm_identity"}
    assert of_serve - own == alone | of_grpc
