"""Sandbox pods: from models to the object the API server takes, and from the object it shows to facts."""
