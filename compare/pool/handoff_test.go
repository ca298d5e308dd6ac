package pool

import "testing"

// Each handle is taken once by the caller and given back once by somebody else, after it was taken.
func TestHandoff(t *testing.T) {
	for _, n := range []int{0, 1, held, held + 1, 10*held + 3} {
		taken := 0
		given := make(map[int]int)
		handoff(n, func(h *int) { taken++; *h = taken }, func(h *int) { given[*h]++; *h = 0 })
		if taken != n || len(given) != n {
			t.Errorf("%d: took %d, gave back %d different ones", n, taken, len(given))
		}
		for h, times := range given {
			if times != 1 || h < 1 || h > n {
				t.Errorf("%d: handle %d was given back %d times", n, h, times)
			}
		}
	}
}
