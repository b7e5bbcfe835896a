"""The invariants, over what was recorded. Pure.

Each gives sentences about what must not be; none means that it holds. What is expected of a conversation follows from
the ledger, and what the ledger says is held against the model's own log, the bucket and the objects.
"""

from collections.abc import Callable, Iterator, Mapping

from hack.faults.case import Case, Json, find_ask, find_notes, key_of, name_turns, says_lost
from hack.faults.evidence import Look
from hack.faults.expected import INTERRUPTED, Cuts
from hack.faults.reading import Read, Turn, read_agent
from hack.faults.scene import WORDS
from hack.faults.table import TURNING, Column


def find_absent(case: Case) -> Iterator[str]:
    """It is where it should be, and answers."""
    if words := case.evidence.unsettled.get(case.name):
        yield f"it did not come to rest: {words}"
    answer = case.evidence.answers.get(case.name)
    if answer is None or answer.late:
        yield f"it did not answer: {answer.late if answer else 'nobody could ask it'}"
    elif (answer.status, answer.outcome) != (200, "success"):
        yield f"its answer is {answer.status} {answer.outcome or 'without an outcome'}: {answer.result[:200]}"


def find_forgotten(case: Case) -> Iterator[str]:
    """The conversation is that of the last clean turn that could be read, or better, and nothing of a cut turn."""
    asked = find_ask(case)
    if asked is None:
        yield "the model was never asked what the agent remembers"
        return
    memory = [turn for turn in case.after.memory if turn != case.after.last]
    failed = [turn for turn, one in case.after.turns.items() if one.ends[-1:] == ("Failed",)]
    found = [turn for turn in name_turns(case, asked["users"][:-1]) if turn not in failed]
    if found != memory:
        yield f"the conversation holds the turns {found}, by the ledger it should hold {memory}"
    kept = max(case.evidence.readable.get(case.name, ()), default=0)
    clean = [turn for turn in case.before.memory if turn <= kept and turn not in memory]
    if clean:
        yield f"the turns {clean} had ended cleanly, their checkpoints could be read, and they are gone"
    if case.settled.forgotten and not says_lost(case):
        yield f"the clean turns {list(case.settled.forgotten)} are gone and no condition says so"


def find_wrong_files(case: Case) -> Iterator[str]:
    """The files are those of the same turns: all of them, and of a cut turn nothing after a Restore."""
    noted = find_notes(case)
    if noted is None:
        return
    memory = [turn for turn in case.after.memory if turn != case.after.last]
    if missing := [turn for turn in memory if turn not in noted]:
        yield f"the files lack what the turns {missing} wrote"
    spare = [turn for turn in noted if turn not in memory]
    if spare and case.settled.fresh:
        yield f"the files hold what the turns {spare} wrote, which the conversation does not know"


def find_repeated(case: Case) -> Iterator[str]:
    """No prompt reached the model more often than the ledger has attempts and the harness's own retries of it."""
    for number, say in case.said.items():
        turn = case.after.turns.get(number)
        allowed = turn.starts + turn.retries if turn else 0
        times = sum(one["users"][-1].endswith(say) and one["roles"][-1] == "user" for one in case.requests)
        if times > allowed:
            yield f"the prompt of turn {number} reached the model {times} times, in {allowed} attempts of the ledger"


def find_unrecorded(case: Case) -> Iterator[str]:
    """Every attempt of every turn has one end."""
    for number, turn in sorted(case.after.turns.items()):
        if len(turn.ends) != turn.starts:
            ends = ", ".join(turn.ends) or "none"
            yield f"turn {number} was begun {turn.starts} times and has the ends: {ends}"
    for number in sorted(case.before.turns.keys() - case.after.turns.keys()):
        yield f"turn {number} had begun and the ledger has lost it"


def find_wrong_cut(case: Case) -> Iterator[str]:
    """A turn is cut where the fault cuts it, and no other; none ends in another way."""
    ends = {"Clean"} if case.expected.cuts is Cuts.NEVER else {"Clean", INTERRUPTED}
    for number, turn in sorted(case.settled.turns.items()):
        if wrong := [end for end in turn.ends if end not in ends]:
            yield f"turn {number} has ended as {', '.join(wrong)}, and the fault does that to none"
    struck = case.settled.turns.get(case.before.last, Turn())
    if case.expected.cuts is Cuts.MUST and case.column in TURNING and struck.ends[:1] != (INTERRUPTED,):
        yield f"turn {case.before.last} ran when the fault struck and was not cut: {', '.join(struck.ends) or 'no end'}"


def find_untold(case: Case) -> Iterator[str]:
    """What survived of a cut turn is recorded and given to who waits, and the agent is told of the cut."""
    asked = find_ask(case)
    for number, turn in sorted(case.settled.turns.items()):
        if INTERRUPTED not in turn.ends:
            continue
        if case.column is Column.WITH_TEXT and case.expected.heard and not (turn.text and WORDS.startswith(turn.text)):
            yield f"of turn {number} the text {turn.text!r} is kept, and the model had said: {WORDS[:40]}"
        if case.column is Column.IN_TOOL and "bash" not in turn.tools:
            yield f"of turn {number} the tools {list(turn.tools)} are kept, and it had started bash"
        if turn.result != turn.text:
            yield f"turn {number} was settled with {turn.result!r} and {turn.text!r} had survived"
        if asked is not None and f"Turn {number} was cut off" not in asked["users"][-1]:
            yield f"the next prompt says nothing of turn {number}, which was cut off"


