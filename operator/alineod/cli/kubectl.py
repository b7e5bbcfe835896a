"""`kubectl alineo VERB`: what a person does with swarms beyond `kubectl get`.

    tree    the agents of a swarm, each below its parent
    prompt  give an agent a further turn
    result  what came of an agent's turn

Exit codes: 0 done, or the turn ended well; 1 refused, or the turn ended otherwise; 2 wrong call; 4 not settled yet.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from urllib.parse import urlencode

from alineod.cli.cluster import Answer, Cluster, call_api
from alineod.cli.tree import build_lines, parse_node
from alineod.errors import AlineoError, Refused

DONE, FAILED, PENDING = 0, 1, 4
MAX_WAIT = 240  # s that one call may be held
SUCCESS = "success"
Verb = Callable[[argparse.Namespace, Cluster], int]


@dataclass(frozen=True)
class Session:
    """A way to the API, as somebody. `agents` is the URL under which the namespace's agents stand."""

    agents: str
    token: str

    def call(self, path: str, body: object = None) -> Answer:
        """One call; a refusal is raised in the operator's own words.

        Raises:
            Refused: with the problem's title as reason.
        """
        answer = call_api(f"{self.agents}/{path}", self.token, body)
        if answer.status >= 400:
            raise Refused(str(answer.body.get("title", answer.status)), str(answer.body.get("detail", "refused")))
        return answer


def main(arguments: Sequence[str] | None = None, env: Mapping[str, str] = os.environ) -> int:
    """Run one verb and return its exit code."""
    options = build_parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    cluster = Cluster(tuple(_kubectl_flags(options)), env.get("KUBECTL", "kubectl"))
    try:
        return VERBS[options.verb](options, cluster)
    except AlineoError as error:
        print(f"kubectl-alineo: {error.message}", file=sys.stderr)
        return FAILED


def show_tree(options: argparse.Namespace, cluster: Cluster) -> int:
    """Every swarm of the namespace, or one."""
    chosen = [f"--selector=alineo.dev/swarm={options.swarm}"] if options.swarm else []
    agents = cluster.read_json("get", "agents.alineo.dev", *chosen)["items"]
    if options.swarm and not agents:
        cluster.run("get", "swarms.alineo.dev", options.swarm)  # kubectl's own words if it is not there
    if options.output == "json":
        print(json.dumps(agents, indent=2))
        return DONE
    for swarm in sorted({agent["spec"]["swarm"] for agent in agents}):
        print(swarm)
        nodes = [parse_node(agent) for agent in agents if agent["spec"]["swarm"] == swarm]
        print("\n".join(f"  {line}" for line in build_lines(nodes)))
    return DONE


def send_prompt(options: argparse.Namespace, cluster: Cluster) -> int:
    """Accept the prompt, say which turn it becomes, and wait for that if asked to."""
    text = sys.stdin.read() if options.text == "-" else options.text
    with open_session(options, cluster) as session:
        accepted = session.call(f"{options.agent}/prompt", {"prompt": text, "idempotencyKey": options.key})
        print(f"{accepted.body['agent']}: turn {accepted.body['turn']}, unless one is cut before it", file=sys.stderr)
        if options.wait:
            return print_result(session, options, {"idempotencyKey": accepted.body["idempotencyKey"]})
        if options.output == "json":
            print(json.dumps(accepted.body, indent=2))
        return DONE


def show_result(options: argparse.Namespace, cluster: Cluster) -> int:
    """Print the text; say on stderr how it ended unless it ended well."""
    with open_session(options, cluster) as session:
        asked = {"turn": options.turn, "idempotencyKey": options.key}
        return print_result(session, options, {name: value for name, value in asked.items() if value})


def print_result(session: Session, options: argparse.Namespace, which: Mapping[str, object]) -> int:
    """Hold the question for `--wait` seconds, in calls as long as the operator holds them."""
    left = options.wait
    while True:
        query = urlencode({"wait": min(left, MAX_WAIT), **which})
        answer = session.call(f"{options.agent}/result?{query}")
        left -= MAX_WAIT
        if answer.status != 202 or left <= 0:
            break
    if options.output == "json":
        print(json.dumps(answer.body, indent=2))
    elif answer.status != 202 and answer.body.get("result"):
        print(answer.body["result"])
    return _judge(answer)


def _judge(answer: Answer) -> int:
    if answer.status == 202:
        print(f"turn {answer.body.get('turn')} has not settled yet: ask again, or with --wait SECONDS", file=sys.stderr)
        return PENDING
    outcome = answer.body.get("outcome")
    if outcome == SUCCESS:
        if not answer.body.get("result"):
            print(f"turn {answer.body.get('turn')} ended well with an empty answer", file=sys.stderr)
        return DONE
    reason = answer.body.get("error") or answer.body.get("errorKind") or "no reason was given"
    print(f"turn {answer.body.get('turn')} ended {outcome}: {reason}", file=sys.stderr)
    return FAILED


@contextmanager
def open_session(options: argparse.Namespace, cluster: Cluster) -> Iterator[Session]:
    """A way to the operator for as long as the block runs, as the person that kubectl is."""
    token = options.token or cluster.read_token(options.service_account)
    namespace, service = options.operator.split("/", 1)
    way = nullcontext(options.url.rstrip("/")) if options.url else cluster.forward(namespace, service)
    with way as url:
        yield Session(f"{url}/v1/agents/{cluster.read_namespace()}", token)


def _kubectl_flags(options: argparse.Namespace) -> Iterator[str]:
    for name in ("kubeconfig", "context", "namespace"):
        if value := getattr(options, name):
            yield f"--{name}={value}"


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kubectl-alineo", description="Look at swarms and talk to their agents.")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    tree = verbs.add_parser("tree", help="the agents of a swarm, each below its parent")
    tree.add_argument("swarm", nargs="?", default="", help="default: every swarm of the namespace")
    prompt = verbs.add_parser("prompt", help="give an agent a further turn")
    prompt.add_argument("agent", help="name of the Agent object, such as survey-left")
    prompt.add_argument("text", help="what it is to do; - reads it from the standard input")
    prompt.add_argument("--key", default="", help="idempotency key: a repeat with the same one is the same prompt")
    result = verbs.add_parser("result", help="what came of an agent's turn")
    result.add_argument("agent", help="name of the Agent object")
    result.add_argument("--turn", type=int, help="default: the latest")
    result.add_argument("--key", default="", help="of a prompt: the turn that it became")
    for verb in (tree, prompt, result):
        _add_kubectl_flags(verb)
    for verb in (prompt, result):
        _add_api_flags(verb)
    return parser


def _add_kubectl_flags(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("-n", "--namespace", help="as kubectl's")
    verb.add_argument("--context", help="as kubectl's")
    verb.add_argument("--kubeconfig", help="as kubectl's")
    verb.add_argument("-o", "--output", choices=["json"], help="print JSON")


def _add_api_flags(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--wait", type=int, default=0, metavar="SECONDS", help="how long to wait for the turn to settle")
    verb.add_argument("--operator", default="alineod-system/alineod", help="namespace/service of the operator")
    verb.add_argument("--url", default="", help="the operator's API where it is reached without a port-forward")
    verb.add_argument("--service-account", default="", metavar="NAME", help="ask as this one of the namespace")
    verb.add_argument("--token", default="", help="ask with this token")


VERBS: Mapping[str, Verb] = {"tree": show_tree, "prompt": send_prompt, "result": show_result}

if __name__ == "__main__":
    sys.exit(main())
