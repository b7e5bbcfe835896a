package plan

import (
	"net/netip"
	"strings"
	"testing"
)

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

func TestChoose(t *testing.T) {
	home, err := Choose("x", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	network := mustNew(t, "x", home).Network()
	for situation, c := range map[string]struct {
		inUse   []netip.Prefix
		claimed map[int]string
		moves   bool
	}{
		"nothing in the way":                     {},
		"a network elsewhere":                    {inUse: prefixes("192.168.0.0/16", "172.17.0.0/16")},
		"a whole company behind a VPN":           {inUse: prefixes("10.0.0.0/8")},
		"the very network":                       {inUse: []netip.Prefix{network}, moves: true},
		"an address in it":                       {inUse: []netip.Prefix{netip.PrefixFrom(network.Addr(), 32)}, moves: true},
		"claimed by a cluster that is down":      {claimed: map[int]string{home: "other"}, moves: true},
		"another cluster's claim on another one": {claimed: map[int]string{(home + 1) % Indexes: "other"}},
	} {
		index, err := Choose("x", c.inUse, c.claimed)
		if err != nil || (index != home) != c.moves {
			t.Errorf("%s: index %d, %v (at home %d)", situation, index, err, home)
		}
	}
}

func TestChooseSaysWhenAllAreTaken(t *testing.T) {
	_, err := Choose("x", prefixes("10.192.0.0/10"), nil)
	if err == nil || !strings.Contains(err.Error(), "devcluster destroy") {
		t.Errorf("got %v", err)
	}
}

func TestDefaultNameFollowsThePath(t *testing.T) {
	one, two := DefaultName("/src/alineod"), DefaultName("/src/other")
	if one == two || one != DefaultName("/src/alineod") || !validName.MatchString(one) {
		t.Errorf("%s, %s", one, two)
	}
}
