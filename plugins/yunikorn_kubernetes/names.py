"""Names of labels, annotations, tags and node attributes that the shim and its predicates share.

The names of pods, namespaces and ConfigMaps are those of Apache YuniKorn 1.9, so that workloads need no
change. Tags and attributes marked as *ours* do not occur there: they carry what a predicate needs to know
of a pod or a node into the core. The module imports nothing, because predicates import it.
"""

SCHEDULER_NAME = "yunikorn"
"""Value of `spec.schedulerName` of the pods that this scheduler places."""

POD_PREFERENCES = "pod-preferences"
"""Name of the node sort policy that counts what pods prefer."""

# -- labels and annotations of pods ----------------------------------------------------------------------

APP_ID = "yunikorn.apache.org/app-id"
"""Label or annotation: id of the pod's application."""
APP_ID_LABEL_OLD = "applicationId"
APP_ID_LABEL_SPARK = "spark-app-selector"
QUEUE = "yunikorn.apache.org/queue"
"""Label or annotation: queue of the pod's application."""
QUEUE_LABEL_OLD = "queue"
USER_INFO = "yunikorn.apache.org/user.info"
"""Annotation: JSON `{"user": "jane", "groups": ["staff"]}` that the admission controller writes."""
TASK_GROUP_NAME = "yunikorn.apache.org/task-group-name"
"""Annotation: task group that the pod belongs to."""
TASK_GROUPS = "yunikorn.apache.org/task-groups"
"""Annotation: JSON list of the task groups of the application; also the tag of the application."""
GANG_TOPOLOGY = "yunikorn.apache.org/gang-topology"
"""Annotation: requirements of the gang on the topology; also the tag of the application."""
GANG_STEP = "yunikorn.apache.org/gang-step"
"""Annotation: number of members by which the gang grows; also the tag of the application."""
SCHEDULING_POLICY_PARAMETERS = "yunikorn.apache.org/schedulingPolicyParameters"
"""Annotation: gang scheduling parameters, `NAME=VALUE NAME=VALUE`; also the tag of the application."""
PLACEHOLDER = "internal.yunikorn.apache.org/placeholder"
"""Annotation: "true" on placeholder pods."""
ALLOW_PREEMPTION = "yunikorn.apache.org/allow-preemption"
"""Annotation of pods and of priority classes: "false" excludes the pod from the victims of preemption."""

WORKLOAD_GANG = "yunikorn.apache.org/workload-gang"
"""Ours, annotation of pods: "false" for a pod whose gang must not be taken from its owner."""
KUEUE = "kueue.x-k8s.io/"
"""Prefix of labels of pods that Kueue admits."""
LEADER = "yunikorn.apache.org/leader"
"""Label of the pod of the scheduler that leads, by which its service selects it."""
UNIQUE_SUFFIX = "-uniqueautogen"
"""End of an application id that is replaced by the uid of the pod."""

# -- annotations of namespaces ---------------------------------------------------------------------------

NAMESPACE_QUOTA = "yunikorn.apache.org/namespace.quota"
NAMESPACE_GUARANTEED = "yunikorn.apache.org/namespace.guaranteed"
NAMESPACE_MAX_APPS = "yunikorn.apache.org/namespace.maxApps"
NAMESPACE_PARENT_QUEUE = "yunikorn.apache.org/parentqueue"
NAMESPACE_MAX_CPU_OLD = "yunikorn.apache.org/namespace.max.cpu"
NAMESPACE_MAX_MEMORY_OLD = "yunikorn.apache.org/namespace.max.memory"
NAMESPACE_WORKLOAD_KINDS = "yunikorn.apache.org/namespace.workloadKinds"
"""Ours: kinds of work that are recognised in the namespace, instead of those of the settings."""
NAMESPACE_ENABLE = "yunikorn.apache.org/namespace.enableYuniKorn"
"""Annotation for the admission controller: "true" or "false" overrides its namespace filters."""
NAMESPACE_GENERATE_APP_ID = "yunikorn.apache.org/namespace.generateAppId"
"""Annotation for the admission controller: "true" or "false" overrides its label filters."""

# -- tags of applications --------------------------------------------------------------------------------

APP_TAG_NAMESPACE = "namespace"
APP_TAG_FORCE = "application.create.force"
APP_TAG_PULL_SECRETS = "imagePullSecrets"
APP_TAG_CREATION_TIME = "yunikorn.apache.org/creationTime"
APP_TAG_QUOTA = "namespace.resourcequota"
APP_TAG_GUARANTEED = "namespace.resourceguaranteed"
APP_TAG_MAX_APPS = "namespace.resourcemaxapps"
APP_TAG_PARENT_QUEUE = "namespace.parentqueue"
APP_TAG_WORKLOAD = "yunikorn.apache.org/workload"
"""Ours: owner of the pods and the gang that was seen, as a text for people."""

# -- tags of asks and allocations ------------------------------------------------------------------------

