package oracle

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
)

// Request is one case: a cluster, and what to ask about it.
type Request struct {
	// ID is handed back unread.
	ID json.RawMessage `json:"id,omitempty"`
	// Objects are API objects with apiVersion and kind, in the order in which the informers shall deliver them.
	Objects []json.RawMessage `json:"objects"`
	// Config is a KubeSchedulerConfiguration; null means the defaults.
	Config json.RawMessage `json:"config,omitempty"`
	// Default asks for the API server's defaulting of every object, including the namespace.
	Default bool `json:"default,omitempty"`
	// Parallelism replaces the configured number of workers; 0 means 1, the only number with one possible outcome.
	Parallelism int32 `json:"parallelism,omitempty"`
	// StartNodeIndex is where the search for feasible nodes starts.
	StartNodeIndex int `json:"startNodeIndex,omitempty"`
	// Pods narrows the evaluation to these pending pods ("namespace/name"); absent means all of them.
	Pods []string `json:"pods,omitempty"`
	// Reserve asks what Reserve and PreBind would do on the chosen host.
	Reserve bool            `json:"reserve,omitempty"`
	Events  []EventRequest  `json:"events,omitempty"`
	Direct  []DirectRequest `json:"direct,omitempty"`
	// Consecutive asks for that many cycles, one after the other on the same cluster; Pods and Events have to be absent.
	Consecutive []Step `json:"consecutive,omitempty"`
}

// EventRequest asks what a change of one object would mean to one pending pod.
type EventRequest struct {
	Pod    string          `json:"pod"`
	Kind   string          `json:"kind"`
	Action string          `json:"action"`
	Old    json.RawMessage `json:"old"`
	New    json.RawMessage `json:"new"`
}

// DirectRequest asks for one method of one plugin, alone.
type DirectRequest struct {
	Plugin string `json:"plugin"`
	// Point is PreEnqueue, PreFilter, Filter or Score.
	Point string          `json:"point"`
	Pod   json.RawMessage `json:"pod"`
	// Node names the node of Filter and Score; Score without it runs on all nodes.
	Node string `json:"node,omitempty"`
	// Bare leaves out the PreFilter or PreScore of the same plugin that otherwise runs first.
	Bare bool `json:"bare,omitempty"`
}

// Answer is what one case gives. With Error set, nothing else is.
type Answer struct {
	ID    json.RawMessage `json:"id,omitempty"`
	Error string          `json:"error,omitempty"`
	*Result
}

// Result is what upstream made of a case.
type Result struct {
	Pods   []PodAnswer    `json:"pods"`
	Events []EventAnswer  `json:"events,omitempty"`
	Direct []DirectAnswer `json:"direct,omitempty"`
	// Consecutive ends early when activeQ is empty.
	Consecutive []CycleAnswer `json:"consecutive,omitempty"`
	// Registered maps each plugin of the first profile to its "<resource>/<action bits in decimal>".
	Registered map[string][]string `json:"registered"`
	// Ignored lists the kinds that no part of the scheduler reads.
	Ignored []string `json:"ignored,omitempty"`
	// Warnings are unknown fields, errors that upstream would only log, and disagreements between glue and upstream.
	Warnings []string `json:"warnings,omitempty"`
}

