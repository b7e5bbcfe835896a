package kubeapi

import (
	"context"
	"net/http"
	"sort"
)

// Object is a Kubernetes object written out; the handful that is made here does not earn types.
type Object map[string]any

// Meta is the part of metadata that is read.
type Meta struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

type condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

type node struct {
	Metadata Meta `json:"metadata"`
	Status   struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// Nodes returns whether each registered node is Ready.
func (c *Client) Nodes(ctx context.Context) (map[string]bool, error) {
	var list struct {
		Items []node `json:"items"`
	}
	if err := c.Do(ctx, http.MethodGet, "/api/v1/nodes", nil, &list); err != nil {
		return nil, err
	}
	ready := map[string]bool{}
	for _, n := range list.Items {
		ready[n.Metadata.Name] = false
		for _, cond := range n.Status.Conditions {
			if cond.Type == "Ready" && cond.Status == "True" {
				ready[n.Metadata.Name] = true
			}
		}
	}
	return ready, nil
}

// Volume is a PersistentVolume as far as it matters here.
type Volume struct {
	Metadata Meta `json:"metadata"`
	Status   struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

// Volumes returns the PersistentVolumes of the storage class, by name.
func (c *Client) Volumes(ctx context.Context, class string) ([]Volume, error) {
	var list struct {
		Items []struct {
			Volume
			Spec struct {
				StorageClassName string `json:"storageClassName"`
			} `json:"spec"`
		} `json:"items"`
	}
	if err := c.Do(ctx, http.MethodGet, "/api/v1/persistentvolumes", nil, &list); err != nil {
		return nil, err
	}
	var volumes []Volume
	for _, item := range list.Items {
		if item.Spec.StorageClassName == class {
			volumes = append(volumes, item.Volume)
		}
	}
	sort.Slice(volumes, func(i, j int) bool { return volumes[i].Metadata.Name < volumes[j].Metadata.Name })
	return volumes, nil
}
