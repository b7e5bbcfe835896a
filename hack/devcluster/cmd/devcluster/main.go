// Command devcluster runs a real Kubernetes of two nodes on one Linux machine, without a container engine
// or a registry. See `devcluster help`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"alineo.dev/devcluster/internal/cluster"
)

// Exit codes: callers tell a machine that cannot hold a cluster from anything that went wrong.
const (
	exitFailure = 1
	exitUsage   = 2
	exitUnable  = 3
)

func main() {
	if err := dispatch(context.Background(), os.Args[1:]); err != nil {
		if text := err.Error(); text != "" {
			fmt.Fprintln(os.Stderr, "devcluster:", text)
		}
		os.Exit(exitCode(err))
	}
}

func exitCode(err error) int {
	var unable *cluster.UnableError
	var usage *usageError
	switch {
	case errors.As(err, &unable):
		return exitUnable
	case errors.As(err, &usage):
		return exitUsage
	default:
		return exitFailure
	}
}
