package main

import (
	"encoding/json"
	"fmt"
)

// result is what the suite's client says of one test.
type result string

const (
	pass  result = "pass"  // for a check: yes
	fail  result = "fail"  // for a check: no
	setup result = "setup" // the test did not get as far as what it is about
)

// finding is a result and the client's words for it.
type finding struct {
	result  result
	message string // empty for pass
}

// parseResults reads what the client prints: test id -> true or [kind, message].
func parseResults(data []byte) (map[string]finding, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("reading the client's results: %w", err)
	}
	findings := make(map[string]finding, len(raw))
	for id, value := range raw {
		if string(value) == "true" {
			findings[id] = finding{result: pass}
			continue
		}
		var kindAndMessage [2]string
		if err := json.Unmarshal(value, &kindAndMessage); err != nil {
			return nil, fmt.Errorf("reading the client's result of %s: %w", id, err)
		}
		f := finding{result: fail, message: kindAndMessage[1]}
		if kindAndMessage[0] == "Setup" {
			f.result = setup
		}
		findings[id] = f
	}
	return findings, nil
}
