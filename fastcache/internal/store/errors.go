package store

import "errors"

// The errors that callers tell apart. Everything else that a [Writer] returns is a disk error,
// wrapped with the action and the path: the caller passes the response through and goes on.
var (
	// ErrTooBig is returned when a response can never fit: its body and sidecar exceed the budget,
	// its body exceeds Limits.Body, its sidecar 1 MiB, or the store keeps nothing at all.
	ErrTooBig = errors.New("store: response is larger than the budget")

	// ErrFull is returned when a response would fit, but other captures in flight hold the room.
	ErrFull = errors.New("store: captures in flight hold the whole budget")

	// ErrPurged is returned when the key, or a tag of the response, was purged after the fetch had
	// begun, or when the fetch was over before its body was committed.
	ErrPurged = errors.New("store: purged while the fetch was in flight")

	// ErrGone is returned when the entry has left the store since it was looked up.
	ErrGone = errors.New("store: entry is gone")

	// ErrDamaged is returned when a stored body or sidecar is missing, unreadable or not what was
	// stored. The entry has been dropped by then: fetch it again.
	ErrDamaged = errors.New("store: stored response is damaged")

	// ErrSize is returned by Commit when the body is not as long as Create was told: a truncated
	// body is never stored.
	ErrSize = errors.New("store: body length differs from the declared one")

	// ErrTags is returned for a response whose Tags are not sorted, or contain one twice.
	ErrTags = errors.New("store: tags are not sorted and unique")

	// ErrUnread is returned by a purge of many keys that has met files of an earlier run which cannot
	// be read just now, for want of file descriptors, say. What is in them was not purged.
	ErrUnread = errors.New("store: files of an earlier run cannot be read now")

	// ErrClosed is returned by everything that would write after Close.
	ErrClosed = errors.New("store: closed")
)
