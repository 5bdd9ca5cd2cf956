//go:build tools

// Package tools keeps the program kwok, which plays the kubelets, among the requirements of this module.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
