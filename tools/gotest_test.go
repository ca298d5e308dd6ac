package main

import (
	"strings"
	"testing"
)

// The events are those of 'go test -json' of Go 1.26, times removed.
const testEvents = `
{"Action":"start","Package":"p/good"}
{"Action":"run","Package":"p/good","Test":"TestA"}
{"Action":"output","Package":"p/good","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p/good","Test":"TestA","Output":"    a_test.go:5: chatter\n"}
{"Action":"output","Package":"p/good","Test":"TestA","Output":"--- PASS: TestA (0.00s)\n"}
{"Action":"pass","Package":"p/good","Test":"TestA"}
{"Action":"run","Package":"p/good","Test":"TestBrowser"}
{"Action":"output","Package":"p/good","Test":"TestBrowser","Output":"=== RUN   TestBrowser\n"}
{"Action":"output","Package":"p/good","Test":"TestBrowser","Output":"    a_test.go:7: looking\n"}
{"Action":"output","Package":"p/good","Test":"TestBrowser","Output":"    a_test.go:8: no chromium\n"}
{"Action":"output","Package":"p/good","Test":"TestBrowser","Output":"        on this machine\n"}
{"Action":"output","Package":"p/good","Test":"TestBrowser","Output":"--- SKIP: TestBrowser (0.00s)\n"}
{"Action":"skip","Package":"p/good","Test":"TestBrowser"}
{"Action":"output","Package":"p/good","Output":"PASS\n"}
{"Action":"output","Package":"p/good","Output":"ok  \tp/good\t0.1s\n"}
{"Action":"pass","Package":"p/good"}
{"Action":"output","Package":"p/empty","Output":"?   \tp/empty\t[no test files]\n"}
{"Action":"skip","Package":"p/empty"}
{"Action":"start","Package":"p/bad"}
{"Action":"run","Package":"p/bad","Test":"TestT"}
{"Action":"output","Package":"p/bad","Test":"TestT","Output":"=== RUN   TestT\n"}
{"Action":"run","Package":"p/bad","Test":"TestT/good"}
{"Action":"output","Package":"p/bad","Test":"TestT/good","Output":"=== RUN   TestT/good\n"}
{"Action":"run","Package":"p/bad","Test":"TestT/bad"}
{"Action":"output","Package":"p/bad","Test":"TestT/bad","Output":"=== RUN   TestT/bad\n"}
{"Action":"output","Package":"p/bad","Test":"TestT/bad","Output":"    b_test.go:9: got 1, want 2\n"}
{"Action":"output","Package":"p/bad","Test":"TestT","Output":"--- FAIL: TestT (0.00s)\n"}
{"Action":"output","Package":"p/bad","Test":"TestT/good","Output":"    --- PASS: TestT/good (0.00s)\n"}
{"Action":"pass","Package":"p/bad","Test":"TestT/good"}
{"Action":"output","Package":"p/bad","Test":"TestT/bad","Output":"    --- FAIL: TestT/bad (0.00s)\n"}
{"Action":"fail","Package":"p/bad","Test":"TestT/bad"}
{"Action":"fail","Package":"p/bad","Test":"TestT"}
{"Action":"output","Package":"p/bad","Output":"FAIL\n"}
{"Action":"output","Package":"p/bad","Output":"FAIL\tp/bad\t0.1s\n"}
{"Action":"fail","Package":"p/bad"}
{"ImportPath":"p/broken [p/broken.test]","Action":"build-output","Output":"broken/x.go:3:1: syntax error\n"}
{"ImportPath":"p/broken [p/broken.test]","Action":"build-fail"}
{"Action":"output","Package":"p/broken","Output":"FAIL\tp/broken [build failed]\n"}
{"Action":"fail","Package":"p/broken","FailedBuild":"p/broken [p/broken.test]"}
{"Action":"start","Package":"p/crash"}
{"Action":"run","Package":"p/crash","Test":"TestC"}
{"Action":"output","Package":"p/crash","Test":"TestC","Output":"=== RUN   TestC\n"}
{"Action":"output","Package":"p/crash","Test":"TestC","Output":"fatal error: all goroutines are asleep - deadlock!\n"}
{"Action":"output","Package":"p/crash","Output":"FAIL\tp/crash\t0.1s\n"}
{"Action":"fail","Package":"p/crash"}
not an event
{"Action":"start","Package":"p/stopped"}
{"Action":"run","Package":"p/stopped","Test":"TestS"}
`

func TestParseTestEvents(t *testing.T) {
	got := parseTestEvents([]byte(strings.TrimPrefix(testEvents, "\n")))
	if got.passed != 2 || got.failed != 4 {
		t.Errorf("%d passed, %d failed; want 2 (TestA, TestT/good), 4 (TestT, TestT/bad, TestC, TestS)", got.passed, got.failed)
	}
	if len(got.skips) != 1 || got.skips[0] != (testSkip{"p/good", "TestBrowser", "no chromium on this machine"}) {
		t.Errorf("skips = %+v", got.skips)
	}
	const text = "ok  \tp/good\t0.1s\n" +
		"?   \tp/empty\t[no test files]\n" +
		"    b_test.go:9: got 1, want 2\n" +
		"--- FAIL: TestT (0.00s)\n" +
		"    --- FAIL: TestT/bad (0.00s)\n" +
		"FAIL\n" +
		"FAIL\tp/bad\t0.1s\n" +
		"broken/x.go:3:1: syntax error\n" +
		"FAIL\tp/broken [build failed]\n" +
		"fatal error: all goroutines are asleep - deadlock!\n" +
		"FAIL\tp/crash\t0.1s\n" +
		"not an event\n"
	if string(got.text) != text {
		t.Errorf("text:\n%s\nwant:\n%s", got.text, text)
	}
}

func TestParseTestEvents_SkipWithoutReason(t *testing.T) {
	got := parseTestEvents([]byte(`{"Action":"run","Package":"p","Test":"T"}
{"Action":"output","Package":"p","Test":"T","Output":"--- SKIP: T (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"T"}
`))
	if len(got.skips) != 1 || got.skips[0].reason != "no reason given" {
		t.Errorf("skips = %+v", got.skips)
	}
}
