"""Nodes with their images, for clusters where the choice of a node depends on them."""

from __future__ import annotations

from sys import intern

from msgspec.structs import force_setattr

from yunikorn_kubernetes.objects import ApiStruct, Node, NodeStatus
from yunikorn_kubernetes.translation.compact_json import compact_json


class ContainerImage(ApiStruct, frozen=True):
    """Image on a node, under all its names."""

    names: tuple[str, ...] | None = None
    size_bytes: int = 0

    def __post_init__(self) -> None:
        # Most nodes have the same images.
        force_setattr(self, "names", tuple(map(intern, self.names or ())))


class NodeStatusWithImages(NodeStatus, frozen=True):
    """Observed state of a node, with its images."""

    images: tuple[ContainerImage, ...] | None = None


class NodeWithImages(Node, frozen=True):
    """Node with its images, which take much room."""

    status: NodeStatusWithImages = NodeStatusWithImages()


def images_text(node: Node) -> str:
    """Return the sizes of the images on a node by name, as compact JSON; an empty text if none are read."""
    if not isinstance(node, NodeWithImages):
        return ""
    images = node.status.images or ()
    return compact_json({name: image.size_bytes for image in images for name in image.names or ()})
