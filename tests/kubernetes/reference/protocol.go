package main

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// request is one line of input. A request with any object of a cluster replaces the whole cluster; a request with
// only a pod asks about the cluster of an earlier line.
type request struct {
	ID    any    `json:"id"`
	Phase string `json:"phase"`

	Pod *v1.Pod `json:"pod"`

	Devices   *deviceRequest   `json:"devices"`
	Selectors *selectorRequest `json:"selectors"`

	Nodes             []*v1.Node                      `json:"nodes"`
	Pods              []*v1.Pod                       `json:"pods"`
	Namespaces        []*v1.Namespace                 `json:"namespaces"`
	Volumes           []*v1.PersistentVolume          `json:"pvs"`
	Claims            []*v1.PersistentVolumeClaim     `json:"pvcs"`
	StorageClasses    []*storagev1.StorageClass       `json:"storageclasses"`
	CSINodes          []*storagev1.CSINode            `json:"csinodes"`
	CSIDrivers        []*storagev1.CSIDriver          `json:"csidrivers"`
	StorageCapacities []*storagev1.CSIStorageCapacity `json:"csistoragecapacities"`
	Attachments       []*storagev1.VolumeAttachment   `json:"volumeattachments"`
}

func (r *request) hasCluster() bool {
	return r.Nodes != nil || r.Pods != nil || r.Namespaces != nil || r.Volumes != nil || r.Claims != nil ||
		r.StorageClasses != nil || r.CSINodes != nil || r.CSIDrivers != nil || r.StorageCapacities != nil ||
		r.Attachments != nil
}

// response is one line of output.
type response struct {
	ID any `json:"id"`
	// Nodes has the refusals of each node, in the order of the plugins; none means that the node is feasible.
	Nodes map[string][]refusal `json:"nodes,omitempty"`
	// Devices has the answer of the device allocator for each node.
	Devices map[string]deviceAnswer `json:"devices,omitempty"`
	// Selectors has an answer for each expression.
	Selectors []selectorAnswer `json:"selectors,omitempty"`
	// Scores has the points of each node that is compared, by plugin, with the weights applied.
	Scores map[string]map[string]int64 `json:"scores,omitempty"`
	Error  string                      `json:"error,omitempty"`
}

// refusal is the answer of one plugin about one node, or about all nodes.
type refusal struct {
	Plugin  string `json:"plugin"`
	Message string `json:"message"`
	// Stage is PreFilter if the plugin refuses the pod on any node, else Filter.
	Stage string `json:"stage"`
	// Resolvable is true if preemption on the node might help.
	Resolvable bool `json:"resolvable"`
}
