// Command schema prints the fields of every type that the embedded API server reads or writes: what src/apiserver/schema/types.txt
// has. It asks the types themselves, by reflection; the format is described in src/apiserver/schema/mod.rs.
package main

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"reflect"
	"sort"
	"strings"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// What a request's body, or an object that is stored, may be.
var roots = []any{
	apps.ControllerRevision{}, apps.DaemonSet{}, apps.Deployment{}, apps.ReplicaSet{}, apps.StatefulSet{},
	autoscaling.Scale{}, batch.CronJob{}, batch.Job{}, coordination.Lease{},
	core.Binding{}, core.ConfigMap{}, core.Event{}, core.LimitRange{}, core.Namespace{}, core.Node{}, core.PersistentVolume{},
	core.PersistentVolumeClaim{}, core.Pod{}, core.ReplicationController{}, core.Secret{}, core.Service{}, core.ServiceAccount{},
	events.Event{}, meta.DeleteOptions{}, node.RuntimeClass{}, policy.PodDisruptionBudget{},
	resourceapi.DeviceClass{}, resourceapi.ResourceClaim{}, resourceapi.ResourceClaimTemplate{}, resourceapi.ResourceSlice{},
	scheduling.PriorityClass{},
	storage.CSIDriver{}, storage.CSINode{}, storage.CSIStorageCapacity{}, storage.StorageClass{}, storage.VolumeAttachment{},
	storage.VolumeAttributesClass{},
}

// Types that are written otherwise than field by field.
var special = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():    "quantity",
	reflect.TypeFor[meta.Time]():            "time",
	reflect.TypeFor[meta.MicroTime]():       "microtime",
	reflect.TypeFor[meta.FieldsV1]():        "raw",
	reflect.TypeFor[runtime.RawExtension](): "raw",
	reflect.TypeFor[intstr.IntOrString]():   "intorstring",
}

func main() {
	found := map[string]string{}
	for _, root := range roots {
		visit(reflect.TypeOf(root), found)
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	sort.Strings(names)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, name := range names {
		fmt.Fprintln(out, strings.TrimSpace(name+" "+found[name]))
	}
}

// The name of a type: its API group and its own.
func nameOf(of reflect.Type) string {
	return path.Base(path.Dir(of.PkgPath())) + "." + of.Name()
}

func visit(of reflect.Type, found map[string]string) {
	if _, known := found[nameOf(of)]; known {
		return
	}
	found[nameOf(of)] = ""
	var fields []string
	for i := range of.NumField() {
		field := of.Field(i)
		if field.Type == reflect.TypeFor[meta.TypeMeta]() {
			continue
		}
		fields = append(fields, describe(field, found))
	}
	found[nameOf(of)] = strings.Join(fields, " ")
}

// A field: its name, its number on the wire, its type, and flags.
func describe(field reflect.StructField, found map[string]string) string {
	number := "0"
	if tags := strings.Split(field.Tag.Get("protobuf"), ","); len(tags) > 1 {
		number = tags[1]
	}
	tags := strings.Split(field.Tag.Get("json"), ",")
	flags := ""
	of := field.Type
	if of.Kind() == reflect.Pointer {
		flags += "p"
		of = of.Elem()
	}
	for _, tag := range tags[1:] {
		switch tag {
		case "omitempty":
			flags += "e"
		case "omitzero":
			flags += "z"
		case "inline":
			flags += "i"
		}
	}
	name := tags[0]
	if name == "" {
		name = field.Name
	}
	return strings.Join([]string{name, number, kindOf(of, found), flags}, ":")
}

func kindOf(of reflect.Type, found map[string]string) string {
	if name, is := special[of]; is {
		return name
	}
	switch of.Kind() {
	case reflect.Pointer:
		return kindOf(of.Elem(), found)
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + kindOf(of.Elem(), found)
	case reflect.Map:
		return "{}" + kindOf(of.Elem(), found)
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Uint8:
		return "int"
	case reflect.Struct:
		visit(of, found)
		return nameOf(of)
	}
	panic("no type for " + of.String())
}
