package main

import "fmt"

// difference is where findings and expectations part.
type difference struct {
	id   string
	loss bool // something is worse than expected, or not known
	text string
}

// compare holds findings against expectations, in the suite's order.
func compare(tests []test, findings map[string]finding, expected expectations) []difference {
	var differences []difference
	report := func(id string, loss bool, format string, args ...any) {
		differences = append(differences, difference{id, loss, fmt.Sprintf(format, args...)})
	}
	inSuite := make(map[string]bool, len(tests))
	for _, t := range tests {
		inSuite[t.ID] = true
		found, ran := findings[t.ID]
		e, known := expected[t.ID]
		switch {
		case !ran:
			report(t.ID, true, "the client reports nothing of it")
		case !known:
			report(t.ID, true, "is not among the expectations")
		case found.result == e.result || e.result == varies:
		case found.result == pass:
			report(t.ID, false, "passes now; it did not: %s", e.reason)
		case e.result == pass:
			report(t.ID, true, "does not pass: %s", found.message)
		default:
			report(t.ID, false, "is %s, not %s: %s", found.result, e.result, found.message)
		}
	}
	for id := range findings {
		if !inSuite[id] {
			report(id, true, "is not in the suite's list of tests")
		}
	}
	for id := range expected {
		if !inSuite[id] {
			report(id, true, "is expected, and not in the suite")
		}
	}
	return differences
}
