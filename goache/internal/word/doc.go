// Package word copies a value into and out of shared memory word by word, with atomic
// loads and stores only.
//
// One reader and one writer may copy at the same time: by the memory model that is no
// data race, and no single word is ever torn. Whether the words that a reader got
// belong together is for its caller to find out, by a sequence count around the copy.
// Until then the caller may hold what [Load] returned, and let the garbage collector
// see it, but must not use it: of a string, the pointer may be one value's and the
// length another's.
//
// Pointer words are loaded and stored as pointers, so that the collector's write
// barrier sees them; which words are pointers is found once, by reflection ([Of]).
// Types of more than [MaxWords] words are boxed: the memory holds one pointer to a
// copy that is never changed.
package word
