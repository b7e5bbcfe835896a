package cluster

import "testing"

func whole() Observation {
	return Observation{State: State{Phase: PhaseUp, Boot: "boot", Build: "build"}, Boot: "boot", Build: "build", Answers: true}
}

func TestDecide(t *testing.T) {
	for situation, c := range map[string]struct {
		change func(o *Observation)
		want   Verb
	}{
		"whole":                            {func(*Observation) {}, Nothing},
		"down":                             {func(o *Observation) { o.State.Phase = PhaseDown }, Start},
		"killed half-way through a start":  {func(o *Observation) { o.State.Phase = PhaseStarting }, Start},
		"the machine was booted since":     {func(o *Observation) { o.Boot = "next" }, Start},
		"booted since a killed start":      {func(o *Observation) { o.Boot, o.State.Phase = "next", PhaseStarting }, Start},
		"other programs":                   {func(o *Observation) { o.Build = "next" }, Start},
		"the scheduler died":               {func(o *Observation) { o.Dead = []string{"kube-scheduler"} }, Mend},
		"the API server died":              {func(o *Observation) { o.Dead, o.Answers = []string{"kube-apiserver"}, false }, Mend},
		"everything died":                  {func(o *Observation) { o.Dead, o.AllDead, o.Answers = []string{"etcd"}, true, false }, Start},
		"the API server hangs":             {func(o *Observation) { o.Answers = false }, Start},
		"a node is off":                    {func(o *Observation) { o.OffNodes = []string{"n1"} }, Mend},
		"a node is cut":                    {func(o *Observation) { o.CutNodes = []string{"n2"} }, Mend},
		"a node is not Ready yet":          {func(o *Observation) { o.UnreadyNodes = []string{"n2"} }, Mend},
		"other programs and a node is off": {func(o *Observation) { o.Build, o.OffNodes = "next", []string{"n1"} }, Start},
	} {
		o := whole()
		c.change(&o)
		if got := Decide(o); got.Verb != c.want || got.Reason == "" {
			t.Errorf("%s: %+v, want verb %d", situation, got, c.want)
		}
	}
}

func TestQuote(t *testing.T) {
	for path, want := range map[string]string{"/a b": "'/a b'", "/it's": `'/it'\''s'`} {
		if got := quote(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}
