"""The words of docs/durability-contract.md that no run decides: definitions, and what a restored agent has."""

BEFORE = """# Durability contract

Which trouble a swarm survives, by what was run and not by what was meant. The table is built from the report of the
fault matrix: a swarm with an agent in every state at once is struck, everybody has to come to rest, and each agent is
then asked what it remembers. A cell claims only what every state of every named fault has held in its last run.

"Resumable" and "durable" mean different things here:

- **Resumable**: after any trouble of the table, the operator, a sandbox, a node or the cluster comes back, and every
  agent is at its last saved turn, without anyone rebuilding state by hand.
- **Durable**: what was acknowledged is in the bucket, so that no trouble inside the cluster can undo it. That the same
  swarm is brought up on another cluster from the bucket alone joins this table with step 5, when it is shown.
"""

AFTER = """## What a restored agent has

- **Its conversation, to the last saved turn.** A turn that was running when its container went is recorded as
  `agent.turn_interrupted`, settles with the text that survived, and is named at the head of the agent's next prompt. A
  turn that had ended and whose checkpoint never reached the bucket is gone with its pod; the condition `Interrupted`
  then says `CleanTurnLost`.
- **Its home and `/workspace` as of that turn**, without package caches. What lies elsewhere comes back as the image has
  it; `/inputs` is written again. An agent whose container was restarted in its pod keeps the files it had.
- **Its place in the tree**: parent and children, who waits for it, and for whom it waits.

An agent without `checkpoint: true` comes back blank in its place.

## Definitions

- **Saved**: the turn's checkpoint was seen in the bucket by the operator and recorded with its `remoteRef`; the
  condition `Checkpointed` is True.
- **Acknowledged**: the answer was given after the event was in the bucket, where there is one.
- **Honest gap**: work after the last saved turn is either done again because somebody asked for it, or is reported:
  interrupted, lost as a clean turn, or `lost` when no rung holds. It is never dropped and never repeated in silence.
- **Side effects at least once**: a turn that pushed a branch or called another service and was then cut off may do so
  again when it is retried. Nothing takes a second effect away; `ALINEO_TURN_ID` is the same over the retries of a turn,
  so that a tool can. Only alineod's own commands are idempotent, by `idempotencyKey`.
"""
