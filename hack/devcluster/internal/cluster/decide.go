package cluster

// Observation is what `up` saw before it did anything.
type Observation struct {
	State State
	// Boot and Build are what they would be for a cluster started now.
	Boot, Build string
	// Dead are the processes of the host that should run and do not; AllDead says that none is left.
	Dead    []string
	AllDead bool
	// Answers says whether the API server is ready.
	Answers bool
	// OffNodes lack a process or their network, CutNodes have their cable out, UnreadyNodes only are not Ready.
	OffNodes, CutNodes, UnreadyNodes []string
}

// Verb is what `up` does.
type Verb int

const (
	// Nothing: all is as it should be.
	Nothing Verb = iota
	// Mend starts what has died and joins what was cut; what runs goes on running.
	Mend
	// Start clears away whatever is left and starts from the kept data.
	Start
)

// Decision is a verb with its reason for a person.
type Decision struct {
	Verb   Verb
	Reason string
}

// Decide chooses the smallest step that leads to a whole cluster.
func Decide(o Observation) Decision {
	switch {
	case o.State.Phase == PhaseDown:
		return Decision{Start, "it is down"}
	case o.State.Boot != o.Boot:
		return Decision{Start, "the machine was started anew since"}
	case o.State.Phase == PhaseStarting:
		return Decision{Start, "an earlier start did not end; clearing away what it left"}
	case o.State.Build != o.Build:
		return Decision{Start, "its programs or settings have changed; data and images are kept"}
	case o.AllDead:
		return Decision{Start, "all its processes have ended"}
	case len(o.Dead) > 0:
		return Decision{Mend, "some of its processes have ended"}
	case !o.Answers:
		return Decision{Start, "its API server does not answer"}
	case len(o.OffNodes)+len(o.CutNodes)+len(o.UnreadyNodes) > 0:
		return Decision{Mend, "a node is off, cut or not Ready"}
	default:
		return Decision{Nothing, "it is up"}
	}
}
