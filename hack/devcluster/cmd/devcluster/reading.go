package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"alineo.dev/devcluster/internal/cluster"
)

// The commands of this file only read, so they take no lock and answer while another changes the cluster.

func status(ctx context.Context, o options) error {
	c, err := open(o, cluster.NewProgress(os.Stdout))
	if err != nil {
		return err
	}
	observed, err := c.Observe(ctx)
	if err != nil {
		return err
	}
	text, whole := c.Status(observed)
	fmt.Print(text)
	if !whole {
		return errors.New("the cluster is not whole: `devcluster up` makes it so")
	}
	return nil
}

func environment(_ context.Context, o options) error {
	c, err := open(o, cluster.NewProgress(os.Stdout))
	if err != nil {
		return err
	}
	proxied := false
	for _, variable := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		proxied = proxied || os.Getenv(variable) != ""
	}
	fmt.Print(c.Environment(bin(o), proxied))
	return nil
}

func logs(_ context.Context, o options) error {
	c, err := open(o, cluster.NewProgress(os.Stdout))
	if err != nil {
		return err
	}
	if len(o.args) == 0 {
		fmt.Println(strings.Join(c.Components(), "\n"))
		return nil
	}
	for _, component := range o.args {
		text, err := c.Log(component, o.lines)
		if err != nil {
			return err
		}
		fmt.Println(text)
	}
	return nil
}

func doctor(_ context.Context, o options) error {
	facts, err := cluster.Examine(o.cache, o.name)
	if err != nil {
		return err
	}
	fmt.Print(cluster.Describe(facts))
	return nil
}
