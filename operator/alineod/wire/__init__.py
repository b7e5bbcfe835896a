"""Messages between the processes, as JSON. Knows nothing of Kubernetes, of storage or of any harness."""
