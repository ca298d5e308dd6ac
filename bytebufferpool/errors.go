package bytebufferpool

import "errors"

var (
	// ErrInvalidSize is returned when a size is negative or above
	// [Config.MaxAcquireSize]. Acquire, AcquireSlice, Buffer and Chain panic with
	// it instead, so use their Try forms for sizes that come from a peer.
	ErrInvalidSize = errors.New("bytebufferpool: invalid size")

	// ErrInvalidConfig is returned by [New], [PowerOfTwo] and [Geometric] for a
	// configuration that cannot be honoured. The message names the field and
	// the value.
	ErrInvalidConfig = errors.New("bytebufferpool: invalid configuration")

	// ErrTooLarge is returned by [Pool.ReadAll] when the source holds more bytes
	// than the limit.
	ErrTooLarge = errors.New("bytebufferpool: source exceeds the limit")

	// ErrClosed is returned by reads from a [Body] after its Close.
	ErrClosed = errors.New("bytebufferpool: read from a closed Body")
)
