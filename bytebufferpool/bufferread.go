package bytebufferpool

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

// The reading half of a Buffer, as bytes.Buffer has it.

var (
	errUnreadByte = errors.New("bytebufferpool: Buffer.UnreadByte: the last operation was not a read")
	errUnreadRune = errors.New("bytebufferpool: Buffer.UnreadRune: the last operation was not a ReadRune")
)

// Read takes up to len(p) bytes out. It returns io.EOF if there are none and p is
// not empty.
func (b *Buffer) Read(p []byte) (int, error) {
	b.check("Read")
	if b.ended() {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	n := copy(p, b.buf[b.off:])
	b.last = opOther
	b.advance(n)
	return n, nil
}

// Next takes n bytes out, or all if there are fewer, and returns them without a
// copy: they are valid until the next write, growth or Release.
func (b *Buffer) Next(n int) []byte {
	b.check("Next")
	p := b.buf[b.off:][:min(n, len(b.buf)-b.off)]
	b.last = opOther
	b.advance(len(p))
	return p
}

// Peek returns the next n bytes without taking them out, and io.EOF with what
// there is if there are fewer. They are valid until the next write, growth or
// Release.
func (b *Buffer) Peek(n int) ([]byte, error) {
	b.check("Peek")
	if n > len(b.buf)-b.off {
		return b.buf[b.off:], io.EOF
	}
	return b.buf[b.off : b.off+n], nil
}

// ReadByte takes the next byte out, or returns io.EOF.
func (b *Buffer) ReadByte() (byte, error) {
	b.check("ReadByte")
	if b.ended() {
		return 0, io.EOF
	}
	c := b.buf[b.off]
	b.advance(1)
	return c, nil
}

// ReadRune takes the next rune out and returns it with its length, or io.EOF. An
// invalid encoding is one byte long and gives U+FFFD.
func (b *Buffer) ReadRune() (r rune, size int, err error) {
	b.check("ReadRune")
	if b.ended() {
		return 0, 0, io.EOF
	}
	r, size = utf8.DecodeRune(b.buf[b.off:])
	b.off += size
	b.last = readOp(size)
	return r, size, nil
}

// UnreadRune puts the last rune back. It is an error if the last operation was not
// a successful ReadRune.
func (b *Buffer) UnreadRune() error {
	b.check("UnreadRune")
	if b.last <= opOther {
		return errUnreadRune
	}
	b.off -= int(b.last)
	b.last = opOther
	return nil
}

// UnreadByte puts the last byte back that was read. It is an error if the last
// operation was not a read of at least one byte.
func (b *Buffer) UnreadByte() error {
	b.check("UnreadByte")
	if b.last == opOther {
		return errUnreadByte
	}
	b.off--
	b.last = opOther
	return nil
}

// ReadBytes takes bytes out through the first delim and returns a copy. Without a
// delim it returns all there is, and io.EOF.
func (b *Buffer) ReadBytes(delim byte) ([]byte, error) {
	b.check("ReadBytes")
	line, err := b.readLine(delim)
	return append([]byte(nil), line...), err
}

// ReadString is [Buffer.ReadBytes] with a string.
func (b *Buffer) ReadString(delim byte) (string, error) {
	b.check("ReadString")
	line, err := b.readLine(delim)
	return string(line), err
}

func (b *Buffer) readLine(delim byte) (line []byte, err error) {
	end := bytes.IndexByte(b.buf[b.off:], delim) + 1
	if end == 0 {
		end = len(b.buf) - b.off
		err = io.EOF
	}
	line = b.buf[b.off:][:end]
	b.last = opOther
	b.advance(end)
	return line, err
}

// ended reports whether there is nothing to read, and takes the room of what was
// read back.
func (b *Buffer) ended() bool {
	if b.off < len(b.buf) {
		return false
	}
	b.reset()
	return true
}

// advance takes n bytes out.
func (b *Buffer) advance(n int) {
	b.off += n
	if n > 0 {
		b.last = opRead
	}
}
