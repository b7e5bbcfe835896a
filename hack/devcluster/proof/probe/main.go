// Command probe is what the proof runs in pods: a server that names its pod, and a client to ask others from inside.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return serve()
	}
	switch args[0] {
	case "get":
		return get(args[1])
	case "lookup":
		addresses, err := net.LookupHost(args[1])
		fmt.Println(addresses)
		return err
	case "read":
		body, err := os.ReadFile(args[1])
		fmt.Print(string(body))
		return err
	case "write":
		return os.WriteFile(args[1], []byte(os.Getenv("HOSTNAME")), 0o644)
	default:
		return fmt.Errorf("probe: no command %q", args[0])
	}
}

func serve() error {
	fmt.Println("serving as", os.Getenv("HOSTNAME"))
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getenv("HOSTNAME")) })
	return http.ListenAndServe(":8080", nil)
}

func get(url string) error {
	client := &http.Client{Timeout: 3 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	fmt.Print(string(body))
	return err
}
