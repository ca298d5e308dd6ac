package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// The pool saves the copy buffer: most of what a request allocates.
func TestProxy_PoolSavesTheBuffer(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{"-requests", "200"}, &out); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
	var without, with, objects int
	for _, line := range strings.Split(out.String(), "\n") {
		_, _ = fmt.Sscanf(line, "without a pool: %d bytes in %d objects", &without, &objects)
		_, _ = fmt.Sscanf(line, "with a pool: %d bytes in %d objects", &with, &objects)
	}
	if with == 0 || without-with < bufferSize*9/10 {
		t.Errorf("%d bytes without, %d with: the buffer of %d is not saved", without, with, bufferSize)
	}
}

func TestProxy_Errors(t *testing.T) {
	for _, args := range [][]string{{"-requests", "0"}, {"-nonsense"}, {"-listen", "localhost:0", "-origin", ":"}} {
		if err := run(args, new(bytes.Buffer)); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
