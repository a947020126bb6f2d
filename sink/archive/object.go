package archive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/runnel-stream/runnel"
)

// object is an open object of the archive: its link, and the records that are still to be read.
type object struct {
	name   string
	link   *Link
	body   *body
	member *member
}

// body is the body of an object. It remembers an error of the store, so that an outage amid the
// object is not taken for damage.
type body struct {
	io.ReadCloser
	err  error
	copy *bytes.Buffer // of the bytes so far, if they are to be read again; nil if they are many
	most int           // bytes of the copy
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.copy != nil {
		if _, _ = b.copy.Write(p[:n]); b.copy.Len() > b.most {
			b.copy = nil
		}
	}
	if errors.Is(err, ErrStoreUnavailable) || errors.Is(err, ErrStoreRefused) {
		b.err = err
	}
	return n, err
}

var members = sync.Pool{New: func() any { return newMember(nil) }}

// openObject opens the object and reads its link. ErrObjectNotFound: it does not exist.
func openObject(ctx context.Context, store Store, name string) (*object, error) {
	from, err := store.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return newObject(name, &body{ReadCloser: from})
}

// openCopied is openObject with a copy of the bytes in the body, for a second reading, unless they
// are more than most.
func openCopied(ctx context.Context, store Store, name string, most int) (*object, error) {
	from, err := store.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return newObject(name, &body{ReadCloser: from, copy: new(bytes.Buffer), most: most})
}

// newObject reads the link of an object.
func newObject(name string, from *body) (o *object, err error) {
	o = &object{name: name, body: from, member: members.Get().(*member)}
	o.member.reset(o.body)
	if o.link, err = o.member.readLink(); err != nil {
		if o.body.err != nil {
			err = o.body.err
		}
		return nil, errors.Join(fmt.Errorf("link %s: %w", name, err), o.close())
	}
	return o, nil
}

func (o *object) close() error {
	o.member.reset(nil)
	members.Put(o.member)
	if err := o.body.Close(); err != nil {
		return fmt.Errorf("close %s: %w", o.name, err)
	}
	return nil
}

// ErrContentsDiffer is returned for an object whose records do not match its link.
var ErrContentsDiffer = errors.New("the records are not those that the link describes")

// each calls visit with every record once, in order, until it returns false. It returns an error
// that wraps ErrContentsDiffer if the visited records do not match the link, and the store's error
// if the object could not be read to its end.
func (o *object) each(visit func(runnel.Record) bool) error {
	err := o.visit(visit)
	if err != nil && o.body.err != nil {
		return o.body.err
	}
	return err
}

func (o *object) visit(visit func(runnel.Record) bool) error {
	packed, err := o.member.records()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrContentsDiffer, err)
	}
	// Bytes beyond the link's count are still read, so that they can be reported, but only up to
	// this limit.
	const firstLine = 64 << 10
	limit := 2*o.link.Bytes + firstLine
	sum := &checksum{from: io.LimitReader(packed, limit)}
	lines := bufio.NewScanner(sum)
	lines.Buffer(make([]byte, 0, min(firstLine, o.link.Bytes+1)), int(limit))
	var count int64
	for lines.Scan() {
		record, err := ParseRecord(lines.Bytes())
		if err != nil {
			return fmt.Errorf("%w: line %d: %w", ErrContentsDiffer, count+1, err)
		}
		count++
		if !visit(record) {
			return nil
		}
	}
	switch err := lines.Err(); {
	case err != nil:
		return fmt.Errorf("%w: after %d records: %w", ErrContentsDiffer, count, err)
	case count != o.link.Count:
		return fmt.Errorf("%w: %d records, the link says %d", ErrContentsDiffer,
			count, o.link.Count)
	case sum.size != o.link.Bytes:
		return fmt.Errorf("%w: %d bytes, the link says %d", ErrContentsDiffer,
			sum.size, o.link.Bytes)
	case sum.crc != o.link.CRC:
		return fmt.Errorf("%w: CRC-32C %08x, the link says %08x", ErrContentsDiffer,
			sum.crc, o.link.CRC)
	}
	return nil
}

// checksum counts and sums the bytes that are read through it.
type checksum struct {
	from io.Reader
	size int64
	crc  uint32
}

func (c *checksum) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.size += int64(n)
	c.crc = crc32.Update(c.crc, castagnoli, p[:n])
	return n, err
}