TAG_NAMESPACE = "kubernetes.io/meta/namespace"
TAG_POD_NAME = "kubernetes.io/meta/podName"
TAG_LABEL = "kubernetes.io/label/"
"""Prefix of the tags with the labels of the pod."""
TAG_CREATION_TIME = "creationTime"
RUN_TIME_LIMIT = "yunikorn.apache.org/run-time-limit"
"""Tag, and annotation of pods, with the longest time that a pod may run."""
TAG_REQUIRED_NODE = "yunikorn.apache.org/requiredNode"
TAG_FOREIGN = "foreign"
FOREIGN_STATIC = "static"
FOREIGN_DEFAULT = "default"
TAG_CONSTRAINTS = "yunikorn.apache.org/pod-constraints"
"""Ours: compact JSON of what restricts the nodes of the pod; absent if nothing does."""
TAG_PREFERENCES = "yunikorn.apache.org/pod-preferences"
"""Ours: compact JSON of what the pod prefers about its node; absent if nothing."""
TAG_NAMESPACE_LABELS = "yunikorn.apache.org/namespace-labels"
"""Ours: compact JSON of the labels of the pod's namespace; absent if there are none."""
TAG_VOLUMES = "yunikorn.apache.org/pod-volumes"
"""Ours: compact JSON of the claims and volumes of the pod; absent if none matters."""
TAG_VOLUME_CANDIDATES = "yunikorn.apache.org/volume-candidates"
"""Ours: compact JSON of the free volumes of more than one host that the pod's claims may get; absent if none.
One text for all pods whose claims have the same storage classes."""
TAG_CLAIMS = "yunikorn.apache.org/resource-claims"
"""Ours: compact JSON of the resource claims of the pod and of their device classes; absent if there are none.
One text for all pods whose claims come from equal templates."""
TAG_DEVICES = "yunikorn.apache.org/device-allocations"
"""Ours, of allocations: compact JSON list of `{"podClaim": NAME, "claim": {namespace, name, uid},
"allocation": ALLOCATION}` with the devices of the pod; without `claim` for one from a template for this pod
alone."""
TAG_TERMINATING = "yunikorn.apache.org/terminating"
"""Ours: "true" once the pod is being deleted."""

# -- keys of the JSON in `TAG_CONSTRAINTS` ---------------------------------------------------------------

NODE_SELECTOR = "nodeSelector"
NODE_AFFINITY = "nodeAffinity"
TOLERATIONS = "tolerations"
HOST_PORTS = "hostPorts"
TOPOLOGY_SPREAD = "topologySpread"
POD_AFFINITY = "podAffinity"
POD_ANTI_AFFINITY = "podAntiAffinity"
RESOURCE_CLAIMS = "resourceClaims"

# -- keys of the JSON in `TAG_PREFERENCES`, besides those above ------------------------------------------

IMAGES = "images"
"""Images of the containers and of image volumes, each as often as it occurs."""
CONTAINERS = "containers"
"""Number of containers and init containers; only with images."""

# -- attributes of nodes ---------------------------------------------------------------------------------

NODE_HOSTNAME = "si.io/hostname"
NODE_RACK = "si.io/rackname"
DEFAULT_RACK = "/rack-default"
NODE_INSTANCE_TYPE = "si/instance-type"
NODE_ZONE = "si/zone"
NODE_REGION = "si/region"
NODE_TAINTS = "yunikorn.apache.org/taints"
"""Ours: compact JSON list of the taints with effect NoSchedule or NoExecute; absent if there are none."""
NODE_SOFT_TAINTS = "yunikorn.apache.org/preferred-taints"
"""Ours: compact JSON list of the taints with effect PreferNoSchedule; absent if there are none."""
NODE_IMAGES = "yunikorn.apache.org/images"
"""Ours: compact JSON map from the names of the images on the node to their sizes in bytes."""
NODE_UNSCHEDULABLE = "yunikorn.apache.org/unschedulable"
"""Ours: "true" if `spec.unschedulable` is set."""
NODE_VOLUME_LIMITS = "yunikorn.apache.org/volume-limits"
"""Ours: compact JSON map from a CSI driver to the number of its volumes that the node can attach."""

NODE_FREE_VOLUMES = "yunikorn.apache.org/free-volumes"
"""Ours: compact JSON of the free volumes of the node's host, such as local disks; absent if there are
none."""
NODE_STORAGE_CAPACITY = "yunikorn.apache.org/storage-capacity"
"""Ours: compact JSON map from a storage class to the size of the largest volume that it can make here."""
NODE_VOLUME_ATTACHMENTS = "yunikorn.apache.org/volume-attachments"
"""Ours: compact JSON map from a CSI driver to the handles of its volumes that are attached to the node."""
NODE_MIGRATED_PLUGINS = "yunikorn.apache.org/migrated-plugins"
"""Ours: comma-separated in-tree volume plugins that a CSI driver serves on the node."""
NODE_SLICES = "yunikorn.apache.org/resource-slices"
"""Ours: compact JSON list of the ResourceSlices of pools that only this node can use; absent if empty."""
NODE_SHARED_SLICES = "yunikorn.apache.org/shared-resource-slices"
"""Ours: compact JSON list of the ResourceSlices of pools that other nodes can use as well."""
NODE_CLAIMED_DEVICES = "yunikorn.apache.org/claimed-devices"
"""Ours: compact JSON list, as in `TAG_DEVICES`, of allocated claims to these pools that no pod consumes."""

# -- well-known labels of nodes --------------------------------------------------------------------------

LABEL_HOSTNAME = "kubernetes.io/hostname"
LABEL_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
LABEL_INSTANCE_TYPE_OLD = "beta.kubernetes.io/instance-type"
LABEL_ZONE = "topology.kubernetes.io/zone"
LABEL_ZONE_OLD = "failure-domain.beta.kubernetes.io/zone"
LABEL_REGION = "topology.kubernetes.io/region"
LABEL_REGION_OLD = "failure-domain.beta.kubernetes.io/region"
