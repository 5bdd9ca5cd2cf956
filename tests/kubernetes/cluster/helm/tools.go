//go:build tools

// Package tools keeps the program helm, which renders the chart, among the requirements of this module.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
