package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"
	"unsafe"
)

// The sidecar, version 4. Integers are little-endian; a string is its length and its bytes.
//
//	offset  size
//	0       4     magic "FCH4", the version in its last byte
//	4       4     total length
//	8       4     CRC-32C of everything but itself and the mark
//	12      1     mark: 0x00, or 0xff for stale; rewritten in place by a soft purge
//	13      1     flags
//	14      2     status
//	16      8     born, Unix nanoseconds; the least int64 stands for the zero time
//	24      8     lifetime, nanoseconds
//	32      8     stale-while-revalidate, nanoseconds
//	40      8     stale-if-error, nanoseconds
//	48      8     discard, as born
//	56      8     body length
//	64      4     CRC-32C of the body
//	68            key: u32 string
//	              variant key: u32 string
//	              Vary: u16 count, u16 strings, strictly ascending
//	              tags: as Vary
//	              header: u16 count, then name (u16 string), u16 count, values (u32 strings);
//	              names strictly ascending
//
// There is one encoding of a record and nothing else decodes: that is what lets the decoder be
// strict. The mark's two values differ in all bits, so that no flipped bit turns one into the other.
const (
	sidecarMagic = "FCH4"
	sidecarFixed = 68

	// maxSidecar bounds what a reader takes in; a response whose header is larger is not stored.
	maxSidecar = 1 << 20

	markOffset = 12
	freshByte  = 0x00
	staleByte  = 0xff

	noTime = math.MinInt64
)

var (
	errVersion = errors.New("sidecar of another version")
	errSidecar = errors.New("sidecar is malformed")
)

// record is a parsed sidecar. Its slices point into the parsed bytes.
type record struct {
	stale     bool
	flags     Flags
	status    int
	born      int64
	lifetimes [3]int64
	discard   int64
	size      int64
	crc       uint32
	key, vkey []byte
	vary      fields // count names
	tags      fields // count names
	header    fields // count lines
}

// fields is a run of length-prefixed strings whose form has been checked.
type fields struct {
	count int
	raw   []byte
}

// sidecarOf is what a sidecar says beside the Response.
type sidecarOf struct {
	key, vkey string
	names     []string // strictly ascending
	size      int64
	crc       uint32
}

// appendSidecar appends r's sidecar to dst, which is left as it was when r cannot be written.
func appendSidecar(dst []byte, o sidecarOf, r *Response) ([]byte, error) {
	if r.Status < 100 || r.Status > 999 {
		return dst, fmt.Errorf("store: status %d is not in 100 to 999", r.Status)
	}
	le := binary.LittleEndian
	at := len(dst)
	b := append(dst, sidecarMagic...)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0, freshByte, byte(r.Flags))
	b = le.AppendUint16(b, uint16(r.Status))
	b = le.AppendUint64(b, uint64(nanosOf(r.Born)))
	b = le.AppendUint64(b, uint64(r.Lifetime))
	b = le.AppendUint64(b, uint64(r.StaleWhileRevalidate))
	b = le.AppendUint64(b, uint64(r.StaleIfError))
	b = le.AppendUint64(b, uint64(nanosOf(r.Discard)))
	b = le.AppendUint64(b, uint64(o.size))
	b = le.AppendUint32(b, o.crc)
	b = appendString32(b, o.key)
	b = appendString32(b, o.vkey)
	fits := len(o.names) <= math.MaxUint16 && len(r.Tags) <= math.MaxUint16 && len(r.Header) <= math.MaxUint16
	for _, list := range [...][]string{o.names, r.Tags} {
		b = le.AppendUint16(b, uint16(len(list)))
		for _, name := range list {
			b = le.AppendUint16(b, uint16(len(name)))
			b = append(b, name...)
			if fits = fits && len(name) <= math.MaxUint16 && len(b)-at <= maxSidecar; !fits {
				break
			}
		}
	}
	var space [32]string
	names := space[:0]
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	b = le.AppendUint16(b, uint16(len(names)))
	for _, name := range names {
		values := r.Header[name]
		fits = fits && len(name) <= math.MaxUint16 && len(values) <= math.MaxUint16
		b = le.AppendUint16(b, uint16(len(name)))
		b = append(b, name...)
		b = le.AppendUint16(b, uint16(len(values)))
		for _, v := range values {
			b = appendString32(b, v)
		}
		if fits = fits && len(b)-at <= maxSidecar; !fits {
			break
		}
	}
	if !fits || len(b)-at > maxSidecar {
		return dst, fmt.Errorf("%w: its header exceeds the sidecar", ErrTooBig)
	}
	seal(b[at:])
	return b, nil
}

func appendString32(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

// seal fills in the length and the checksum.
func seal(b []byte) {
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)))
	binary.LittleEndian.PutUint32(b[8:], sumSidecar(b))
}

func sumSidecar(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:8], castagnoli), castagnoli, b[markOffset+1:])
}

