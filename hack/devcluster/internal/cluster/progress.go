package cluster

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Progress prints what happens, each line with the seconds since the start.
type Progress struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

// NewProgress starts the clock.
func NewProgress(out io.Writer) *Progress { return &Progress{out: out, start: time.Now()} }

// Say prints one line.
func (p *Progress) Say(format string, values ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%6.1fs  %s\n", time.Since(p.start).Seconds(), fmt.Sprintf(format, values...))
}

const (
	pollEvery = 100 * time.Millisecond
	// patience is how long a wait may last before it says again what it waits for.
	patience = 5 * time.Second
)

// Wait asks check until it is content. It says what it waits for when that takes long, with the last reason,
// and gives up after limit or when broken finds that waiting is in vain.
func (p *Progress) Wait(what string, limit time.Duration, check, broken func() error) error {
	begin, spoken := time.Now(), time.Now()
	for {
		err := check()
		if err == nil {
			return nil
		}
		if fatal := broken(); fatal != nil {
			return fmt.Errorf("waiting for %s: %w", what, fatal)
		}
		if time.Since(begin) > limit {
			return fmt.Errorf("%s took longer than %s; last answer: %w", what, limit, err)
		}
		if time.Since(spoken) > patience {
			spoken = time.Now()
			p.Say("waiting for %s (%v)", what, err)
		}
		time.Sleep(pollEvery)
	}
}
