package fastcache

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
)

// keysPage is how many keys a listing sorts at a time. It needs 32 bytes for each,
// 8 MiB in all, whatever the stores hold, and goes through their index once a page:
// a million keys take four goes, which cost more than the sorting
// (BenchmarkSortedKeys).
const keysPage = 1 << 18

// serveKeys answers GET /fastcache/keys with the keys in the stores, sorted by
// their bytes and each once:
//
//	{"keys":["http://example.com/","https://example.com/a?b"],"count":2}
//
// Without parameters it lists all of them. prefix, pattern and name select as they
// do for a purge, so a listing tells beforehand what a purge would take. limit ends
// the listing after so many keys; if there are more, "next" is the address of the
// rest. after lists the keys behind one.
//
// The listing is written as it is made. What is stored or dropped meanwhile may be
// in it or not, everything else is; "incomplete" is true when files of an earlier
// run have not been read yet. Bytes of a key that are not UTF-8 come as U+FFFD.
func serveKeys(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return notAllowed(w, "GET, HEAD")
	}
	l, err := parseListing(r.URL.RawQuery)
	if err != nil {
		return err
	}
	stores := openStores()
	if l.name != nil {
		stores = slices.DeleteFunc(stores, func(s *sharedStore) bool {
			return !slices.ContainsFunc(s.instances(), func(fc *FastCache) bool { return fc.Name == *l.name })
		})
		if len(stores) == 0 {
			return errNoInstance(*l.name)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodHead {
		return nil
	}
	_ = l.write(r.Context(), w, stores) // an error means that the client has left
	return nil
}

// listing is what a request for keys asks for.
type listing struct {
	query url.Values
	match func(key string) bool // nil: every key
	name  *string
	from  string // the least key
	limit int    // 0: none
}

func parseListing(rawQuery string) (*listing, error) {
	bad := func(format string, args ...any) (*listing, error) {
		return nil, adminError(http.StatusBadRequest, format, args...)
	}
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return bad("the query cannot be read: %v", err)
	}
	l := &listing{query: query}
	for name, values := range query {
		value := values[0]
		if len(values) > 1 {
			return bad("%s is given twice", name)
		}
		switch name {
		case "prefix":
			l.match = matchPrefix(value)
		case "pattern":
			re, err := regexp.Compile(value)
			if err != nil {
				return bad("pattern: %v", err)
			}
			l.match = re.MatchString
		case "name":
			l.name = &value
		case "after":
			l.from = value + "\x00"
		case "limit":
			l.limit, err = strconv.Atoi(value)
			if err != nil || l.limit <= 0 {
				return bad("limit: %q is not a number above 0", value)
			}
		default:
			return bad("there is no parameter %q: prefix, pattern, name, after, limit", name)
		}
	}
	if query.Has("prefix") && query.Has("pattern") {
		return bad("prefix and pattern cannot be given together")
	}
	return l, nil
}

// write writes the listing. When the client has left it ends early, with the JSON
// unfinished.
func (l *listing) write(ctx context.Context, w io.Writer, stores []*sharedStore) error {
	page := keysPage
	if l.limit > 0 {
		page = min(page-1, l.limit) + 1 // one more tells whether there are more
	}
	out := bufio.NewWriterSize(w, 64<<10)
	var quoted bytes.Buffer
	quote := json.NewEncoder(&quoted)
	quote.SetEscapeHTML(false)

	_, _ = out.WriteString(`{"keys":[`)
	count, last, more := 0, "", false
	for key := range sortedKeys(ctx, stores, l.from, l.match, page) {
		if more = l.limit > 0 && count == l.limit; more {
			break
		}
		if count > 0 {
			_ = out.WriteByte(',')
		}
		quoted.Reset()
		_ = quote.Encode(key)
		_ = out.WriteByte('\n')
		if _, err := out.Write(bytes.TrimSuffix(quoted.Bytes(), []byte{'\n'})); err != nil {
			return err
		}
		count, last = count+1, key
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "\n],\"count\":%d", count)
	if more {
		l.query.Set("after", last)
		_, _ = fmt.Fprintf(out, ",\"next\":%q", "/fastcache/keys?"+l.query.Encode()) // ASCII without quotes
	}
	if slices.ContainsFunc(stores, func(s *sharedStore) bool { return s.store.Stats().Rebuilding }) {
		_, _ = out.WriteString(`,"incomplete":true`)
	}
	_, _ = out.WriteString("}\n")
	return out.Flush()
}

// sortedKeys yields the keys of the stores from one on that match accepts, sorted
// and each once. It needs memory for two pages, and goes through the stores once a
// page.
func sortedKeys(ctx context.Context, stores []*sharedStore, from string, match func(key string) bool, page int) iter.Seq[string] {
	return func(yield func(string) bool) {
		entries := 0
		for _, s := range stores {
			entries += int(s.store.Stats().Entries)
		}
		keys := make([]string, 0, min(2*page, entries))
		for from := from; ctx.Err() == nil; from = keys[page-1] + "\x00" { // the next string in the order of bytes
			keys = leastKeys(ctx, keys[:0], stores, from, match, page)
			for _, key := range keys {
				if !yield(key) {
					return
				}
			}
			if len(keys) < page {
				return
			}
		}
	}
}

// leastKeys returns the n least of the keys, sorted and each once, in the memory
// of dst, which may grow to 2n. There are none when ctx is over.
func leastKeys(ctx context.Context, dst []string, stores []*sharedStore, from string, match func(key string) bool, n int) []string {
	full := false // dst begins with the n least keys that have been seen
	trim := func() {
		slices.Sort(dst)
		dst = slices.Compact(dst)
		full = len(dst) >= n
		dst = dst[:min(n, len(dst))]
	}
	for _, s := range stores {
		for key := range s.store.Keys {
			if ctx.Err() != nil {
				return nil // a pattern may take its time
			}
			if key < from || full && key >= dst[n-1] || match != nil && !match(key) {
				continue
			}
			if dst = append(dst, key); len(dst) == 2*n {
				trim()
			}
		}
	}
	trim()
	return dst
}
