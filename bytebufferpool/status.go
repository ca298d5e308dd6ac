package bytebufferpool

import "strconv"

// ReleaseStatus tells what became of released storage. The numbers are part of
// the contract and never change; new values are appended.
//
// A release checks in this order and reports the first that applies: nothing to
// release, ownership (foreign, duplicate), malformed or changed storage, a stale
// generation, the cutoff, a missing class, the budget.
type ReleaseStatus uint8

const (
	// Retained means that the pool took the storage back. In Fast mode that is
	// acceptance only: the runtime may discard it at any time.
	Retained ReleaseStatus = iota

	// DroppedFull means that retaining would have exceeded the budget of a
	// Bounded pool: the idle bytes plus this capacity were above it.
	DroppedFull

	// DroppedOversize means that the capacity is above Config.MaxPooledCapacity.
	DroppedOversize

	// DroppedInvalid means malformed storage (a slice without capacity), or,
	// with validation, a slice whose capacity is no longer the acquired one.
	DroppedInvalid

	// DroppedStale means that the lease was acquired before the last Clear.
	DroppedStale

	// RejectedForeign means, with validation, that this pool does not know the
	// slice. It was not touched.
	RejectedForeign

	// RejectedDuplicate means that the storage was already released. It was not
	// touched, and whoever owns it now is not disturbed.
	RejectedDuplicate

	// IgnoredNil means that there was nothing to release: a nil slice, or a
	// Lease, Buffer or Chain that is a zero value.
	IgnoredNil

	// DroppedUnpooled means valid storage at or below Config.MaxPooledCapacity
	// that no class has the capacity of.
	DroppedUnpooled

	statuses = int(DroppedUnpooled) + 1
)

var statusNames = [statuses]string{
	"Retained", "DroppedFull", "DroppedOversize", "DroppedInvalid", "DroppedStale",
	"RejectedForeign", "RejectedDuplicate", "IgnoredNil", "DroppedUnpooled",
}

// String returns the name of the status as it stands in the source.
func (s ReleaseStatus) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "ReleaseStatus(" + strconv.Itoa(int(s)) + ")"
}
