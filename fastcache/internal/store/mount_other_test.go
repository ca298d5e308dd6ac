//go:build !linux

package store_test

import (
	"os"
	"testing"
)

func mountTmpfs(t *testing.T, _ int) string {
	t.Skip("SKIPPED, mounting a tmpfs needs Linux")
	return ""
}

func usedBlocks(*testing.T, string) int64 { return 0 }

func remount(*testing.T, string, bool) {}

func asNobody(t *testing.T, f func()) {
	if os.Getuid() == 0 {
		t.Skip("SKIPPED, root is refused nothing")
	}
	f()
}
