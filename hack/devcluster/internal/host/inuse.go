package host

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"os"
	"strings"
)

// ReadPrefixesInUse returns every IPv4 network that the machine has an address in or a route to, except
// through the named device (a cluster's own bridge does not stand in its own way).
func ReadPrefixesInUse(except string) ([]netip.Prefix, error) {
	var found []netip.Prefix
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, device := range interfaces {
		if device.Name != except {
			found = append(found, prefixesOf(device)...)
		}
	}
	routes, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return nil, err
	}
	return append(found, parseRoutes(string(routes), except)...), nil
}

func prefixesOf(device net.Interface) []netip.Prefix {
	addresses, err := device.Addrs()
	if err != nil {
		return nil // the device went away while we looked
	}
	var found []netip.Prefix
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil && prefix.Addr().Is4() {
			found = append(found, prefix.Masked())
		}
	}
	return found
}

// parseRoutes reads /proc/net/route: addresses are little-endian hexadecimal; a device of "*" is an
// unreachable route, which is how our own clusters fence their networks.
func parseRoutes(table, except string) []netip.Prefix {
	var found []netip.Prefix
	lines := bufio.NewScanner(strings.NewReader(table))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 || fields[0] == "Iface" || fields[0] == except || fields[0] == "*" {
			continue
		}
		destination, mask := littleEndian(fields[1]), littleEndian(fields[7])
		ones, _ := net.IPMask(mask[:]).Size()
		if ones > 0 {
			found = append(found, netip.PrefixFrom(netip.AddrFrom4(destination), ones))
		}
	}
	return found
}

func littleEndian(text string) [4]byte {
	var out [4]byte
	raw, err := hex.DecodeString(text)
	if err == nil && len(raw) == 4 {
		binary.BigEndian.PutUint32(out[:], binary.LittleEndian.Uint32(raw))
	}
	return out
}
