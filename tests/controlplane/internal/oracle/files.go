package oracle

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// ReadFile reads the objects of a YAML or JSON file of one or more documents, with lists taken apart.
func ReadFile(path string) ([]json.RawMessage, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readObjects(file)
}

func readObjects(in io.Reader) ([]json.RawMessage, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	var all []json.RawMessage
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		raw, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		if string(raw) == "null" {
			continue
		}
		if all, err = flatten(all, raw); err != nil {
			return nil, err
		}
	}
}

// flatten appends an object, or the items of a list. Items of a typed list need not name their own type.
func flatten(all []json.RawMessage, raw json.RawMessage) ([]json.RawMessage, error) {
	var list struct {
		metav1.TypeMeta
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("not an API object: %w", err)
	}
	if !strings.HasSuffix(list.Kind, "List") {
		return append(all, raw), nil
	}
	for _, item := range list.Items {
		if item["kind"] == nil {
			item["apiVersion"], item["kind"] = list.APIVersion, strings.TrimSuffix(list.Kind, "List")
		}
		encoded, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		if all, err = flatten(all, encoded); err != nil {
			return nil, err
		}
	}
	return all, nil
}
