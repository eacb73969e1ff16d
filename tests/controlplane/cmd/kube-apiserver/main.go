// Command kube-apiserver is upstream's kube-apiserver, unchanged.
package main

import (
	_ "time/tzdata" // CronJob time zones are validated also where the machine has no zone files

	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	"controlplane/internal/program"
)

func main() { program.Main(app.NewAPIServerCommand()) }
