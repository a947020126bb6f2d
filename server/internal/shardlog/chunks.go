package shardlog

import "sync"

// Chunks lends Read reused buffers for records, so that reading does not clear fresh memory for
// every record. The zero value is ready. With a nil Chunks, Read allocates memory, which lives as
// long as its records. Use a Chunks from one goroutine.
type Chunks struct{ lent []*[]byte }

// chunks holds the buffers that past reads have released, each of maxReadChunk bytes.
var chunks = sync.Pool{New: func() any {
	chunk := make([]byte, maxReadChunk)
	return &chunk
}}

// get returns a buffer of size bytes. It allocates small buffers and those larger than a chunk.
func (c *Chunks) get(size int) []byte {
	if c == nil || size > maxReadChunk || size < maxReadChunk/4 {
		return make([]byte, size)
	}
	chunk := chunks.Get().(*[]byte)
	c.lent = append(c.lent, chunk)
	return (*chunk)[:size:size]
}

// Release takes back all lent buffers. The data of records read with c is then invalid; their
// keys and numbers stay valid.
func (c *Chunks) Release() {
	for i, chunk := range c.lent {
		chunks.Put(chunk)
		c.lent[i] = nil
	}
	c.lent = c.lent[:0]
}
