// Command reference answers which nodes the filter plugins of kube-scheduler accept for a pod, how its scoring plugins
// rate them, and which devices its allocator chooses for claims.
//
// Each line of standard input is a request, each line of standard output its answer; README.md describes both.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

func main() {
	klog.SetLogger(klog.Logger{}) // Messages of plugins are part of the answers.
	metrics.Register()            // Plugins count goroutines.
	// Dynamic resources are refused before a predicate is asked.
	if err := utilfeature.DefaultMutableFeatureGate.Set("DRAExtendedResource=false"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := serve(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context) error {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(output)
	var current *cluster
	for {
		line, err := input.ReadBytes('\n')
		if len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the last line has no end: %w", err)
		}
		answer := respond(ctx, line, &current)
		if err := encoder.Encode(answer); err != nil {
			return err
		}
		if err := output.Flush(); err != nil {
			return err
		}
	}
}

func respond(ctx context.Context, line []byte, current **cluster) response {
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return response{Error: err.Error()}
	}
	if asked.Selectors != nil {
		return response{ID: asked.ID, Selectors: asked.Selectors.answers(ctx)}
	}
	if asked.Devices != nil {
		devices, err := asked.Devices.answers(ctx)
		if err != nil {
			return response{ID: asked.ID, Error: err.Error()}
		}
		return response{ID: asked.ID, Devices: devices}
	}
	if asked.hasCluster() {
		made, err := newCluster(ctx, &asked)
		if err != nil {
			return response{ID: asked.ID, Error: err.Error()}
		}
		*current = made
	}
	if *current == nil {
		return response{ID: asked.ID, Error: "no request has had a cluster yet"}
	}
	if asked.Pod == nil {
		return response{ID: asked.ID}
	}
	if asked.Phase == "score" {
		scores, err := (*current).scores(ctx, asked.Pod)
		if err != nil {
			return response{ID: asked.ID, Error: err.Error()}
		}
		return response{ID: asked.ID, Scores: scores}
	}
	nodes, err := (*current).verdicts(ctx, asked.Pod, asked.Phase)
	if err != nil {
		return response{ID: asked.ID, Error: err.Error()}
	}
	return response{ID: asked.ID, Nodes: nodes}
}
