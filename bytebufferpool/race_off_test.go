//go:build !race

package bytebufferpool_test

const raceEnabled = false
