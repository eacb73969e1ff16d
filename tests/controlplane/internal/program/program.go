// Package program starts a Kubernetes component the way its released binary does, so that each main package under cmd/
// only names the component.
package program

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"

	// Released binaries register the JSON log format, client-go's metrics and build_info; leaving one out would change
	// what --help and /metrics print.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

// Main runs command and ends the process with its exit code.
func Main(command *cobra.Command) { os.Exit(cli.Run(command)) }
