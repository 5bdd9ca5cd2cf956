"""Credentials: kubeconfig files, exec plugins, rotated tokens of pods, and clear errors."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from yunikorn_kubernetes.api_server.api_credentials import (
    CredentialsError,
    InClusterCredentials,
    KubeconfigCredentials,
    find_credentials,
)

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")


def kubeconfig(path: Path, user: dict[str, Any], **cluster: Any) -> Path:
    """Write a kubeconfig with one context."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u", "namespace": "scheduling"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443/", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(content), "utf-8")
    return path


def plugin(path: Path, status: str) -> dict[str, Any]:
    """Write an exec plugin that counts its calls in a file, and return the user who names it."""
    path.write_text(
        f"""import json, os, pathlib
calls = pathlib.Path({str(path)!r}).with_suffix(".calls")
number = int(calls.read_text()) + 1 if calls.exists() else 1
calls.write_text(str(number))
assert json.loads(os.environ["KUBERNETES_EXEC_INFO"])["kind"] == "ExecCredential"
status = {status}
kind = {{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}}
print(json.dumps({{**kind, "status": status}}))
""",
        "utf-8",
    )
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": sys.executable, "args": [str(path)]}}


def test_a_token_in_a_kubeconfig(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", {"token": "abc"}, **{"tls-server-name": "kubernetes.default"})
    access = asyncio.run(KubeconfigCredentials(str(path)).load())
    assert access.url == "https://127.0.0.1:6443"
    assert access.authorization == "Bearer abc"
    assert access.namespace == "scheduling"
    assert access.server_name == "kubernetes.default"
    assert access.tls is not None
    assert access.tls.verify_mode is ssl.CERT_REQUIRED
    assert not access.tls.verify_flags & ssl.VERIFY_X509_STRICT
    assert "abc" not in repr(access)


def test_a_server_without_tls_or_without_a_check_of_its_certificate(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", {"username": "admin", "password": "geheim"})
    path.write_text(path.read_text("utf-8").replace("https:", "http:"), "utf-8")
    access = asyncio.run(KubeconfigCredentials(str(path)).load())
    assert access.tls is None
    assert access.authorization == "Basic YWRtaW46Z2VoZWlt"
    path = kubeconfig(tmp_path / "other", {}, **{"insecure-skip-tls-verify": True})
    access = asyncio.run(KubeconfigCredentials(str(path)).load())
    assert access.tls is not None
    assert access.tls.verify_mode is ssl.CERT_NONE
    assert access.authorization == ""


def test_files_beside_a_kubeconfig_are_read_again_when_they_change(tmp_path: Path) -> None:
    authority = trustme.CA()
    for number in (1, 2):
        issued = authority.issue_cert("client")
        issued.private_key_pem.write_to_path(tmp_path / f"key{number}.pem")
        issued.cert_chain_pems[0].write_to_path(tmp_path / f"cert{number}.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    (tmp_path / "token").write_text("one\n", "utf-8")
    for name in ("key", "cert"):
        (tmp_path / f"{name}.pem").write_bytes((tmp_path / f"{name}1.pem").read_bytes())
    user = {"tokenFile": "token", "client-certificate": "cert.pem", "client-key": "key.pem"}
    path = kubeconfig(tmp_path / "config", user, **{"certificate-authority": "ca.pem"})

    async def scenario() -> None:
        credentials = KubeconfigCredentials(str(path))
        first = await credentials.load()
        assert first.authorization == "Bearer one"
        assert (await credentials.load()).tls is first.tls
        (tmp_path / "token").write_text("two\n", "utf-8")
        for name in ("key", "cert"):
            (tmp_path / f"{name}.pem").write_bytes((tmp_path / f"{name}2.pem").read_bytes())
        second = await credentials.load()
        assert second.authorization == "Bearer two"
        assert second.tls is not first.tls
        kubeconfig(path, {"token": "three, in another file"})
        assert (await credentials.load()).authorization == "Bearer three, in another file"

    asyncio.run(scenario())


def test_certificates_in_the_text_of_a_kubeconfig(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("client")

    def text(pem: bytes) -> str:
        return base64.b64encode(pem).decode()

    user = {
        "client-certificate-data": text(issued.cert_chain_pems[0].bytes()),
        "client-key-data": text(issued.private_key_pem.bytes()),
    }
    cluster = {"certificate-authority-data": text(authority.cert_pem.bytes())}
    path = kubeconfig(tmp_path / "config", user, **cluster)
    access = asyncio.run(KubeconfigCredentials(str(path)).load())
    assert access.tls is not None
    assert len(access.tls.get_ca_certs()) == 1
    for data, message in (("no base64", "client-key-data is no base64"), ("", "unusable certificates")):
        path = kubeconfig(tmp_path / "config", {**user, "client-key-data": data}, **cluster)
        with pytest.raises(CredentialsError, match=message):
            asyncio.run(KubeconfigCredentials(str(path)).load())


def test_merged_kubeconfigs_and_another_context(tmp_path: Path) -> None:
    one = kubeconfig(tmp_path / "one", {"token": "abc"})
    other = {
        "contexts": [{"name": "other", "context": {"cluster": "c", "user": "v"}}],
        "users": [{"name": "v", "user": {"token": "xyz"}}],
    }
    two = tmp_path / "two"
    two.write_text(yaml.safe_dump(other), "utf-8")
    paths = os.pathsep.join([str(one), str(two), str(tmp_path / "none")])
    assert asyncio.run(KubeconfigCredentials(paths, "other").load()).authorization == "Bearer xyz"
    assert asyncio.run(KubeconfigCredentials(paths).load()).authorization == "Bearer abc"


def test_a_plugin_without_expiry_is_called_again_only_after_a_rejection(tmp_path: Path) -> None:
    user = plugin(tmp_path / "plugin.py", '{"token": f"token-{number}"}')
    path = kubeconfig(tmp_path / "config", user)

    async def scenario() -> None:
        credentials = KubeconfigCredentials(str(path))
        for _ in range(3):
            assert (await credentials.load()).authorization == "Bearer token-1"
        assert (await credentials.load(rejected=True)).authorization == "Bearer token-2"

    asyncio.run(scenario())


def test_a_plugin_whose_credentials_expire_is_called_again(tmp_path: Path) -> None:
    expiry = 'f"{2020 if number == 1 else 2100}-01-01T00:00:00Z"'
    status = '{"token": f"token-{number}", "expirationTimestamp": ' + expiry + "}"
    path = kubeconfig(tmp_path / "config", plugin(tmp_path / "plugin.py", status))

    async def scenario() -> None:
        credentials = KubeconfigCredentials(str(path))
        found = [(await credentials.load()).authorization for _ in range(4)]
        assert found == ["Bearer token-1", "Bearer token-2", "Bearer token-2", "Bearer token-2"]

    asyncio.run(scenario())


def test_a_plugin_may_return_a_client_certificate(tmp_path: Path) -> None:
    issued = trustme.CA().issue_cert("client")
    chain, key = issued.cert_chain_pems[0].bytes().decode(), issued.private_key_pem.bytes().decode()
    status = json.dumps({"clientCertificateData": chain, "clientKeyData": key})
    path = kubeconfig(tmp_path / "config", plugin(tmp_path / "plugin.py", status))
    access = asyncio.run(KubeconfigCredentials(str(path)).load())
    assert access.tls is not None
    assert access.authorization == ""


def test_a_plugin_that_fails_is_an_error_with_its_output(tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1"
    arguments = ["-c", "raise SystemExit('log in first')"]
    user = {"exec": {"apiVersion": version, "command": sys.executable, "args": arguments}}
    path = kubeconfig(tmp_path / "config", user)
    with pytest.raises(CredentialsError, match=r"user u: exec: process returned 1.*log in first"):
        asyncio.run(KubeconfigCredentials(str(path)).load())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "is no YAML"),
        ("[]", "has no clusters, users and contexts"),
        ("hello", "has no clusters, users and contexts"),
        ("", "has no clusters, users and contexts"),
        ("contexts: []\nclusters: []\nusers: []\n", "names no current context: .* it has none"),
        ("current-context: x\ncontexts: []\nclusters: []\nusers: []\n", "has no context 'x'; it has none"),
        ("current-context: x\ncontexts: [{name: y}, {name: z}]", "has no context 'x'; it has: y, z"),
        ("current-context: x\ncontexts: [{name: x}]", "has no cluster ''"),
        ("current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]", "has no user 'u'"),
        ("contexts: {x: y}", "contexts is no list"),
        ("users: [x]", "users has an entry without 'user'"),
        ("a: \x80", "is no YAML"),
    ],
)
def test_a_malformed_kubeconfig_is_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(text, "latin-1")
    with pytest.raises(CredentialsError, match=message) as caught:
        asyncio.run(KubeconfigCredentials(str(path)).load())
    assert str(path) in str(caught.value)


def test_unusable_certificates_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate", "utf-8")
    path = kubeconfig(tmp_path / "config", {}, **{"certificate-authority": "ca.pem"})
    with pytest.raises(CredentialsError, match=r"unusable certificates \(.*ca\.pem\)"):
        asyncio.run(KubeconfigCredentials(str(path)).load())
    path = kubeconfig(tmp_path / "config", {}, **{"certificate-authority": "none.pem"})
    with pytest.raises(CredentialsError, match=r"none\.pem"):
        asyncio.run(KubeconfigCredentials(str(path)).load())


# -- inside a cluster ------------------------------------------------------------------------------------


def mounted(folder: Path) -> dict[str, str]:
    """Write the credentials of a pod, and return its environment."""
    folder.mkdir()
    trustme.CA().cert_pem.write_to_path(folder / "ca.crt")
    (folder / "token").write_text("one\n", "utf-8")
    (folder / "namespace").write_text("scheduling\n", "utf-8")
    return {
        "KUBERNETES_SERVICE_HOST": "fd00::1",
        "KUBERNETES_SERVICE_PORT": "443",
        "HOME": str(folder.parent),
    }


def test_the_token_of_a_pod_is_read_again(tmp_path: Path) -> None:
    environment = mounted(tmp_path / "account")

    async def scenario() -> None:
        credentials = InClusterCredentials(environment, tmp_path / "account")
        access = await credentials.load()
        assert access.url == "https://[fd00::1]:443"
        assert access.authorization == "Bearer one"
        assert access.namespace == "scheduling"
        (tmp_path / "account" / "token").write_text("two", "utf-8")
        renewed = await credentials.load()
        assert renewed.authorization == "Bearer two"
        assert renewed.tls is access.tls
        (tmp_path / "account" / "token").write_text("", "utf-8")
        with pytest.raises(CredentialsError, match="the file token is empty"):
            await credentials.load()

    asyncio.run(scenario())


def test_credentials_are_found_in_the_order_of_other_clients(tmp_path: Path) -> None:
    folder = tmp_path / "account"
    in_pod = mounted(folder)
    outside = {"HOME": str(tmp_path)}
    (tmp_path / ".kube").mkdir()
    home = kubeconfig(tmp_path / ".kube" / "config", {"token": "home"})
    named = kubeconfig(tmp_path / "named", {"token": "named"})

    def token(kubeconfig: str = "", context: str = "", **environment: str) -> str:
        found = find_credentials(kubeconfig, context, environment=environment, folder=folder)
        return asyncio.run(found.load()).authorization.removeprefix("Bearer ")

    assert token(str(named), **in_pod) == "named"
    assert token(**in_pod, KUBECONFIG=str(named)) == "one"
    assert token(**in_pod, KUBECONFIG=str(named), context="test") == "named"
    assert token(**outside, KUBECONFIG=str(named)) == "named"
    assert token(**outside) == "home"
    home.unlink()
    with pytest.raises(CredentialsError, match=r"no credentials for a cluster: .* with --kubeconfig"):
        token(**outside)
    with pytest.raises(CredentialsError, match="kubeconfig none does not exist"):
        token("none")
    with pytest.raises(
        CredentialsError, match=r"kubeconfig none \(named by the variable KUBECONFIG\) does not"
    ):
        token(**outside, KUBECONFIG="none")
