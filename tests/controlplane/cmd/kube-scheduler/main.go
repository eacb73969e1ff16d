// Command kube-scheduler is upstream's kube-scheduler, unchanged.
package main

import (
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"controlplane/internal/program"
)

func main() { program.Main(app.NewSchedulerCommand()) }
