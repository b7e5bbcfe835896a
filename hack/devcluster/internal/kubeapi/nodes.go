package kubeapi

import (
	"context"
	"net/http"
	"time"
)

// NodeState is what Kubernetes knows of a node. What it knows may be old: a node that died a moment ago is
// Ready still, and the database remembers Ready over a restart of everything.
type NodeState struct {
	Ready bool
	// Reported is when the kubelet last wrote the condition, Renewed when it last renewed its lease.
	Reported, Renewed time.Time
}

// ReadySince says whether the node is Ready by a sign of life after that moment; a restarted kubelet must also
// have written its condition anew, for the one before was its predecessor's.
func (s NodeState) ReadySince(moment time.Time, restarted bool) bool {
	if !s.Ready || s.Renewed.Before(moment) {
		return false
	}
	// The condition's time has whole seconds.
	return !restarted || !s.Reported.Before(moment.Truncate(time.Second))
}

type nodeList struct {
	Items []struct {
		Metadata Meta `json:"metadata"`
		Status   struct {
			Conditions []struct {
				Type              string    `json:"type"`
				Status            string    `json:"status"`
				LastHeartbeatTime time.Time `json:"lastHeartbeatTime"`
			} `json:"conditions"`
		} `json:"status"`
	} `json:"items"`
}

type leaseList struct {
	Items []struct {
		Metadata Meta `json:"metadata"`
		Spec     struct {
			RenewTime time.Time `json:"renewTime"`
		} `json:"spec"`
	} `json:"items"`
}

// Nodes returns the state of each registered node by name.
func (c *Client) Nodes(ctx context.Context) (map[string]NodeState, error) {
	var nodes nodeList
	if err := c.Do(ctx, http.MethodGet, "/api/v1/nodes", nil, &nodes); err != nil {
		return nil, err
	}
	var leases leaseList
	if err := c.Do(ctx, http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", nil, &leases); err != nil {
		return nil, err
	}
	return joinNodes(nodes, leases), nil
}

func joinNodes(nodes nodeList, leases leaseList) map[string]NodeState {
	states := map[string]NodeState{}
	for _, node := range nodes.Items {
		state := NodeState{}
		for _, condition := range node.Status.Conditions {
			if condition.Type == "Ready" {
				state.Ready, state.Reported = condition.Status == "True", condition.LastHeartbeatTime
			}
		}
		states[node.Metadata.Name] = state
	}
	for _, lease := range leases.Items {
		if state, known := states[lease.Metadata.Name]; known {
			state.Renewed = lease.Spec.RenewTime
			states[lease.Metadata.Name] = state
		}
	}
	return states
}
