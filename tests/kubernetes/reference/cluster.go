package main

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// filters are the plugins that are asked, in the order of kube-scheduler's default profile.
var filters = []string{
	names.NodeUnschedulable,
	names.NodeName,
	names.TaintToleration,
	names.NodeAffinity,
	names.NodePorts,
	names.NodeResourcesFit,
	names.VolumeRestrictions,
	names.NodeVolumeLimits,
	names.VolumeBinding,
	names.VolumeZone,
	names.PodTopologySpread,
	names.InterPodAffinity,
}

// notReserving are the plugins that are not asked when a node is only reserved.
var notReserving = map[string]bool{
	names.NodeResourcesFit:   true,
	names.VolumeRestrictions: true,
	names.NodeVolumeLimits:   true,
	names.VolumeBinding:      true,
	names.VolumeZone:         true,
}

// standing are the filters whose refusals only a change of the node ends; the nodes that pass them are compared.
var standing = map[string]bool{
	names.NodeUnschedulable: true,
	names.NodeName:          true,
	names.TaintToleration:   true,
	names.NodeAffinity:      true,
}

// scorers are the plugins that rate nodes by what pods prefer.
var scorers = []string{
	names.TaintToleration,
	names.NodeAffinity,
	names.PodTopologySpread,
	names.InterPodAffinity,
	names.ImageLocality,
}

// cluster is a snapshot with the plugins that look at it.
type cluster struct {
	nodes   []fwk.NodeInfo
	plugins []fwk.Plugin
	scoring []weighted
}

// weighted is a scoring plugin with its weight in the default profile.
type weighted struct {
	fwk.ScorePlugin
	weight int64
}

