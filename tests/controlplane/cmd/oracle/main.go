// Command oracle prints what upstream's scheduling framework makes of a cluster: each pending pod, each node, each plugin.
//
//	oracle -f cluster.yaml [--config ksc.yaml] [--feature-gates A=true,B=false]
//	oracle serve [--feature-gates A=true,B=false]
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"sigs.k8s.io/yaml"

	"controlplane/internal/oracle"
)

func main() {
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var file, config, gates string
	setGates := func(*cobra.Command, []string) error { return utilfeature.DefaultMutableFeatureGate.Set(gates) }
	root := &cobra.Command{
		Use: "oracle -f FILE", SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
		PersistentPreRunE: setGates,
		RunE:              func(*cobra.Command, []string) error { return explain(file, config) },
	}
	root.PersistentFlags().StringVar(&gates, "feature-gates", "", "key=value pairs, as for kube-scheduler")
	root.Flags().StringVarP(&file, "filename", "f", "", "API objects in YAML or JSON")
	root.Flags().StringVar(&config, "config", "", "a KubeSchedulerConfiguration")
	_ = root.MarkFlagRequired("filename")
	root.AddCommand(&cobra.Command{
		Use: "serve", Short: "answer one JSON request a line", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return oracle.New().Serve(os.Stdin, os.Stdout) },
	})
	return root
}

// explain answers one file, with defaulting, as one JSON document.
func explain(file, config string) error {
	objects, err := oracle.ReadFile(file)
	if err != nil {
		return err
	}
	req := oracle.Request{Objects: objects, Default: true, Reserve: true}
	if config != "" {
		text, err := os.ReadFile(config)
		if err != nil {
			return err
		}
		if req.Config, err = yaml.YAMLToJSONStrict(text); err != nil {
			return err
		}
	}
	answer := oracle.New().Answer(&req)
	if answer.Error != "" {
		return fmt.Errorf("%s", answer.Error)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(answer)
}
