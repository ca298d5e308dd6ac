package store

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// fault is a kind of trouble that is logged at most once in faultInterval.
type fault uint8

const (
	faultWrite fault = iota
	faultRead
	faultUnlink
	faultDamage
	numFaults
)

const faultInterval = 10 * time.Second

type faults struct {
	mu   sync.Mutex
	last [numFaults]time.Time // guarded by mu
}

// diskError counts a failed file operation and logs it.
func (s *Store) diskError(kind fault, action, path string, err error) {
	s.diskErrors.Add(1)
	s.complain(kind, action, path, err)
}

func (s *Store) complain(kind fault, action, path string, err error) {
	now := s.now()
	s.faults.mu.Lock()
	last := s.faults.last[kind]
	quiet := !last.IsZero() && now.Sub(last) < faultInterval
	if !quiet {
		s.faults.last[kind] = now
	}
	s.faults.mu.Unlock()
	if !quiet {
		s.log.Warn(action, zap.String("path", path), zap.Error(err))
	}
}
