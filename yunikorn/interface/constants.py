"""Names of attributes and tags in the scheduler interface, spelled as there.

Attributes of nodes and allocations start with `si/`. A tag of an allocation consists of a domain, optionally
a group, and a key, in this order: `DOMAIN_K8S + GROUP_META + KEY_NAMESPACE` is
`kubernetes.io/meta/namespace`. The last part of this module has the tags that this core interprets; each is
defined in the module that reads it.
"""

from __future__ import annotations

from typing import Final

from yunikorn.model.ask import REQUIRED_NODE_TAG as REQUIRED_NODE_TAG
from yunikorn.model.ask import TERMINATING_TAG as TERMINATING_TAG
from yunikorn.model.creation_times import CREATION_TAG as CREATION_TAG
from yunikorn.model.gang import CREATION_TAG as CREATION_TAG_OF_APPLICATION
from yunikorn.model.gang import GANG_STEP_TAG as GANG_STEP_TAG
from yunikorn.model.gang_topology import GANG_TOPOLOGY_TAG as GANG_TOPOLOGY_TAG
from yunikorn.scheduling.existing_allocations import FOREIGN_TAG as FOREIGN_TAG
from yunikorn.scheduling.partition_scheduler import NODE_SORT_TAG as NODE_SORT_TAG
from yunikorn.scheduling.placement import APPS_TAG as NAMESPACE_MAX_APPS_TAG
from yunikorn.scheduling.placement import GUARANTEED_TAG as NAMESPACE_GUARANTEED_TAG
from yunikorn.scheduling.placement import MAX_TAG as NAMESPACE_QUOTA_TAG
from yunikorn.scheduling.user_groups import FORCE_TAG as FORCE_TAG

# -- attributes of nodes -------------------------------------------------------------------------------

ARCH: Final = "si/arch"
HOST_NAME: Final = "si/hostname"
RACK_NAME: Final = "si/rackname"
OS: Final = "si/os"
INSTANCE_TYPE: Final = "si/instance-type"
FAILURE_DOMAIN_ZONE: Final = "si/zone"
FAILURE_DOMAIN_REGION: Final = "si/region"
LOCAL_IMAGES: Final = "si/local-images"
NODE_PARTITION: Final = "si/node-partition"
"""Partition of a node; `default` where the attribute is missing."""

# -- attributes of allocations -------------------------------------------------------------------------

APPLICATION_ID: Final = "si/application-id"
CONTAINER_IMAGE: Final = "si/container-image"
CONTAINER_PORTS: Final = "si/container-ports"

# -- tags of allocations -------------------------------------------------------------------------------

DOMAIN_K8S: Final = "kubernetes.io/"
DOMAIN_YUNIKORN: Final = "yunikorn.apache.org/"

GROUP_META: Final = "meta/"
GROUP_LABEL: Final = "label/"
GROUP_ANNOTATION: Final = "annotation/"

KEY_POD_NAME: Final = "podName"
KEY_NAMESPACE: Final = "namespace"

# -- what this core understands ------------------------------------------------------------------------

DEFAULT_PARTITION: Final = "default"
"""Partition of entries that name none."""

TAGS_OF_APPLICATIONS: Final = (
    FORCE_TAG,
    NAMESPACE_QUOTA_TAG,
    NAMESPACE_GUARANTEED_TAG,
    NAMESPACE_MAX_APPS_TAG,
    CREATION_TAG_OF_APPLICATION,
    NODE_SORT_TAG,
    GANG_TOPOLOGY_TAG,
    GANG_STEP_TAG,
)
"""Tags of an application that the core interprets; placement rules may read any other."""

TAGS_OF_ALLOCATIONS: Final = (CREATION_TAG, FOREIGN_TAG, REQUIRED_NODE_TAG, TERMINATING_TAG)
"""Tags of an ask or allocation that the core interprets; predicates may read any other."""
