package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"alineo.dev/devcluster/internal/plan"
)

// options are what the command line says after the command.
type options struct {
	name, cache, checkout string
	all                   bool
	lines                 int
	args                  []string
}

// usageError is a command line that makes no sense.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// parse reads flags and arguments in any order.
func parse(verb string, words []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet(verb, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.name, "name", "", "")
	flags.StringVar(&o.cache, "cache", "", "")
	flags.BoolVar(&o.all, "all", false, "")
	flags.IntVar(&o.lines, "lines", 100, "")
	for len(words) > 0 {
		if err := flags.Parse(words); err != nil {
			return o, &usageError{fmt.Sprintf("%v; see `devcluster help`", err)}
		}
		words = flags.Args()
		if len(words) > 0 {
			o.args, words = append(o.args, words[0]), words[1:]
		}
	}
	return o.withDefaults()
}

func (o options) withDefaults() (options, error) {
	var err error
	if o.cache == "" {
		o.cache = defaultCache()
	}
	if o.cache, err = filepath.Abs(o.cache); err != nil {
		return o, err
	}
	if o.name == "" {
		if o.checkout, err = findCheckout(); err != nil {
			return o, err
		}
		o.name = plan.DefaultName(o.checkout)
	}
	if _, err := plan.New(o.name, 0); err != nil {
		return o, &usageError{err.Error()}
	}
	return o, nil
}

func defaultCache() string {
	if dir := os.Getenv("ALINEOD_CACHE"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "alineod")
	}
	return filepath.Join(os.Getenv("HOME"), ".cache", "alineod")
}

// findCheckout looks for the checkout around the working directory: its path names the default cluster.
func findCheckout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "hack", "devcluster", "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", &usageError{fmt.Sprintf("%s is not in a checkout of alineod: change to one, or name the cluster with --name", dir)}
		}
	}
}
