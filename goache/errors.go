package goache

import "errors"

var (
	// ErrNotFound is what a load function returns, itself or wrapped, to say that
	// there is no value. GetOrLoad passes it on; see WithNegativeTTL for remembering
	// it.
	ErrNotFound = errors.New("goache: not found")

	// ErrLoadAborted is what those get who wait for a load that panicked or ended its
	// goroutine. Whoever began the load gets the panic itself.
	ErrLoadAborted = errors.New("goache: load aborted")
)
