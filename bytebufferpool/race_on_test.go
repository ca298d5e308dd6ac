//go:build race

package bytebufferpool_test

// raceEnabled tells that sync.Pool drops items at random, as it does under the
// race detector, and that allocations are not those of users.
const raceEnabled = true
