"""Constants of the scheduler interface, compared with the published specification."""

from __future__ import annotations

import re

import pytest

from tests.core.kit import RM
from yunikorn.interface import constants

SPEC = """
ARCH                = "si/arch"
HostName            = "si/hostname"
RackName            = "si/rackname"
OS                  = "si/os"
InstanceType        = "si/instance-type"
FailureDomainZone   = "si/zone"
FailureDomainRegion = "si/region"
LocalImages         = "si/local-images"
NodePartition       = "si/node-partition"
ApplicationID       = "si/application-id"
ContainerImage      = "si/container-image"
ContainerPorts      = "si/container-ports"
DomainK8s           = "kubernetes.io/"
DomainYuniKorn      = "yunikorn.apache.org/"
GroupMeta           = "meta/"
GroupLabel          = "label/"
GroupAnnotation     = "annotation/"
KeyPodName          = "podName"
KeyNamespace        = "namespace"
"""


def python_name(name: str) -> str:
    """Return `FAILURE_DOMAIN_ZONE` for `FailureDomainZone`."""
    whole = name.replace("YuniKorn", "Yunikorn").replace("ID", "Id")
    return whole if whole.isupper() else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", whole).upper()


@pytest.mark.parametrize(("name", "value"), re.findall(r'^(\w+) += "(.*)"$', SPEC, re.MULTILINE))
def test_every_constant_of_the_specification_is_there(name: str, value: str) -> None:
    assert getattr(constants, python_name(name)) == value


def test_node_partition_attribute_is_used() -> None:
    rm = RM()
    rm.node("n1", {constants.NODE_PARTITION: "gone"}, vcore=1)
    assert [one.reason for one in rm.entries("rejected_nodes")] == ["failed to find partition gone"]


def test_a_tag_is_domain_group_and_key() -> None:
    tag = constants.DOMAIN_K8S + constants.GROUP_META + constants.KEY_NAMESPACE
    assert tag == "kubernetes.io/meta/namespace"
    assert constants.REQUIRED_NODE_TAG == constants.DOMAIN_YUNIKORN + "requiredNode"
