package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"alineo.dev/devcluster/internal/cluster"
)

const usage = `usage: devcluster COMMAND [flags]

  up                      start the cluster, mend it, or say that it is up
  down                    stop it; data and images stay (--all: as destroy)
  destroy                 stop it and remove everything
  status                  what it is, where it is, what of it runs; exit code 0 if it is whole
  load IMAGE.tar...       put docker archives into both nodes
  node VERB NAME          stop: power failure; start; reboot; cut: take the network cable out; join: put it back
  env                     lines for a shell to evaluate: KUBECONFIG and PATH
  logs [COMPONENT]        the last lines of a component (--lines N), or the names of all
  doctor                  what this machine lacks, and what to do about it

  --name NAME             the cluster (default: from the path of the checkout you are in)
  --cache DIR             where clusters and tools lie (default: $ALINEOD_CACHE, or alineod in your cache directory)

exit codes: 0 done, 1 failed, 2 wrong command line, 3 this machine cannot hold a cluster
`

type command func(ctx context.Context, o options) error

var commands = map[string]command{
	"up": up, "down": down, "destroy": destroy, "status": status, "load": load, "node": node,
	"env": environment, "logs": logs, "doctor": doctor, "volumes": volumes,
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		fmt.Print(usage)
		return nil
	}
	run, known := commands[args[0]]
	if !known {
		return &usageError{fmt.Sprintf("no command %q; see `devcluster help`", args[0])}
	}
	o, err := parse(args[0], args[1:])
	if err != nil {
		return err
	}
	return run(ctx, o)
}

// locked runs something on a cluster while no other devcluster changes it.
func locked(o options, kind cluster.LockKind, act func(out *cluster.Progress) error) error {
	out := cluster.NewProgress(os.Stdout)
	unlock, err := cluster.Lock(o.cache, o.name, kind, out)
	if err != nil {
		return err
	}
	defer unlock()
	return act(out)
}

// open returns the cluster with its tools.
func open(o options, out *cluster.Progress) (*cluster.Cluster, error) {
	c, err := cluster.Open(o.cache, o.name, out)
	if errors.Is(err, cluster.ErrAbsent) {
		return nil, fmt.Errorf("there is no cluster %s: `devcluster up` makes it", o.name)
	}
	if err != nil {
		return nil, err
	}
	c.Tools, err = cluster.ToolsIn(o.cache)
	return c, err
}

func up(ctx context.Context, o options) error {
	return locked(o, cluster.Exclusive, func(out *cluster.Progress) error {
		tools, err := cluster.ToolsIn(o.cache)
		if err != nil {
			return err
		}
		c, err := cluster.Create(o.cache, o.name, o.checkout, out)
		if err != nil {
			return err
		}
		c.Tools = tools
		return c.Up(ctx)
	})
}

func down(ctx context.Context, o options) error {
	if o.all {
		return destroy(ctx, o)
	}
	return locked(o, cluster.Exclusive, func(out *cluster.Progress) error {
		c, err := cluster.Open(o.cache, o.name, out)
		if errors.Is(err, cluster.ErrAbsent) {
			out.Say("there is no cluster %s", o.name)
			return nil
		}
		if err != nil {
			return err
		}
		return c.Down()
	})
}

func destroy(_ context.Context, o options) error {
	return locked(o, cluster.Exclusive, func(out *cluster.Progress) error {
		c, err := cluster.Open(o.cache, o.name, out)
		if errors.Is(err, cluster.ErrAbsent) {
			return destroyRemains(o, out)
		}
		if err != nil {
			return err
		}
		return c.Destroy()
	})
}

func destroyRemains(o options, out *cluster.Progress) error {
	found, err := cluster.DeleteRemains(o.cache, o.name)
	if err != nil {
		return err
	}
	if found {
		out.Say("what was left of cluster %s is gone", o.name)
	} else {
		out.Say("there is no cluster %s", o.name)
	}
	return nil
}

func load(_ context.Context, o options) error {
	if len(o.args) == 0 {
		return &usageError{"load: name one or more docker archives"}
	}
	return locked(o, cluster.Shared, func(out *cluster.Progress) error {
		c, err := open(o, out)
		if err != nil {
			return err
		}
		return c.Load(o.args)
	})
}

func node(ctx context.Context, o options) error {
	if len(o.args) != 2 {
		return &usageError{"node: say what to do and to which node, for example `devcluster node cut n2`"}
	}
	return locked(o, cluster.Exclusive, func(out *cluster.Progress) error {
		c, err := open(o, out)
		if err != nil {
			return err
		}
		return c.Node(ctx, o.args[0], o.args[1])
	})
}

func volumes(ctx context.Context, o options) error {
	c, err := cluster.Open(o.cache, o.name, cluster.NewProgress(os.Stdout))
	if err != nil {
		return err
	}
	return c.KeepVolumes(ctx)
}

func bin(o options) string { return filepath.Join(o.cache, "bin") }
