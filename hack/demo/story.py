"""The story of the demo, step by step. Each step does one thing and refuses to go on when it is not so."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hack.demo.api import Answer, ControlApi
from hack.demo.install import MODEL_KEY, apply_namespace, apply_secret
from hack.demo.run import DemoError
from hack.demo.show import Show
from hack.demo.target import ROOT, Target
from hack.demo.tree import Leaf, parse_leaf

EXAMPLE = ROOT / "examples" / "survey.yaml"
NAMESPACE = "demo"
SWARM, LEAD, WORKER, WRITER = "survey", "survey-lead", "survey-left", "survey-writer"
LADDER = ("TurnInterrupted", "Restored")
LOOK = 0.5  # s between looks
LIMIT = 240.0  # s anything here may take
SECRET_WORDS = "the harbour was built in 1887"
ENDLESS = (
    f"Please note that {SECRET_WORDS}, then go on with part one. "
    '<<[{"tool": "bash", "args": {"command": "echo half done > /workspace/half.txt"}}, '
    '{"text": "I looked at the first sources and found that' + " ..." * 60 + '", "chunk": 4, "delay": 0.5}]>>'
)
RECALL = 'What do you remember of our conversation? <<[{"recall": true}]>>'

Agent = Mapping[str, Any]


@dataclass(frozen=True)
class Stage:
    """Where the story plays."""

    target: Target
    show: Show
    api: ControlApi

    def kubectl(self, *words: str) -> str:
        return self.target.kubectl(f"--namespace={NAMESPACE}", *words).out

    def read_agents(self) -> list[Agent]:
        agents: list[Agent] = json.loads(self.kubectl("get", "agents", "-o", "json"))["items"]
        return agents

    def read_agent(self, name: str) -> Agent:
        agent: Agent = json.loads(self.kubectl("get", "agent", name, "-o", "json"))
        return agent

    def until(self, what: str, agent: str, holds: Callable[[Agent], bool]) -> Agent:
        """The agent, once it is so. `what` completes "it did not come about that ..."."""
        end = time.monotonic() + LIMIT
        while True:
            seen = self.read_agent(agent)
            if holds(seen):
                return seen
            if time.monotonic() > end:
                raise DemoError(f"it did not come about that {what}; {_explain(seen)}")
            time.sleep(LOOK)


def apply_example(target: Target, show: Show) -> None:
    """A fresh namespace's worth: the swarm of an earlier demo goes first, so that this one is told from the start."""
    apply_namespace(target, NAMESPACE)
    apply_secret(target, NAMESPACE, "model", {"api-key": MODEL_KEY})
    where = f"--namespace={NAMESPACE}"
    if target.kubectl(where, "get", "swarm", SWARM, check=False).code == 0:
        show.say("   the swarm of an earlier demo is removed first")
        target.kubectl(where, "delete", "swarm", SWARM, "--wait=true")
        target.kubectl(where, "wait", "--for=delete", "agents,pods", "--all", "--timeout=120s", check=False)
    target.kubectl(where, "apply", "-f", str(EXAMPLE))


def watch_tree(stage: Stage) -> None:
    """Show the tree until every agent is done and saved."""
    end = time.monotonic() + LIMIT
    while True:
        agents = stage.read_agents()
        leaves = _in_order(agents)
        stage.show.tree(leaves)
        if leaves and len(leaves) >= _count_entries(stage) and all(map(_is_saved, agents)):
            return
        failed = [agent for agent in agents if _phase(agent) in ("Failed", "Aborted", "Lost")]
        if failed or time.monotonic() > end:
            worst = failed[0] if failed else next(agent for agent in agents if not _is_saved(agent))
            raise DemoError(f"the swarm did not get done: {_explain(worst)}")
        time.sleep(LOOK)


def _count_entries(stage: Stage) -> int:
    return len(json.loads(stage.kubectl("get", "swarm", SWARM, "-o", "json"))["spec"]["agents"])


def _in_order(agents: list[Agent]) -> list[Leaf]:
    """By creation, as the swarm lists them."""
    return [
        parse_leaf(a) for a in sorted(agents, key=lambda a: (a["metadata"]["creationTimestamp"], a["metadata"]["name"]))
    ]


def interrupt_worker(stage: Stage) -> None:
    """A second turn, cut off in the middle by the deletion of its pod."""
    turn = _prompt(stage, WORKER, ENDLESS)
    running = stage.until(f"turn {turn} of {WORKER} runs", WORKER, lambda a: _turn(a) == (turn, "Running"))
    time.sleep(3)  # so that there is something to lose
    pod = running["status"]["sandbox"]["pod"]
    stage.show.say(f"   turn {turn} of {WORKER} is running in {pod}: the pod is deleted now, with a second to end")
    stage.kubectl("delete", "pod", pod, "--grace-period=1", "--wait=false")
    cut = stage.until(
        f"turn {turn} of {WORKER} is reported as interrupted",
        WORKER,
        lambda a: _condition(a, "Interrupted")[0] == "True",
    )
    stage.show.say(f"   Interrupted: {_condition(cut, 'Interrupted')[1]}")
    answer = stage.api.result(f"{NAMESPACE}/{WORKER}", turn=turn, wait=30)
    _expect(
        answer.body.get("errorKind") == "interrupted", f"the result of turn {turn} does not say interrupted", answer
    )