def find_wrong_rung(case: Case) -> Iterator[str]:
    """The rung that brought it back is one that fits the fault, and no lower one was used."""
    expected = case.expected
    if other := [rung for rung in case.rungs if rung not in (*expected.rungs, *expected.also)]:
        yield f"it came back by {', '.join(other)}; the fault asks for {' or '.join(expected.rungs) or 'nothing'}"
    if expected.rungs and case.column is not Column.HELD and not set(case.rungs) & set(expected.rungs):
        yield f"it came back by {', '.join(case.rungs) or 'nothing'} and not by {' or '.join(expected.rungs)}"


def find_unreleased(case: Case) -> Iterator[str]:
    """Whoever waits on a turn is let go once, and a held agent not before the one it waits for has settled."""
    for number, turn in sorted(case.after.turns.items()):
        if turn.ends and len(turn.settled) != 1:
            yield f"turn {number} has ended and its handle is settled {len(turn.settled)} times"
    if case.column is not Column.HELD:
        return
    gate = read_agent(case.evidence.after.rows, key_of(case, Column.PROVISIONING))
    settled = next((turn.settled for turn in gate.turns.values() if turn.settled), ())
    if settled and len(case.after.waits) != 1:
        yield f"the agent it waits for has settled and its wait was resolved {len(case.after.waits)} times"
    if case.after.waits and (not settled or case.after.waits[0] < settled[0]):
        yield "it was let go before the agent it waits for had settled"


def find_changed_edges(case: Case) -> Iterator[str]:
    """One agent of the name, with the parent it had."""
    before, after = (look.agents.get(case.name) for look in (case.evidence.before, case.evidence.after))
    if after is None:
        yield "its Agent object is gone"
        return
    parents = [(one or {}).get("spec", {}).get("parent") for one in (before, after)]
    if parents[0] != parents[1] or case.before.parent != case.after.parent:
        yield f"its parent was {parents[0]} ({case.before.parent}) and is {parents[1]} ({case.after.parent})"
    if case.after.spawned != 1:
        yield f"it was spawned {case.after.spawned} times"


def find_broken_chain(case: Case) -> Iterator[str]:
    """`seq` has no gap, each row names the hash of the one before, and what stood before the fault still stands."""
    chain = case.evidence.chain
    if not chain.intact:
        yield f"alineod ledger verify: {chain.words}"
    last: tuple[int, str] | None = None
    for seq, prev, own in chain.links:
        if last is not None and (seq != last[0] + 1 or prev != last[1]):
            yield f"row {seq} does not follow row {last[0]}"
            break
        last = (seq, own)
    stood = case.evidence.before.head
    if stood[0] and stood not in {(seq, own) for seq, _, own in chain.links}:
        yield f"row {stood[0]} stood in the ledger before the fault and does not any more"


def find_false_status(case: Case) -> Iterator[str]:
    """What a person reads agrees with the ledger, when it came to rest and at the end."""
    for when, look, read in (("at rest", case.evidence.settled, case.settled), ("at the end", *_end(case))):
        agent = look.agents.get(case.name)
        shown = agent.get("status") or {} if agent else {}
        for what, seen, known in _compare(shown, read):
            if seen != known:
                yield f"{when} its status shows {what} {seen!r} and the ledger has {known!r}"


INVARIANTS: Mapping[str, Callable[[Case], Iterator[str]]] = {
    "back": find_absent,
    "conversation": find_forgotten,
    "files": find_wrong_files,
    "once": find_repeated,
    "recorded": find_unrecorded,
    "cut": find_wrong_cut,
    "told": find_untold,
    "rung": find_wrong_rung,
    "waiters": find_unreleased,
    "edges": find_changed_edges,
    "chain": find_broken_chain,
    "status": find_false_status,
}


def _end(case: Case) -> tuple[Look, Read]:
    return case.evidence.after, case.after


def _compare(shown: Json, read: Read) -> Iterator[tuple[str, object, object]]:
    """What the status shows beside what the ledger has."""
    turn, sandbox = shown.get("turn") or {}, shown.get("sandbox") or {}
    conditions = {c["type"]: c["status"] for c in shown.get("conditions") or ()}
    last = read.turns.get(read.last)
    state = (last.ends[-1] if len(last.ends) == last.starts else "Running") if last and last.ends else "Running"
    yield "the phase", shown.get("phase"), read.phase
    yield "the turn", turn.get("number", 0), read.last
    if read.last:
        yield "the turn's state", turn.get("state"), state
        yield "Running", conditions.get("Running"), "True" if state == "Running" else "False"
    yield "Interrupted", conditions.get("Interrupted"), "True" if read.interrupted else "False"
    yield "the pod", sandbox.get("pod", ""), read.pod
    yield "the rung", (shown.get("restore") or {}).get("rung", ""), read.rung
    saved = bool(read.memory) and max(read.memory) in read.saved
    yield "Checkpointed", conditions.get("Checkpointed"), "True" if saved else "False"