func newCluster(ctx context.Context, asked *request) (*cluster, error) {
	factory := newFactory()
	if err := fill(factory, asked); err != nil {
		return nil, err
	}
	var bound []*v1.Pod
	for _, pod := range asked.Pods {
		ended := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
		if pod.Spec.NodeName != "" && !ended {
			bound = append(bound, pod)
		}
	}
	snapshot := cache.NewSnapshot(bound, asked.Nodes)
	handle, err := frameworkruntime.NewFramework(ctx, nil, nil,
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithSharedCSIManager(
			nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithParallelism(1),
	)
	if err != nil {
		return nil, err
	}
	made := &cluster{}
	if made.nodes, err = snapshot.NodeInfos().List(); err != nil {
		return nil, err
	}
	made.plugins, made.scoring, err = newPlugins(ctx, handle)
	return made, err
}

// fill puts the objects into the informers, with the defaults that the API server sets.
func fill(factory *factory, asked *request) error {
	var all []runtime.Object
	for _, obj := range asked.Nodes {
		all = append(all, obj)
	}
	for number, obj := range asked.Pods {
		identify(obj, fmt.Sprintf("pod-%d", number))
		all = append(all, obj)
	}
	for _, obj := range asked.Namespaces {
		all = append(all, obj)
	}
	for _, obj := range asked.Volumes {
		all = append(all, obj)
	}
	for number, obj := range asked.Claims {
		if obj.UID == "" {
			obj.UID = types.UID(fmt.Sprintf("claim-%d", number))
		}
		if obj.Namespace == "" {
			obj.Namespace = v1.NamespaceDefault
		}
		all = append(all, obj)
	}
	for _, obj := range asked.StorageClasses {
		all = append(all, obj)
	}
	for _, obj := range asked.CSINodes {
		all = append(all, obj)
	}
	for _, obj := range asked.CSIDrivers {
		all = append(all, obj)
	}
	for _, obj := range asked.StorageCapacities {
		all = append(all, obj)
	}
	for _, obj := range asked.Attachments {
		all = append(all, obj)
	}
	for _, obj := range all {
		legacyscheme.Scheme.Default(obj)
		if err := factory.add(obj); err != nil {
			return err
		}
	}
	return nil
}

// identify gives a pod the namespace and the uid that the API server would give; plugins compare them.
func identify(pod *v1.Pod, uid string) {
	if pod.Namespace == "" {
		pod.Namespace = v1.NamespaceDefault
	}
	if pod.UID == "" {
		pod.UID = types.UID(uid)
	}
}

func newPlugins(ctx context.Context, handle fwk.Handle) ([]fwk.Plugin, []weighted, error) {
	config, err := latest.Default()
	if err != nil {
		return nil, nil, err
	}
	arguments := map[string]runtime.Object{}
	for _, one := range config.Profiles[0].PluginConfig {
		arguments[one.Name] = one.Args
	}
	registry := plugins.NewInTreeRegistry()
	var made []fwk.Plugin
	for _, name := range filters {
		plugin, err := registry[name](ctx, arguments[name], handle)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		made = append(made, plugin)
	}
	weights := map[string]int64{}
	for _, one := range config.Profiles[0].Plugins.MultiPoint.Enabled {
		weights[one.Name] = int64(one.Weight)
	}
	var scoring []weighted
	for _, name := range scorers {
		plugin, err := registry[name](ctx, arguments[name], handle)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		scoring = append(scoring, weighted{plugin.(fwk.ScorePlugin), weights[name]})
	}
	return made, scoring, nil
}

// scores returns the points of the nodes that pass the standing filters. A plugin that skips the pod gives none.
func (c *cluster) scores(ctx context.Context, pod *v1.Pod) (map[string]map[string]int64, error) {
	refused, err := c.verdicts(ctx, pod, "score")
	if err != nil {
		return nil, err
	}
	var compared []fwk.NodeInfo
	found := map[string]map[string]int64{}
	for _, node := range c.nodes {
		if len(refused[node.Node().Name]) == 0 {
			compared = append(compared, node)
			found[node.Node().Name] = map[string]int64{}
		}
	}
	state := framework.NewCycleState()
	for _, plugin := range c.scoring {
		if first, ok := plugin.ScorePlugin.(fwk.PreScorePlugin); ok {
			status := first.PreScore(ctx, state, pod, compared)
			if status.IsSkip() {
				continue
			}
			if !status.IsSuccess() {
				return nil, fmt.Errorf("%s: %w", plugin.Name(), status.AsError())
			}
		}
		scores := make(fwk.NodeScoreList, len(compared))
		for number, node := range compared {
			score, status := plugin.Score(ctx, state, pod, node)
			if !status.IsSuccess() {
				return nil, fmt.Errorf("%s: %w", plugin.Name(), status.AsError())
			}
			scores[number] = fwk.NodeScore{Name: node.Node().Name, Score: score}
		}
		if extensions := plugin.ScoreExtensions(); extensions != nil {
			if status := extensions.NormalizeScore(ctx, state, pod, scores); !status.IsSuccess() {
				return nil, fmt.Errorf("%s: %w", plugin.Name(), status.AsError())
			}
		}
		for _, one := range scores {
			found[one.Name][plugin.Name()] = one.Score * plugin.weight
		}
	}
	return found, nil
}

// verdicts returns the refusals of each node. A plugin whose PreFilter refuses the pod is first for all nodes, because
// all PreFilters run before any Filter.
func (c *cluster) verdicts(ctx context.Context, pod *v1.Pod, phase string) (map[string][]refusal, error) {
	legacyscheme.Scheme.Default(pod)
	identify(pod, "asked")
	state := framework.NewCycleState()
	var everywhere []refusal
	var asked []fwk.FilterPlugin
	eligible := map[string]*fwk.PreFilterResult{}
	for _, plugin := range c.plugins {
		if phase == "reserve" && notReserving[plugin.Name()] || phase == "score" && !standing[plugin.Name()] {
			continue
		}
		if first, ok := plugin.(fwk.PreFilterPlugin); ok {
			result, status := first.PreFilter(ctx, state, pod, c.nodes)
			if status.IsSkip() {
				continue
			}
			if !status.IsSuccess() {
				refused, err := refuse(plugin, status, "PreFilter")
				if err != nil {
					return nil, err
				}
				everywhere = append(everywhere, refused)
				continue
			}
			eligible[plugin.Name()] = result
		}
		if filter, ok := plugin.(fwk.FilterPlugin); ok {
			asked = append(asked, filter)
		}
	}
	answers := make(map[string][]refusal, len(c.nodes))
	for _, node := range c.nodes {
		found := append([]refusal{}, everywhere...)
		for _, filter := range asked {
			status := filter.Filter(ctx, state, pod, node)
			result := eligible[filter.Name()]
			if status.IsSuccess() && !result.AllNodes() && !result.NodeNames.Has(node.Node().Name) {
				status = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the node is not eligible")
			}
			if status.IsSuccess() {
				continue
			}
			refused, err := refuse(filter, status, "Filter")
			if err != nil {
				return nil, err
			}
			found = append(found, refused)
		}
		answers[node.Node().Name] = found
	}
	return answers, nil
}

func refuse(plugin fwk.Plugin, status *fwk.Status, stage string) (refusal, error) {
	if !status.IsRejected() {
		return refusal{}, fmt.Errorf("%s: %w", plugin.Name(), status.AsError())
	}
	return refusal{
		Plugin:     plugin.Name(),
		Message:    strings.Join(status.Reasons(), ", "),
		Stage:      stage,
		Resolvable: status.Code() == fwk.Unschedulable,
	}, nil
}
