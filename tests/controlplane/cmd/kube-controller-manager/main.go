// Command kube-controller-manager is upstream's kube-controller-manager, unchanged.
package main

import (
	_ "time/tzdata" // CronJob time zones work also where the machine has no zone files

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"

	"controlplane/internal/program"
)

func main() { program.Main(app.NewControllerManagerCommand()) }
