package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcebeta "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
)

// patience is the time after which the search of an allocator is given up; kube-scheduler has the same limit.
const patience = 10 * time.Second

// features are those that are on by default.
var features = structured.Features{
	AdminAccess:            true,
	ConsumableCapacity:     true,
	DeviceBindingAndStatus: true,
	DeviceTaints:           true,
	PartitionableDevices:   true,
	PrioritizedList:        true,
}

// deviceRequest asks for the devices that the allocator of kube-scheduler chooses for claims, on each node by itself.
type deviceRequest struct {
	Nodes   []*v1.Node                  `json:"nodes"`
	Slices  []*resourcev1.ResourceSlice `json:"slices"`
	Classes []*resourcev1.DeviceClass   `json:"classes"`
	Claims  []*resourcev1.ResourceClaim `json:"claims"`
	// Rules give taints to devices of the slices.
	Rules []*resourcebeta.DeviceTaintRule `json:"rules"`
	// Taken has the results of claims that are allocated.
	Taken []resourcev1.DeviceRequestAllocationResult `json:"taken"`
}

// deviceAnswer is the answer for one node: allocations, one for each claim, or none if the claims do not fit.
type deviceAnswer struct {
	Allocations []resourcev1.AllocationResult `json:"allocations"`
	Error       string                        `json:"error,omitempty"`
	// Local is true for an error that concerns only this node.
	Local bool `json:"local,omitempty"`
}

// classes finds device classes by name.
type classes map[string]*resourcev1.DeviceClass

func (c classes) List() ([]*resourcev1.DeviceClass, error) {
	var all []*resourcev1.DeviceClass
	for _, class := range c {
		all = append(all, class)
	}
	return all, nil
}

func (c classes) Get(name string) (*resourcev1.DeviceClass, error) {
	if class, found := c[name]; found {
		return class, nil
	}
	return nil, fmt.Errorf("device class %s does not exist", name)
}

func (r *deviceRequest) answers(ctx context.Context) (map[string]deviceAnswer, error) {
	known := classes{}
	for _, class := range r.Classes {
		legacyscheme.Scheme.Default(class)
		known[class.Name] = class
	}
	for _, slice := range r.Slices {
		legacyscheme.Scheme.Default(slice)
	}
	for _, claim := range r.Claims {
		legacyscheme.Scheme.Default(claim)
	}
	slices, err := r.tainted(ctx)
	if err != nil {
		return nil, err
	}
	cache := cel.NewCache(10, cel.Features{EnableConsumableCapacity: true})
	allocator, err := structured.NewAllocator(ctx, features, r.state(), known, slices, cache)
	if err != nil {
		return nil, err
	}
	found := make(map[string]deviceAnswer, len(r.Nodes))
	for _, node := range r.Nodes {
		limited, cancel := context.WithTimeout(ctx, patience)
		allocations, err := allocator.Allocate(limited, node, r.Claims)
		cancel()
		answer := deviceAnswer{Allocations: allocations}
		if err != nil {
			answer.Error = err.Error()
			answer.Local = errors.Is(err, structured.ErrFailedAllocationOnNode)
		}
		found[node.Name] = answer
	}
	return found, nil
}

// tainted returns the slices with the taints of rules, as the plugin DynamicResources sees them.
func (r *deviceRequest) tainted(ctx context.Context) ([]*resourcev1.ResourceSlice, error) {
	if len(r.Rules) == 0 {
		return r.Slices, nil
	}
	known := newFactory()
	for _, slice := range r.Slices {
		if err := known.add(slice); err != nil {
			return nil, err
		}
	}
	for _, rule := range r.Rules {
		if err := known.add(rule); err != nil {
			return nil, err
		}
	}
	tracked, err := tracker.StartTracker(ctx, tracker.Options{
		EnableDeviceTaintRules: true,
		SliceInformer:          known.Resource().V1().ResourceSlices(),
		TaintInformer:          known.Resource().V1beta2().DeviceTaintRules(),
		ClassInformer:          known.Resource().V1().DeviceClasses(),
	})
	if err != nil {
		return nil, err
	}
	defer tracked.Stop()
	return tracked.ListPatchedResourceSlices()
}

// state sums up what is taken, as the plugin DynamicResources does; results with admin access take nothing.
func (r *deviceRequest) state() structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, result := range r.Taken {
		if result.AdminAccess != nil && *result.AdminAccess {
			continue
		}
		id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		if result.ShareID == nil {
			state.AllocatedDevices.Insert(id)
			continue
		}
		share := types.UID(*result.ShareID)
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, &share))
		consumed := make(map[resourcev1.QualifiedName]resource.Quantity, len(result.ConsumedCapacity))
		for name, amount := range result.ConsumedCapacity {
			consumed[name] = amount
		}
		state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, consumed))
	}
	return state
}

// selectorRequest asks for the results of selectors on devices.
type selectorRequest struct {
	Expressions []string         `json:"expressions"`
	Devices     []selectedDevice `json:"devices"`
}

// selectedDevice is a device with the name of its driver.
type selectedDevice struct {
	Driver string `json:"driver"`
	resourcev1.Device
}

// selectorAnswer has the results of one selector in the order of the devices.
type selectorAnswer struct {
	// Invalid is the reason why the expression cannot be compiled; there are no results then.
	Invalid string           `json:"invalid,omitempty"`
	Results []selectorResult `json:"results,omitempty"`
}

type selectorResult struct {
	Matches bool   `json:"matches"`
	Error   string `json:"error,omitempty"`
	Cost    uint64 `json:"cost"`
}

func (r *selectorRequest) answers(ctx context.Context) []selectorAnswer {
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true})
	found := make([]selectorAnswer, len(r.Expressions))
	for number, expression := range r.Expressions {
		compiled := compiler.CompileCELExpression(expression, cel.Options{DisableCostEstimation: true})
		if compiled.Error != nil {
			found[number].Invalid = compiled.Error.Error()
			continue
		}
		for _, device := range r.Devices {
			matches, details, err := compiled.DeviceMatches(ctx, cel.Device{
				Driver:                   device.Driver,
				AllowMultipleAllocations: device.AllowMultipleAllocations,
				Attributes:               device.Attributes,
				Capacity:                 device.Capacity,
			})
			result := selectorResult{Matches: matches}
			if err != nil {
				result.Error = err.Error()
			}
			if details != nil && details.ActualCost() != nil {
				result.Cost = *details.ActualCost()
			}
			found[number].Results = append(found[number].Results, result)
		}
	}
	return found
}