// Status is a framework status.
type Status struct {
	Plugin  string   `json:"plugin,omitempty"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
}

// PreFilterAnswer is the outcome of all PreFilter plugins.
type PreFilterAnswer struct {
	Status
	// Nodes is the set that PreFilter results leave; null means all nodes.
	Nodes []string `json:"nodes"`
	// Skip names the plugins that Filter leaves out.
	Skip []string `json:"skip"`
}

// Score is one plugin's score of one node.
type Score struct {
	Raw        int64 `json:"raw"`
	Normalized int64 `json:"normalized"`
	Weighted   int64 `json:"weighted"`
}

// NodeAnswer is the verdict on one node.
type NodeAnswer struct {
	Node string `json:"node"`
	Status
	// Absent marks a node outside the PreFilter result: no Filter plugin saw it.
	Absent bool             `json:"absent,omitempty"`
	Scores map[string]Score `json:"scores,omitempty"`
	Total  *int64           `json:"total,omitempty"`
}

// PostFilterAnswer is the outcome of the PostFilter plugins.
type PostFilterAnswer struct {
	Code    string `json:"code"`
	Plugin  string `json:"plugin,omitempty"`
	Message string `json:"message"`
	// Nominated is null when the nomination stays as it is, "" when it is cleared.
	Nominated *string  `json:"nominated"`
	Victims   []string `json:"victims"`
	// Candidates are the nodes on which preemption would help, by name.
	Candidates []CandidateAnswer `json:"candidates,omitempty"`
	// Ties are candidates that upstream's ranking cannot tell from the nominated one; it may name any of them.
	Ties []string `json:"ties,omitempty"`
}

// CandidateAnswer is a node on which preemption would make room.
type CandidateAnswer struct {
	Node          string   `json:"node"`
	Victims       []string `json:"victims"`
	PDBViolations int      `json:"pdbViolations"`
}

// ReserveAnswer is the outcome of Reserve, and of PreBind after it.
type ReserveAnswer struct {
	Status
	// PreBind lists what went wrong there, except for waits, which are cut short.
	PreBind []Status `json:"preBind"`
	Writes  []Write  `json:"writes"`
}

// Write is one API request.
type Write struct {
	Verb        string          `json:"verb"`
	Resource    string          `json:"resource"`
	Subresource string          `json:"subresource,omitempty"`
	Namespace   string          `json:"namespace,omitempty"`
	Name        string          `json:"name"`
	Object      runtime.Object  `json:"object,omitempty"`
	Patch       json.RawMessage `json:"patch,omitempty"`
}

// PodAnswer is everything about one pending pod.
type PodAnswer struct {
	Pod       string `json:"pod"`
	Scheduler string `json:"scheduler"`
	// Skipped is what upstream says instead of scheduling the pod at all; the rest is what it would have decided.
	Skipped        string            `json:"skipped,omitempty"`
	PreEnqueue     *Status           `json:"preEnqueue"`
	Signature      *string           `json:"signature"`
	PreFilter      *PreFilterAnswer  `json:"preFilter"`
	Nodes          []NodeAnswer      `json:"nodes"`
	ScoreSkip      []string          `json:"scoreSkip"`
	ScoreError     string            `json:"scoreError,omitempty"`
	Host           string            `json:"host"`
	EvaluatedNodes int               `json:"evaluatedNodes,omitempty"`
	FeasibleNodes  int               `json:"feasibleNodes,omitempty"`
	Message        string            `json:"message"`
	Rejectors      []string          `json:"rejectors"`
	PendingPlugins []string          `json:"pendingPlugins"`
	Error          string            `json:"error"`
	PostFilter     *PostFilterAnswer `json:"postFilter"`
	Reserve        *ReserveAnswer    `json:"reserve,omitempty"`
}

// Hint is what one plugin says about one cluster event.
type Hint struct {
	Plugin string `json:"plugin"`
	Event  string `json:"event"`
	// Registered is the registration that matched the event, as in Result.Registered.
	Registered string `json:"registered"`
	Hint       string `json:"hint"`
	Error      string `json:"error"`
}

// EventAnswer is what an EventRequest gives.
type EventAnswer struct {
	Pod           string   `json:"pod"`
	Index         int      `json:"index"`
	ClusterEvents []string `json:"clusterEvents"`
	Hints         []Hint   `json:"hints"`
	Error         string   `json:"error,omitempty"`
}

// DirectAnswer is what a DirectRequest gives.
type DirectAnswer struct {
	Plugin    string           `json:"plugin"`
	Point     string           `json:"point"`
	PreFilter *PreFilterAnswer `json:"preFilter,omitempty"`
	PreScore  *Status          `json:"preScore,omitempty"`
	Status    *Status          `json:"status,omitempty"`
	Scores    map[string]Score `json:"scores,omitempty"`
	Error     string           `json:"error,omitempty"`
}
