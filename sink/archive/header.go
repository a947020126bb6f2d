package archive

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/gzip"
)

// The link is in the extra field of an empty gzip member's header, in two subfields (RFC 1952,
// 2.3.1.1): "rl" holds the link's JSON, "rc" its CRC-32C, since gzip does not check its extra
// field. A member's extra field ends at 65,535 bytes. A longer link, such as one with a large
// state, goes on in further empty members: a member with a full "rl" is followed by another.
const (
	maxExtra     = 1<<16 - 1
	checkSize    = 4 + 4 // the "rc" subfield: two letters, length, CRC-32C
	maxChunk     = maxExtra - 4 - checkSize
	maxLinkBytes = 24 << 20 // a limit for readers: MaxState in base64, and room for the rest
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendLink appends the gzip members that carry the link.
func appendLink(dst []byte, link *Link) ([]byte, error) {
	text, err := link.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if len(text) > maxLinkBytes {
		return nil, fmt.Errorf("the link has %d bytes: at most %d", len(text), maxLinkBytes)
	}
	return appendHeaders(dst, text), nil
}

func appendHeaders(dst, text []byte) []byte {
	for {
		chunk := text[:min(len(text), maxChunk)]
		text = text[len(chunk):]
		dst = appendMember(dst, chunk)
		if len(chunk) < maxChunk {
			return dst
		}
	}
}

// appendMember appends an empty gzip member: header, extra field, an empty final block of deflate,
// and the CRC and length of empty data.
func appendMember(dst, chunk []byte) []byte {
	const flagExtra, unknownSystem = 4, 255
	dst = append(dst, 0x1f, 0x8b, 8, flagExtra, 0, 0, 0, 0, 0, unknownSystem)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(4+len(chunk)+checkSize))
	dst = append(dst, 'r', 'l')
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(chunk)))
	dst = append(dst, chunk...)
	dst = append(dst, 'r', 'c', 4, 0)
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(chunk, castagnoli))
	return append(dst, 0x03, 0x00, 0, 0, 0, 0, 0, 0, 0, 0)
}

// member is a reader of an object's gzip members, reusable through reset.
type member struct {
	source *bufio.Reader
	gzip   gzip.Reader
}

func newMember(source io.Reader) *member {
	return &member{source: bufio.NewReaderSize(source, 32<<10)}
}

func (m *member) reset(source io.Reader) { m.source.Reset(source) }

// readLink reads the leading members and returns their link. The records are not touched.
func (m *member) readLink() (*Link, error) {
	text, err := m.readHeaders()
	if err != nil {
		return nil, err
	}
	link := new(Link)
	if err := link.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	return link, nil
}

func (m *member) readHeaders() ([]byte, error) {
	var text []byte
	for {
		if err := m.gzip.Reset(m.source); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnusableLink, truncated(err))
		}
		m.gzip.Multistream(false)
		chunk, err := linkChunk(m.gzip.Extra)
		if err != nil {
			return nil, err
		}
		n, err := io.Copy(io.Discard, io.LimitReader(&m.gzip, 1))
		if err == nil && n > 0 {
			err = errors.New("its gzip member is not empty")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnusableLink, err)
		}
		if text == nil {
			text = bytes.Clone(chunk)
		} else {
			text = append(text, chunk...)
		}
		if len(chunk) < maxChunk {
			return text, nil
		}
		if len(text) > maxLinkBytes {
			return nil, fmt.Errorf("%w: it is longer than %d bytes", ErrUnusableLink, maxLinkBytes)
		}
	}
}

// records returns the reader of the lines behind the link.
func (m *member) records() (io.Reader, error) {
	err := m.gzip.Reset(m.source)
	if errors.Is(err, io.EOF) {
		return bytes.NewReader(nil), nil // a link without records
	}
	if err != nil {
		return nil, truncated(err)
	}
	m.gzip.Multistream(true)
	return &m.gzip, nil
}

// linkChunk returns the link's part in an extra field.
func linkChunk(extra []byte) ([]byte, error) {
	var chunk, check []byte
	for len(extra) >= 4 {
		size := int(binary.LittleEndian.Uint16(extra[2:]))
		if len(extra) < 4+size {
			break
		}
		switch field := extra[4 : 4+size]; string(extra[:2]) {
		case "rl":
			chunk = field
		case "rc":
			check = field
		}
		extra = extra[4+size:]
	}
	switch {
	case chunk == nil || len(check) != 4:
		return nil, fmt.Errorf("%w: the object has no link in its gzip header", ErrUnusableLink)
	case crc32.Checksum(chunk, castagnoli) != binary.LittleEndian.Uint32(check):
		return nil, fmt.Errorf("%w: the link in the gzip header is damaged", ErrUnusableLink)
	}
	return chunk, nil
}

// truncated turns the end of the data, where more was expected, into an error that says so.
func truncated(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
