package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// configs keeps the last configuration read, since thousands of cases in a row tend to have the same one.
type configs struct {
	raw    []byte
	parsed *config.KubeSchedulerConfiguration
}

// load decodes, defaults and validates a configuration as kube-scheduler does with its file. The caller owns the result:
// building a scheduler writes into plugin args.
func (c *configs) load(raw json.RawMessage) (*config.KubeSchedulerConfiguration, error) {
	if c.parsed == nil || !bytes.Equal(c.raw, raw) {
		parsed, err := parseConfig(raw)
		if err != nil {
			return nil, err
		}
		c.raw, c.parsed = bytes.Clone(raw), parsed
	}
	return c.parsed.DeepCopy(), nil
}

func parseConfig(raw []byte) (*config.KubeSchedulerConfiguration, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return latest.Default()
	}
	obj, gvk, err := scheme.Codecs.UniversalDecoder().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	cfg, ok := obj.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("config is a %s", schema.GroupVersionKind(*gvk).String())
	}
	cfg.TypeMeta.APIVersion = gvk.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(cfg); err != nil {
		return nil, err
	}
	return cfg, nil
}
