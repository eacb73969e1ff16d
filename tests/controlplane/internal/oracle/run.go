package oracle

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// Oracle answers cases one at a time.
type Oracle struct {
	configs configs

	mu       sync.Mutex
	logged   []string
	panicked any
}

// New makes the oracle of this process. It silences upstream's log, and takes over what upstream handles out of sight of its
// callers: errors that it only logs become warnings of the case at hand, and a panic in a worker becomes the case's error
// instead of ending the process.
func New() *Oracle {
	o := &Oracle{}
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, message string, _ ...interface{}) {
			o.mu.Lock()
			defer o.mu.Unlock()
			if err != nil {
				message += ": " + err.Error()
			}
			o.logged = append(o.logged, message)
		},
	}
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = []func(context.Context, interface{}){
		func(_ context.Context, failure interface{}) {
			fmt.Fprintf(os.Stderr, "%v\n%s", failure, debug.Stack())
			o.mu.Lock()
			defer o.mu.Unlock()
			o.panicked = failure
		},
	}
	return o
}

// Answer runs one case. Whatever goes wrong in it, a panic of a plugin included, becomes its error.
func (o *Oracle) Answer(req *Request) (answer Answer) {
	answer.ID = req.ID
	defer func() {
		if failure := recover(); failure != nil {
			fmt.Fprintf(os.Stderr, "case %s: %v\n%s", req.ID, failure, debug.Stack())
			answer = Answer{ID: req.ID, Error: fmt.Sprintf("panic: %v", failure)}
		}
	}()
	o.takeLogged()
	result, err := o.result(req)
	logged, panicked := o.takeLogged()
	if panicked != nil {
		err = fmt.Errorf("panic: %v", panicked)
	}
	if err != nil {
		answer.Error = err.Error()
		return answer
	}
	result.Warnings = append(result.Warnings, logged...)
	answer.Result = result
	return answer
}

// takeLogged hands over what was logged since the last call, and the last panic.
func (o *Oracle) takeLogged() (logged []string, panicked any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	logged, panicked = o.logged, o.panicked
	o.logged, o.panicked = nil, nil
	return logged, panicked
}

func (o *Oracle) result(req *Request) (*Result, error) {
	cfg, err := o.configs.load(req.Config)
	if err != nil {
		return nil, err
	}
	objs, err := decodeObjects(req.Objects, req.Default)
	if err != nil {
		return nil, err
	}
	c, err := newCluster(objs, cfg, req.Parallelism, req.StartNodeIndex)
	if err != nil {
		return nil, err
	}
	defer c.close()
	result := &Result{Pods: []PodAnswer{}, Ignored: objs.ignored, Warnings: objs.warnings}
	if len(req.Consecutive) > 0 {
		if len(req.Pods)+len(req.Events)+len(req.Direct) > 0 {
			return nil, errors.New("consecutive: nothing else may be asked for")
		}
		result.Consecutive, err = c.consecutive(req.Consecutive)
		return result, err
	}
	for _, pod := range objs.pending() {
		if len(req.Pods) == 0 || slices.Contains(req.Pods, podKey(pod)) {
			result.Pods = append(result.Pods, c.evaluate(pod, req.Reserve))
		}
	}
	for i, event := range req.Events {
		result.Events = append(result.Events, c.answerEvent(i, event, req.Default))
	}
	for _, call := range req.Direct {
		result.Direct = append(result.Direct, c.answerDirect(call, req.Default))
	}
	result.Registered, err = c.registered()
	return result, err
}

// Serve answers one request a line until the input ends. A line that cannot be read costs only itself.
func (o *Oracle) Serve(in io.Reader, out io.Writer) error {
	reader := bufio.NewReaderSize(in, 1<<20)
	writer := bufio.NewWriter(out)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := reader.ReadBytes('\n')
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			if err := encoder.Encode(o.answerLine(trimmed)); err != nil {
				return err
			}
			if err := writer.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (o *Oracle) answerLine(line []byte) Answer {
	var req Request
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&req); err != nil {
		return Answer{ID: req.ID, Error: "request: " + err.Error()}
	}
	return o.Answer(&req)
}
