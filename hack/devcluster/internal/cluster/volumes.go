package cluster

import (
	"context"
	"os"
	"time"

	"alineo.dev/devcluster/internal/kubeapi"
)

// volumePeriod is how often released volumes are looked for; a look is one read.
const volumePeriod = 3 * time.Second

// applyVolumes makes every volume that is missing, and makes anew what a deleted claim has released: nothing
// in Kubernetes gives a local volume to a second claim.
func (c *Cluster) applyVolumes(ctx context.Context, api *kubeapi.Client) error {
	existing, err := api.Volumes(ctx, storageClass)
	if err != nil {
		return err
	}
	phases := map[string]string{}
	for _, volume := range existing {
		phases[volume.Metadata.Name] = volume.Status.Phase
	}
	for _, node := range c.Plan.Nodes {
		for _, volume := range volumesOf(c.Layout, node) {
			phase, exists := phases[volume.Name]
			if exists && phase != "Released" && phase != "Failed" {
				continue
			}
			if err := renewVolume(ctx, api, volume); err != nil {
				return err
			}
		}
	}
	return nil
}

func renewVolume(ctx context.Context, api *kubeapi.Client, volume Volume) error {
	if err := api.Delete(ctx, "/api/v1/persistentvolumes/"+volume.Name); err != nil {
		return err
	}
	if err := os.RemoveAll(volume.Path); err != nil {
		return err
	}
	if err := os.MkdirAll(volume.Path, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(volume.Path, 0o777); err != nil { // the umask took bits away
		return err
	}
	return api.CreateIfAbsent(ctx, "/api/v1/persistentvolumes", volumeObject(volume))
}

// KeepVolumes readies released volumes for as long as the cluster lives.
func (c *Cluster) KeepVolumes(ctx context.Context) error {
	api, err := c.api()
	if err != nil {
		return err
	}
	for {
		if err := c.applyVolumes(ctx, api); err != nil {
			c.Out.Say("volumes: %v", err)
		}
		time.Sleep(volumePeriod)
	}
}
