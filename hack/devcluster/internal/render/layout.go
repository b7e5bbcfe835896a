// Package render turns a plan into the files and command lines of the cluster's processes. It is pure: text
// in, text out, so that what a cluster is made of can be read and compared in tests.
package render

import "path/filepath"

// Layout says where the parts of a cluster lie below its directory.
type Layout struct{ Dir string }

// NewLayout is the layout of the cluster of that name in a cache.
func NewLayout(cache, name string) Layout { return Layout{filepath.Join(cache, "clusters", name)} }

// Cache is the directory that NewLayout was given.
func (l Layout) Cache() string { return filepath.Dir(filepath.Dir(l.Dir)) }

// PKI holds the certificates.
func (l Layout) PKI() string { return filepath.Join(l.Dir, "pki") }

// Cert and Key are one pair of PKI.
func (l Layout) Cert(name string) string { return filepath.Join(l.PKI(), name+".crt") }

// Key is the private half of Cert.
func (l Layout) Key(name string) string { return filepath.Join(l.PKI(), name+".key") }

// Kubeconfig is the administrator's.
func (l Layout) Kubeconfig() string { return filepath.Join(l.Dir, "kubeconfig") }

// Config is a rendered file of the host's processes.
func (l Layout) Config(name string) string { return filepath.Join(l.Dir, "config", name) }

// Etcd is the database's data.
func (l Layout) Etcd() string { return filepath.Join(l.Dir, "etcd") }

// Log is the output of one process.
func (l Layout) Log(process string) string { return filepath.Join(l.Dir, "log", process+".log") }

// Audit is the API server's audit log: one JSON event a line, writes only.
func (l Layout) Audit() string { return filepath.Join(l.Dir, "log", "audit.jsonl") }

// Records holds a record for each started process.
func (l Layout) Records() string { return filepath.Join(l.Dir, "run") }

// Node is everything of one node.
func (l Layout) Node(node string) NodeLayout { return NodeLayout{filepath.Join(l.Dir, "nodes", node)} }

// NodeLayout says where the parts of a node lie.
type NodeLayout struct{ Dir string }

// Volatile is what a reboot of the node empties.
func (n NodeLayout) Volatile() string { return filepath.Join(n.Dir, "run") }

// Socket is containerd's.
func (n NodeLayout) Socket() string { return filepath.Join(n.Volatile(), "containerd.sock") }

// Containerd is its configuration, ContainerdRoot its images and containers.
func (n NodeLayout) Containerd() string { return filepath.Join(n.Dir, "containerd.toml") }

// ContainerdRoot survives reboots.
func (n NodeLayout) ContainerdRoot() string { return filepath.Join(n.Dir, "containerd") }

// ContainerdState is what of containerd does not survive.
func (n NodeLayout) ContainerdState() string { return filepath.Join(n.Volatile(), "containerd") }

// CNI is the directory with the network configuration of pods.
func (n NodeLayout) CNI() string { return filepath.Join(n.Dir, "cni") }

// Kubelet is its configuration, KubeletRoot what it keeps: emptyDirs above all.
func (n NodeLayout) Kubelet() string { return filepath.Join(n.Dir, "kubelet.yaml") }

// KubeletRoot survives reboots.
func (n NodeLayout) KubeletRoot() string { return filepath.Join(n.Dir, "kubelet") }

// PodLogs is where the output of containers is kept.
func (n NodeLayout) PodLogs() string { return filepath.Join(n.Dir, "podlogs") }

// Volumes holds the directories behind the node's PersistentVolumes.
func (n NodeLayout) Volumes() string { return filepath.Join(n.Dir, "volumes") }
