package policy

import "math/bits"

// sketch estimates how often a hash was added lately: a count-min sketch (Cormode and
// Muthukrishnan 2005) of four-bit counters that are halved when as many additions were
// made as ten times the capacity (TinyLFU: Einziger, Friedman and Manes 2017).
type sketch struct {
	words []uint64 // 16 counters each; a power of two of them
	added int
	limit int
}

const (
	oddBits  = 0x1111_1111_1111_1111
	halfMask = 0x7777_7777_7777_7777

	// sampleFactor is how many additions, as a multiple of the capacity, are
	// remembered at full weight.
	sampleFactor = 10
)

// resize makes the sketch fit for the capacity and forgets what it knew, unless its
// size is right already.
func (s *sketch) resize(capacity int) {
	capacity = max(capacity, 16)
	s.limit = sampleFactor * capacity
	// 8 to 16 counters an entry, four to eight bytes.
	words := 1 << bits.Len(uint(capacity-1)) / 2
	if len(s.words) != words {
		s.words = make([]uint64, words)
		s.added = 0
	}
}

// add counts the hash once.
func (s *sketch) add(hash uint32) {
	h := spread(hash)
	var grew uint64
	for row := range uint64(4) {
		w, shift := s.at(h, row)
		if s.words[w]>>shift&0xf != 0xf {
			s.words[w] += 1 << shift
			grew = 1
		}
	}
	if s.added += int(grew); s.added >= s.limit {
		s.halve()
	}
}

// estimate returns the number of additions of the hash, at most 15. It may be too
// high, and before halving is never too low.
func (s *sketch) estimate(hash uint32) uint32 {
	h := spread(hash)
	least := uint64(0xf)
	for row := range uint64(4) {
		w, shift := s.at(h, row)
		least = min(least, s.words[w]>>shift&0xf)
	}
	return uint32(least)
}

// at returns the counter of a row: its word, and how far it is shifted there. The four
// words are neighbours, most of the time in one cache line; each row has the counters
// of its own quarter of a word.
func (s *sketch) at(h, row uint64) (word, shift uint64) {
	word = (h>>32 + row*(h>>60|1)) & uint64(len(s.words)-1)
	return word, row<<4 | h>>(row<<3)&3<<2
}

// halve ages all counters.
func (s *sketch) halve() {
	odd := 0
	for i, w := range s.words {
		odd += bits.OnesCount64(w & oddBits)
		s.words[i] = w >> 1 & halfMask
	}
	s.added = (s.added - odd/4) / 2
}

// spread makes 64 well mixed bits of a hash whose high bits choose the shard's bucket
// (the finalizer of SplitMix64).
func spread(hash uint32) uint64 {
	h := uint64(hash) * 0x9e37_79b9_7f4a_7c15
	h = (h ^ h>>30) * 0xbf58_476d_1ce4_e5b9
	h = (h ^ h>>27) * 0x94d0_49bb_1331_11eb
	return h ^ h>>31
}
