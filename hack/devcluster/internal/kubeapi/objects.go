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
