package cluster

import (
	"context"
	"fmt"
	"path/filepath"

	"alineo.dev/devcluster/internal/kubeapi"
	"alineo.dev/devcluster/internal/plan"
	"alineo.dev/devcluster/internal/render"
)

const (
	storageClass   = "local"
	volumesPerNode = 6
	volumeSize     = "5Gi"
)

// Volume is a directory of a node that a claim can have.
type Volume struct{ Name, Node, Path string }

func volumesOf(layout render.Layout, node plan.Node) []Volume {
	volumes := make([]Volume, 0, volumesPerNode)
	for number := 1; number <= volumesPerNode; number++ {
		name := fmt.Sprintf("%s-%s-%d", storageClass, node.Name, number)
		volumes = append(volumes, Volume{name, node.Name, filepath.Join(layout.Node(node.Name).Volumes(), name)})
	}
	return volumes
}

// applyObjects makes what a cluster must have before anyone uses it.
func (c *Cluster) applyObjects(ctx context.Context) error {
	api, err := c.api()
	if err != nil {
		return err
	}
	rbac := "/apis/rbac.authorization.k8s.io/v1/"
	objects := []struct {
		collection string
		object     kubeapi.Object
	}{
		{rbac + "clusterroles", dnsRole()},
		{rbac + "clusterrolebindings", dnsRoleBinding()},
		{"/apis/storage.k8s.io/v1/storageclasses", storageClassObject()},
	}
	for _, o := range objects {
		if err := api.CreateIfAbsent(ctx, o.collection, o.object); err != nil {
			return err
		}
	}
	return c.applyVolumes(ctx, api)
}

func storageClassObject() kubeapi.Object {
	return kubeapi.Object{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
		"metadata":          kubeapi.Object{"name": storageClass, "annotations": kubeapi.Object{"storageclass.kubernetes.io/is-default-class": "true"}},
		"provisioner":       "kubernetes.io/no-provisioner",
		"volumeBindingMode": "WaitForFirstConsumer",
		"reclaimPolicy":     "Retain",
	}
}

func volumeObject(v Volume) kubeapi.Object {
	hostname := kubeapi.Object{"key": "kubernetes.io/hostname", "operator": "In", "values": []string{v.Node}}
	return kubeapi.Object{
		"apiVersion": "v1", "kind": "PersistentVolume",
		"metadata": kubeapi.Object{"name": v.Name},
		"spec": kubeapi.Object{
			"capacity": kubeapi.Object{"storage": volumeSize}, "accessModes": []string{"ReadWriteOnce"},
			"storageClassName": storageClass, "persistentVolumeReclaimPolicy": "Retain",
			"local": kubeapi.Object{"path": v.Path},
			"nodeAffinity": kubeapi.Object{"required": kubeapi.Object{
				"nodeSelectorTerms": []kubeapi.Object{{"matchExpressions": []kubeapi.Object{hostname}}},
			}},
		},
	}
}

// dnsRole is what CoreDNS reads.
func dnsRole() kubeapi.Object {
	read := []string{"list", "watch"}
	return kubeapi.Object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": kubeapi.Object{"name": "coredns"},
		"rules": []kubeapi.Object{
			{"apiGroups": []string{""}, "resources": []string{"endpoints", "services", "pods", "namespaces"}, "verbs": read},
			{"apiGroups": []string{"discovery.k8s.io"}, "resources": []string{"endpointslices"}, "verbs": read},
		},
	}
}

func dnsRoleBinding() kubeapi.Object {
	group := "rbac.authorization.k8s.io"
	return kubeapi.Object{
		"apiVersion": group + "/v1", "kind": "ClusterRoleBinding",
		"metadata": kubeapi.Object{"name": "coredns"},
		"roleRef":  kubeapi.Object{"apiGroup": group, "kind": "ClusterRole", "name": "coredns"},
		"subjects": []kubeapi.Object{{"apiGroup": group, "kind": "User", "name": "coredns"}},
	}
}
