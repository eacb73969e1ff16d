// Command gates prints every feature gate that upstream's scheduler knows: its stages by version, and the gates it needs.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

type stage struct {
	Since   string `json:"since"`
	Stage   string `json:"stage"`
	Default bool   `json:"default"`
	Locked  bool   `json:"locked"`
}

type gate struct {
	Stages []stage  `json:"stages"`
	Needs  []string `json:"needs"`
}

func main() {
	// Registers them.
	app.NewSchedulerCommand()
	features := utilfeature.DefaultMutableFeatureGate
	dependencies := features.Dependencies()
	gates := map[featuregate.Feature]gate{}
	for name, specs := range features.GetAllVersioned() {
		found := gate{Stages: []stage{}, Needs: []string{}}
		for _, spec := range specs {
			maturity := string(spec.PreRelease)
			if maturity == "" {
				maturity = "GA"
			}
			found.Stages = append(found.Stages, stage{spec.Version.String(), maturity, spec.Default, spec.LockToDefault})
		}
		for _, need := range dependencies[name] {
			found.Needs = append(found.Needs, string(need))
		}
		slices.Sort(found.Needs)
		gates[name] = found
	}
	if err := json.NewEncoder(os.Stdout).Encode(gates); err != nil {
		fmt.Fprintln(os.Stderr, "gates:", err)
		os.Exit(1)
	}
}
