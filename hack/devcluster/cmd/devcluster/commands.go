package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"alineo.dev/devcluster/internal/cluster"
	"alineo.dev/devcluster/internal/plan"
)

// options are the flags that every command has.
type options struct {
	name, cache, checkout string
	all                   bool
	args                  []string
}

type command struct {
	summary string
	run     func(ctx context.Context, o options) error
}

func commands() map[string]command {
	return map[string]command{
		"up":      {"start the cluster, or say that it is up", up},
		"down":    {"stop the cluster and keep its data (--all: remove everything)", down},
		"destroy": {"stop the cluster and remove everything", destroy},
		"load":    {"IMAGE.tar…: put docker archives into the nodes", load},
		"node":    {"{stop|start|cut|join|reboot} NAME: switch a node off and on, take its cable out and put it back", node},
		"volumes": {"", volumes},
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("no command")
	}
	chosen, known := commands()[args[0]]
	if !known {
		return fmt.Errorf("no command %q", args[0])
	}
	o, err := parse(args[0], args[1:])
	if err != nil {
		return err
	}
	return chosen.run(ctx, o)
}

func exitCode(error) int { return 1 }

func parse(verb string, args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet(verb, flag.ContinueOnError)
	flags.StringVar(&o.name, "name", "", "name of the cluster (default: from the path of the checkout)")
	flags.StringVar(&o.cache, "cache", defaultCache(), "where clusters and tools are kept")
	flags.BoolVar(&o.all, "all", false, "remove everything")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.args = flags.Args()
	if o.name == "" {
		checkout, err := findCheckout()
		if err != nil {
			return o, err
		}
		o.checkout, o.name = checkout, plan.DefaultName(checkout)
	}
	return o, nil
}

func defaultCache() string {
	if dir := os.Getenv("ALINEOD_CACHE"); dir != "" {
		return dir
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = "/root/.cache"
	}
	return filepath.Join(base, "alineod")
}

func findCheckout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "hack", "devcluster", "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in a checkout of alineod: change to one, or name the cluster with --name", dir)
		}
	}
}

func locked(o options, kind cluster.LockKind, act func(out *cluster.Progress) error) error {
	out := cluster.NewProgress(os.Stdout)
	unlock, err := cluster.Lock(o.cache, o.name, kind, out)
	if err != nil {
		return err
	}
	defer unlock()
	return act(out)
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
			return nil
		}
		if err != nil {
			return err
		}
		return c.Destroy()
	})
}

func load(_ context.Context, o options) error {
	return locked(o, cluster.Shared, func(out *cluster.Progress) error {
		c, err := cluster.Open(o.cache, o.name, out)
		if err != nil {
			return err
		}
		return c.Load(o.args)
	})
}

func node(ctx context.Context, o options) error {
	return nil
}

func volumes(ctx context.Context, o options) error {
	c, err := cluster.Open(o.cache, o.name, cluster.NewProgress(os.Stdout))
	if err != nil {
		return err
	}
	return c.KeepVolumes(ctx)
}