def ask_worker(stage: Stage) -> None:
    """It is back in another pod and remembers its first turn."""
    back = _wait_restored(stage, WORKER)
    first = _read_first_words(stage, WORKER)
    text = _ask(stage, WORKER, RECALL)
    if first not in text:
        raise DemoError(f"{WORKER} came back without its first turn: {text}")
    stage.show.say(f"   back by {back['status']['restore']['rung']} in {back['status']['sandbox']['pod']}; it says:")
    stage.show.quote(text)


def ask_lead(stage: Stage) -> None:
    """The pod of a finished agent goes; it comes back and answers a new prompt from memory."""
    pod = stage.read_agent(LEAD)["status"]["sandbox"]["pod"]
    stage.kubectl("delete", "pod", pod, "--wait=false")
    stage.until(f"{LEAD} has another pod than {pod}", LEAD, lambda a: a["status"]["sandbox"]["pod"] != pod)
    _wait_restored(stage, LEAD)
    text = _ask(stage, LEAD, RECALL)
    if _read_first_words(stage, LEAD) not in text:
        raise DemoError(f"{LEAD} came back without its conversation: {text}")
    stage.show.say("   it says:")
    stage.show.quote(text)


def print_ending(stage: Stage) -> None:
    """What a person wants to see at the end: the agents, the report, how each came back."""
    say = stage.show.say
    for agent in (LEAD, WORKER):
        stage.until(f"{agent} is done and saved", agent, _is_saved)
    say(f"\n$ kubectl --namespace {NAMESPACE} get swarms")
    say(stage.kubectl("get", "swarms"))
    say(f"$ kubectl --namespace {NAMESPACE} get agents")
    say(stage.kubectl("get", "agents"))
    report = stage.api.result(f"{NAMESPACE}/{WRITER}")
    _expect(report.body.get("outcome") == "success" and bool(report.body.get("result")), "there is no report", report)
    say("The writer's report, by the scripted model:\n")
    stage.show.quote(report.body["result"])
    say("\nHow they came back (Events with reason TurnInterrupted or Restored):")
    for event in _read_ladder(stage):
        say(f"   {event}")


def _read_ladder(stage: Stage) -> list[str]:
    """What the Events of these agents tell; those of an earlier demo's agents of the same names are not meant."""
    agents = {agent["metadata"]["uid"] for agent in stage.read_agents()}
    events = json.loads(stage.kubectl("get", "events", "-o", "json"))["items"]
    told = [e for e in events if e["reason"] in LADDER and e["involvedObject"].get("uid") in agents]
    for name, reason in ((WORKER, "TurnInterrupted"), (WORKER, "Restored"), (LEAD, "Restored")):
        if not any((e["involvedObject"]["name"], e["reason"]) == (name, reason) for e in told):
            raise DemoError(f"no Event {reason} tells of {name}")
    told.sort(key=lambda e: e.get("eventTime") or e.get("lastTimestamp") or "")
    return [f"{e['involvedObject']['name']}: {e['reason']}: {e['message']}" for e in told]


def _wait_restored(stage: Stage, agent: str) -> Agent:
    def holds(seen: Agent) -> bool:
        status = seen["status"]
        back = (status.get("restore") or {}).get("rung") == "Restore"
        return back and _condition(seen, "Ready")[0] == "True"

    return stage.until(f"{agent} is back by Restore and Ready", agent, holds)


def _prompt(stage: Stage, agent: str, text: str) -> int:
    answer = stage.api.prompt(f"{NAMESPACE}/{agent}", text)
    _expect(answer.status == 202, f"{agent} did not take the prompt", answer)
    return int(answer.body["turn"])


def _ask(stage: Stage, agent: str, text: str) -> str:
    """The text of the answer to a prompt."""
    turn = _prompt(stage, agent, text)
    end = time.monotonic() + LIMIT
    while True:
        answer = stage.api.result(f"{NAMESPACE}/{agent}", turn=turn, wait=30)
        if answer.status != 202:
            break
        if time.monotonic() > end:
            raise DemoError(f"{agent} did not answer its prompt")
    _expect(answer.body.get("outcome") == "success", f"{agent} did not answer", answer)
    return str(answer.body["result"])


def _read_first_words(stage: Stage, agent: str) -> str:
    """The beginning of the prompt of its first turn, without the script."""
    words: str = stage.read_agent(agent)["spec"]["prompt"]
    return words.partition("<<")[0].strip()[:60]


def _expect(so: bool, otherwise: str, answer: Answer) -> None:
    if not so:
        raise DemoError(f"{otherwise}: {answer.status} {json.dumps(answer.body)}")


def _phase(agent: Agent) -> str:
    return str((agent.get("status") or {}).get("phase") or "")


def _is_saved(agent: Agent) -> bool:
    return _phase(agent) == "Done" and _condition(agent, "Checkpointed")[0] == "True"


def _turn(agent: Agent) -> tuple[int, str]:
    turn = (agent.get("status") or {}).get("turn") or {}
    return (turn.get("number", 0), turn.get("state", ""))


def _condition(agent: Agent, kind: str) -> tuple[str, str]:
    """Status and message."""
    found = [c for c in (agent.get("status") or {}).get("conditions") or () if c["type"] == kind]
    return (found[0]["status"], found[0].get("message", "")) if found else ("", "")


def _explain(agent: Agent) -> str:
    status, message = _condition(agent, "Ready")
    return (
        f"{agent['metadata']['name']} is {_phase(agent) or 'not looked at yet'}, Ready {status or 'Unknown'}: {message}"
    )
