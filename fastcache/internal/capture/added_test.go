package capture_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hotset-go/hotset/fastcache/internal/capture"
)

// What stands in front of the handler's own lines is somebody else's.
func TestWriter_Added_OwnLines(t *testing.T) {
	client := httptest.NewRecorder()
	h := client.Header()
	h["X-Kept"] = []string{"front"}
	h["X-Added"] = []string{"front"}
	h["X-Set"] = []string{"front"}
	h["X-Shortened"] = []string{"front", "front too"}
	var got http.Header
	var w *capture.Writer
	w = capture.New(client, request, func(_ int, h http.Header) capture.Plan {
		got = w.Added(h)
		return capture.Plan{}
	})
	w.Header().Add("X-Added", "own")
	w.Header().Set("X-Set", "own")
	w.Header()["X-Shortened"] = []string{"front"}
	w.Header().Set("X-Own", "own")
	w.WriteHeader(http.StatusOK)
	want := http.Header{
		"X-Added": {"own"}, "X-Set": {"own"}, "X-Shortened": {"front"}, "X-Own": {"own"},
		capture.AppendedField: {"X-Added"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"front", "own"}, client.Header()["X-Added"]); diff != "" {
		t.Error(diff)
	}
}
