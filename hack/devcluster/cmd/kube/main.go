// Command kube is every Kubernetes process of the development cluster in one static binary:
// the name it is called by, or its first argument, picks the process.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": kcm.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              kubeproxy.NewProxyCommand,
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubectl":                 func() *cobra.Command { return kubectl.NewDefaultKubectlCommand() },
}

func main() {
	name := filepath.Base(os.Args[0])
	if name == "kube" && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "coredns":
		coremain.Run()
		return
	}
	build, known := commands[name]
	if !known {
		fmt.Fprintf(os.Stderr, "kube: no process %q; it holds etcd, coredns, kubectl and the Kubernetes components\n", name)
		os.Exit(2)
	}
	cmd := build()
	cmd.SetArgs(os.Args[1:])
	os.Exit(cli.Run(cmd))
}
