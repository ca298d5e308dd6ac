package store

import "net/http"

// AppendVariant appends to dst what tells this request apart from others for the same key, as far as
// the stored responses know: its variant key for each of their Vary lists. Requests with equal results
// would be answered alike; nothing is appended for a key that is unknown or does not vary.
func (s *Store) AppendVariant(dst []byte, key string, h http.Header) []byte {
	hash := s.hashKey(key)
	res := s.shardOf(hash).find(hash, key)
	if res == nil {
		return dst
	}
	set := res.set.Load()
	if set == nil {
		return dst
	}
	var last *scheme
	for _, e := range set.list {
		// Entries of one scheme stand side by side.
		if e.scheme != last && len(e.scheme.names) > 0 {
			dst = s.variantKey(dst, e.scheme.names, h)
		}
		last = e.scheme
	}
	return dst
}
