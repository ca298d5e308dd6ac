// Package rfc9111 holds the rules of a shared HTTP cache (RFC 9111) as pure
// functions of header fields, request targets and times.
//
// Nothing here does I/O, keeps state, starts goroutines or reads a clock: who
// calls passes the time. All functions are safe for concurrent use as long as
// nobody writes to the headers that they look at. Unless a function says
// otherwise it changes none of its arguments and keeps no reference to them.
//
// Header fields come as [http.Header] with canonical names, as net/http makes
// them. What they hold is never trusted: nothing panics on malformed input, and
// a rule that cannot read a value takes the reading that stores less, serves
// less, or asks the origin.
//
// The rules by file:
//
//	request.go      which requests a cache has a part in, and what the origin sees of them
//	key.go          the primary key: the target URI and rules for its query
//	novarysearch.go which queries of a path are one (No-Vary-Search)
//	vary.go         the secondary key: Vary, and the normal form of the fields it names
//	directives.go   Cache-Control and targeted Cache-Control (RFC 9213)
//	date.go         HTTP dates
//	age.go          the Age field
//	freshness.go    initial age and freshness lifetime
//	policy.go       what may be stored, for how long, and how it may be used
//	conditional.go  validators and conditional requests
//	range.go        Range and If-Range
//	merge.go        what of a header is stored, and how 304 and HEAD responses update it
//	invalidate.go   what a successful unsafe request makes out of date
//	groups.go       cache groups (RFC 9875)
//	cachestatus.go  the Cache-Status field (RFC 9211)
//	reason.go       the closed list of words that say why
//	list.go         the list syntax that all fields share
package rfc9111
