"""The control API: routes, who may use them, and errors as problem+json. What is done is done in `reconcile`."""
