// Command devcluster runs a real Kubernetes of two nodes on one Linux machine, without a container engine
// or a registry. See `devcluster help`.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	if err := dispatch(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		os.Exit(exitCode(err))
	}
}
