package pool

import "bytes"

// source is a reader over data and nothing more: a WriterTo, as bytes.Reader has, would tell some rivals the size in advance.
type source struct{ r bytes.Reader }

func (s *source) reset(data []byte) { s.r.Reset(data) }

func (s *source) Read(p []byte) (int, error) { return s.r.Read(p) }
