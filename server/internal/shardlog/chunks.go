package shardlog

import "sync"

// Chunks lends the memory in which Read leaves records, so that reading back what was stored does
// not clear as much fresh memory as it reads. The zero value is ready; nil lends nothing, and Read
// then makes its memory, for as long as somebody has the records. It is for one goroutine.
type Chunks struct{ lent []*[]byte }

// chunks holds what past reads have released: buffers of maxReadChunk bytes.
var chunks = sync.Pool{New: func() any {
	chunk := make([]byte, maxReadChunk)
	return &chunk
}}

// get returns a buffer of size bytes. What is small, or larger than a chunk, is made.
func (c *Chunks) get(size int) []byte {
	if c == nil || size > maxReadChunk || size < maxReadChunk/4 {
		return make([]byte, size)
	}
	chunk := chunks.Get().(*[]byte)
	c.lent = append(c.lent, chunk)
	return (*chunk)[:size:size]
}

// Release takes back what was lent: the data of records that were read with c is gone, their keys
// and numbers stay.
func (c *Chunks) Release() {
	for i, chunk := range c.lent {
		chunks.Put(chunk)
		c.lent[i] = nil
	}
	c.lent = c.lent[:0]
}