// parseSidecar checks b and lays it out. It allocates nothing.
func parseSidecar(b []byte) (rec record, err error) {
	le := binary.LittleEndian
	switch {
	case len(b) >= 3 && string(b[:3]) == sidecarMagic[:3] && len(b) >= 4 && b[3] != sidecarMagic[3]:
		return rec, errVersion
	case len(b) < sidecarFixed || len(b) > maxSidecar || string(b[:4]) != sidecarMagic:
		return rec, errSidecar
	case uint64(le.Uint32(b[4:])) != uint64(len(b)):
		return rec, errSidecar
	case le.Uint32(b[8:]) != sumSidecar(b):
		return rec, errSum
	case b[markOffset] != freshByte && b[markOffset] != staleByte:
		return rec, errSidecar
	}
	rec = record{
		stale:     b[markOffset] == staleByte,
		flags:     Flags(b[13]),
		status:    int(le.Uint16(b[14:])),
		born:      int64(le.Uint64(b[16:])),
		lifetimes: [3]int64{int64(le.Uint64(b[24:])), int64(le.Uint64(b[32:])), int64(le.Uint64(b[40:]))},
		discard:   int64(le.Uint64(b[48:])),
		size:      int64(le.Uint64(b[56:])),
		crc:       le.Uint32(b[64:]),
	}
	if rec.status < 100 || rec.status > 999 || rec.size < 0 {
		return rec, errSidecar
	}
	in := reader{rest: b[sidecarFixed:]}
	rec.key = in.string32()
	rec.vkey = in.string32()

	rec.vary = in.names()
	rec.tags = in.names()

	rec.header.count = in.uint16()
	rec.header.raw = in.rest
	var last []byte
	for i := range rec.header.count {
		name := in.string16()
		if in.bad || i > 0 && string(last) >= string(name) {
			return rec, errSidecar
		}
		last = name
		for range in.uint16() {
			if in.string32(); in.bad {
				return rec, errSidecar
			}
		}
	}
	if in.bad || len(in.rest) > 0 {
		return rec, errSidecar
	}
	return rec, nil
}

// names returns a copy of what reader.names has read.
func (f fields) names() []string {
	if f.count == 0 {
		return nil
	}
	in := reader{rest: f.raw}
	names := make([]string, f.count)
	for i := range names {
		names[i] = string(in.string16())
	}
	return names
}

// response builds the Response. The header's strings share one copy of the sidecar's bytes, its
// values one array.
func (rec *record) response() *Response {
	r := &Response{
		Status:               rec.status,
		Header:               make(http.Header, rec.header.count),
		Born:                 timeOf(rec.born),
		Lifetime:             time.Duration(rec.lifetimes[0]),
		StaleWhileRevalidate: time.Duration(rec.lifetimes[1]),
		StaleIfError:         time.Duration(rec.lifetimes[2]),
		Discard:              timeOf(rec.discard),
		Flags:                rec.flags,
		Vary:                 rec.vary.names(),
		Tags:                 rec.tags.names(),
	}
	in := reader{rest: slices.Clone(rec.header.raw)}
	values := 0
	for count := (reader{rest: rec.header.raw}); len(count.rest) > 0; {
		count.string16()
		n := count.uint16()
		values += n
		for range n {
			count.string32()
		}
	}
	all := make([]string, 0, values)
	for range rec.header.count {
		name := share(in.string16())
		from := len(all)
		for range in.uint16() {
			all = append(all, share(in.string32()))
		}
		// The capacity ends with the values: an append to one line cannot run into the next.
		r.Header[name] = all[from:len(all):len(all)]
	}
	return r
}

// share makes a string of bytes that nobody writes to any more.
func share(b []byte) string {
	// Safety: b is part of response's own clone of the sidecar, which is never written again.
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// reader takes fields off the front of rest. Once bad, it yields zeros.
type reader struct {
	rest []byte
	bad  bool
}

func (in *reader) take(n uint64) []byte {
	if in.bad || n > uint64(len(in.rest)) {
		in.bad = true
		return nil
	}
	b := in.rest[:n]
	in.rest = in.rest[n:]
	return b
}

func (in *reader) uint16() int {
	if b := in.take(2); b != nil {
		return int(binary.LittleEndian.Uint16(b))
	}
	return 0
}

// names takes a list of strictly ascending names.
func (in *reader) names() fields {
	f := fields{count: in.uint16()}
	start := in.rest
	var last []byte
	for i := range f.count {
		name := in.string16()
		if in.bad = in.bad || i > 0 && string(last) >= string(name); in.bad {
			return fields{}
		}
		last = name
	}
	f.raw = start[:len(start)-len(in.rest)]
	return f
}

func (in *reader) string16() []byte {
	if b := in.take(2); b != nil {
		return in.take(uint64(binary.LittleEndian.Uint16(b)))
	}
	return nil
}

func (in *reader) string32() []byte {
	if b := in.take(4); b != nil {
		return in.take(uint64(binary.LittleEndian.Uint32(b)))
	}
	return nil
}

// nanosOf clamps to what 64 bits tell; the zero time is noTime.
func nanosOf(t time.Time) int64 {
	switch {
	case t.IsZero():
		return noTime
	case t.Before(time.Unix(0, noTime+1)):
		return noTime + 1
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

func timeOf(nanos int64) time.Time {
	if nanos == noTime {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

// metaBuffers lends the space for a sidecar's bytes.
var metaBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// readSidecar reads a sidecar into buf, which grows as it must but not beyond maxSidecar.
func readSidecar(path string, buf *[]byte) ([]byte, error) {
	f, st, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st.Size < sidecarFixed || st.Size > maxSidecar {
		return nil, errSidecar
	}
	*buf = slices.Grow((*buf)[:0], int(st.Size))
	b := (*buf)[:st.Size]
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, err
	}
	return b, nil
}
