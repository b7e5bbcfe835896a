package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
)

// broadRoute is the prefix length below which a route says where a whole company's or provider's network is
// (10.0.0.0/8 by a VPN); ours is more specific and wins without disturbing anyone but the cluster's own range.
const broadRoute = 10

// DefaultName is the name of the cluster that belongs to a checkout, by the checkout's absolute path.
func DefaultName(checkout string) string {
	sum := sha256.Sum256([]byte(checkout))
	return "alineod-" + hex.EncodeToString(sum[:3])
}

// Choose returns an index whose network overlaps no prefix in use on the machine and which no other cluster
// has claimed. It starts at a place that the name gives, so a cluster mostly gets the same index again.
func Choose(name string, inUse []netip.Prefix, claimed map[int]string) (int, error) {
	sum := sha256.Sum256([]byte(name))
	start := int(sum[0]) % Indexes
	for offset := range Indexes {
		index := (start + offset) % Indexes
		if _, taken := claimed[index]; taken {
			continue
		}
		p, err := New(name, index)
		if err != nil {
			return 0, err
		}
		if _, overlaps := p.Overlap(inUse); !overlaps {
			return index, nil
		}
	}
	return 0, fmt.Errorf("no free network is left for a cluster: each of 10.%d.0.0/16 to 10.%d.0.0/16 is in use or belongs to another cluster; remove one with `devcluster destroy --name NAME`", firstOctet, firstOctet+Indexes-1)
}

// Overlap returns the first prefix in use that the cluster's network would collide with.
func (p Plan) Overlap(inUse []netip.Prefix) (netip.Prefix, bool) {
	for _, prefix := range inUse {
		if prefix.Bits() >= broadRoute && prefix.Overlaps(p.Network()) {
			return prefix, true
		}
	}
	return netip.Prefix{}, false
}
