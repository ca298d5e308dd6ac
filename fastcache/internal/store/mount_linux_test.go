package store_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// mountTmpfs mounts a file system of its own. It skips without root.
func mountTmpfs(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", size)); err != nil {
		t.Skipf("SKIPPED, mounting a tmpfs needs root: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func usedBlocks(t *testing.T, dir string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Error(err)
	}
	return int64(st.Blocks-st.Bfree) * int64(st.Bsize) //nolint:unconvert // its type differs between systems
}

// asNobody runs f with the file rights of nobody: root is refused nothing.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Getuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(65534); err != nil {
		t.Skipf("SKIPPED, cannot change the file system's user: %v", err)
	}
	defer func() { _ = unix.Setfsuid(0) }()
	f()
}

func remount(t *testing.T, dir string, readOnly bool) {
	t.Helper()
	flags := uintptr(unix.MS_REMOUNT)
	if readOnly {
		flags |= unix.MS_RDONLY
	}
	must(t, unix.Mount("", dir, "", flags, ""))
}
