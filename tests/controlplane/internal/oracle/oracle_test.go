package oracle

import (
	"encoding/json"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
)

// nodes is a small cluster that most cases start from.
const nodes = `
apiVersion: v1
kind: NodeList
items:
- metadata: {name: n1, labels: {kubernetes.io/hostname: n1, zone: a}}
  status: {capacity: {cpu: "4", memory: 8Gi, pods: "10"}}
- metadata: {name: n2, labels: {kubernetes.io/hostname: n2, zone: b}}
  status: {capacity: {cpu: "2", memory: 8Gi, pods: "10"}}
---
`

// device is a device on n2, and the class gpu, which has all devices.
const device = `
kind: DeviceClass
apiVersion: resource.k8s.io/v1
metadata: {name: gpu}
---
kind: ResourceSlice
apiVersion: resource.k8s.io/v1
metadata: {name: s}
spec: {nodeName: n2, driver: d, pool: {name: n2, generation: 1, resourceSliceCount: 1}, devices: [{name: d0}]}
---
`

func run(t *testing.T, cluster string, change func(*Request)) Answer {
	t.Helper()
	objects, err := readObjects(strings.NewReader(cluster))
	if err != nil {
		t.Fatal(err)
	}
	req := &Request{Objects: objects, Default: true}
	if change != nil {
		change(req)
	}
	answer := New().Answer(req)
	if answer.Error != "" {
		t.Fatal(answer.Error)
	}
	if len(answer.Warnings) > 0 {
		t.Errorf("warnings: %q", answer.Warnings)
	}
	return answer
}

// TestPods checks host or message of the first pending pod.
func TestPods(t *testing.T) {
	for _, test := range []struct{ name, cluster, host, message string }{
		{"least allocated wins", nodes + `
kind: Pod
apiVersion: v1
metadata: {name: p}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
`, "n1", ""},
		{"preemption", nodes + `
kind: PodList
apiVersion: v1
items:
- metadata: {name: low}
  spec: {nodeName: n1, priority: 0, containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]}
- metadata: {name: p}
  spec: {priority: 5, containers: [{name: c, image: i, resources: {requests: {cpu: "4"}}}]}
`, "", "0/2 nodes are available: 2 Insufficient cpu."},
		{"a node outside the PreFilter result", nodes + `
kind: Pod
apiVersion: v1
metadata: {name: p}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n2]}]}]}}}
`, "", "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]. " +
			"no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."},
		{"a nominated pod takes its place", nodes + `
kind: PodList
apiVersion: v1
items:
- metadata: {name: p}
  spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]}
- metadata: {name: nominated}
  spec: {priority: 9, containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]}
  status: {nominatedNodeName: n1}
`, "", "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: " +
			"1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."},
		{"claims bound in the informer reach the assume cache", nodes + `
kind: PersistentVolumeClaim
apiVersion: v1
metadata: {name: x, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {volumeName: v, accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Gi}}}
status: {phase: Bound}
---
kind: PersistentVolume
apiVersion: v1
metadata: {name: v}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  csi: {driver: d, volumeHandle: h}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [b]}]}]}}
---
kind: Pod
apiVersion: v1
metadata: {name: p}
spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: x}}], containers: [{name: c, image: i}]}
`, "n2", ""},
		{"devices", nodes + device + `
kind: ResourceClaim
apiVersion: resource.k8s.io/v1
metadata: {name: x, uid: x}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
---
kind: Pod
apiVersion: v1
metadata: {name: p}
spec: {resourceClaims: [{name: x, resourceClaimName: x}], containers: [{name: c, image: i, resources: {claims: [{name: x}]}}]}
`, "n2", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := run(t, test.cluster, nil).Pods[0]
			if test.name == "preemption" {
				if pod.PostFilter == nil || pod.PostFilter.Nominated == nil || *pod.PostFilter.Nominated != "n1" || len(pod.PostFilter.Victims) != 1 {
					t.Errorf("postFilter: %+v", pod.PostFilter)
				}
			}
			if pod.Host != test.host || pod.Message != test.message || pod.Error != "" {
				t.Errorf("host %q, message %q, error %q", pod.Host, pod.Message, pod.Error)
			}
		})
	}
}

// TestReserve checks that an allocation is reported, and given back before the next pod.
func TestReserve(t *testing.T) {
	answer := run(t, nodes+device+`
kind: ResourceClaimList
apiVersion: resource.k8s.io/v1
items:
- metadata: {name: x}
  spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
- metadata: {name: "y"}
  spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
---
kind: PodList
apiVersion: v1
items:
- metadata: {name: px}
  spec: {resourceClaims: [{name: c, resourceClaimName: x}], containers: [{name: c, image: i, resources: {claims: [{name: c}]}}]}
- metadata: {name: py}
  spec: {resourceClaims: [{name: c, resourceClaimName: "y"}], containers: [{name: c, image: i, resources: {claims: [{name: c}]}}]}
`, func(req *Request) { req.Reserve = true })
	for _, pod := range answer.Pods {
		if pod.Host != "n2" || pod.Reserve == nil || len(pod.Reserve.PreBind) > 0 || len(pod.Reserve.Writes) != 2 {
			t.Fatalf("%s: host %q, reserve %+v", pod.Pod, pod.Host, pod.Reserve)
		}
		claim, ok := pod.Reserve.Writes[1].Object.(*resourcev1.ResourceClaim)
		if !ok || claim.Status.Allocation == nil || claim.Status.Allocation.Devices.Results[0].Device != "d0" {
			t.Errorf("%s: %+v", pod.Pod, claim)
		}
	}
}

// TestEvents checks derivation and hints of one change.
func TestEvents(t *testing.T) {
	answer := run(t, nodes+`
kind: Pod
apiVersion: v1
metadata: {name: p}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "8"}}}]}
`, func(req *Request) {
		node := func(cpu string) json.RawMessage {
			return json.RawMessage(`{"metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"` + cpu + `","pods":"10"}}}`)
		}
		req.Events = []EventRequest{{Pod: "default/p", Kind: "Node", Action: "update", Old: node("4"), New: node("8")}}
	})
	event := answer.Events[0]
	if event.Error != "" || len(event.ClusterEvents) != 1 || event.ClusterEvents[0] != "NodeUpdateNodeAllocatable" {
		t.Fatalf("%+v", event)
	}
	for _, hint := range event.Hints {
		if hint.Plugin == "NodeResourcesFit" {
			if hint.Hint != "Queue" {
				t.Errorf("%+v", hint)
			}
			return
		}
	}
	t.Errorf("no hint of NodeResourcesFit: %+v", event.Hints)
}

// TestServe checks that a bad line costs only itself.
func TestServe(t *testing.T) {
	var out strings.Builder
	in := "{\"id\":1,\"objects\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\"}]}\nnonsense\n{\"id\":3,\"objects\":[]}\n"
	if err := New().Serve(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "metadata.name is missing") || !strings.Contains(lines[1], "request:") ||
		!strings.HasPrefix(lines[2], `{"id":3,"pods":[]`) {
		t.Errorf("%q", lines)
	}
}
