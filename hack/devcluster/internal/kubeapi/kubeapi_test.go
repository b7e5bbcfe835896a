package kubeapi

import (
	"encoding/json"
	"testing"
	"time"
)

func TestReadySince(t *testing.T) {
	moment := time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)
	before, after := moment.Add(-time.Minute), moment.Add(time.Second)
	for situation, c := range map[string]struct {
		state     NodeState
		restarted bool
		want      bool
	}{
		"alive since":                            {NodeState{true, before, after}, false, true},
		"not Ready":                              {NodeState{false, after, after}, false, false},
		"Ready by memory only":                   {NodeState{true, before, before}, false, false},
		"restarted, condition of its forerunner": {NodeState{true, before, after}, true, false},
		"restarted, its own condition":           {NodeState{true, after, after}, true, true},
		"restarted, within the same second":      {NodeState{true, moment.Truncate(time.Second), after}, true, true},
	} {
		if got := c.state.ReadySince(moment, c.restarted); got != c.want {
			t.Errorf("%s: %v", situation, got)
		}
	}
}

func TestJoinNodes(t *testing.T) {
	var nodes nodeList
	var leases leaseList
	for text, target := range map[string]any{
		`{"items":[{"metadata":{"name":"n1"},"status":{"conditions":[
			{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True","lastHeartbeatTime":"2026-01-02T03:04:05Z"}]}}]}`: &nodes,
		`{"items":[{"metadata":{"name":"n1"},"spec":{"renewTime":"2026-01-02T03:04:06.500000Z"}},{"metadata":{"name":"stranger"}}]}`: &leases,
	} {
		if err := json.Unmarshal([]byte(text), target); err != nil {
			t.Fatal(err)
		}
	}
	states := joinNodes(nodes, leases)
	if state := states["n1"]; len(states) != 1 || !state.Ready || state.Reported.Second() != 5 || state.Renewed.Second() != 6 {
		t.Errorf("got %+v", states)
	}
}

func TestSummariseReadiness(t *testing.T) {
	got := summariseReadiness("[+]ping ok\n[-]informer-sync failed: reason withheld\n[-]x failed\nreadyz check failed")
	if got != "informer-sync and 1 other checks are not ready" {
		t.Error(got)
	}
}
