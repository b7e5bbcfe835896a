"""alineod runs swarms of coding agents on Kubernetes and never loses their work."""
