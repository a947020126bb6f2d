package awscbor

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runnel-stream/runnel/internal/cboritem"
)

const (
	// maxBody is the longest answer that is read. AWS sends up to 22 MiB: 10 MiB of data in
	// 10,000 records, and up to 1.2 KB of keys and names for each.
	maxBody = 64 << 20
	// trusted is the longest body that is allocated because a header says its length.
	trusted = 24 << 20
	// maxError is the longest body of an error.
	maxError = 1 << 20
)

var errLarge = errors.New("the answer is larger than 64 MiB")

// buffer holds an answer's body while it is decoded.
type buffer []byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// readBody reads an answer's body. Give it back by free.
func readBody(resp *smithyhttp.Response) (*buffer, error) {
	if resp.ContentLength > maxBody {
		return nil, errLarge
	}
	b := buffers.Get().(*buffer)
	if err := b.read(resp.Body, int(max(0, min(resp.ContentLength, trusted)))); err != nil {
		b.free()
		return nil, err
	}
	return b, nil
}

// read reads a body of probably n bytes.
func (b *buffer) read(body io.Reader, n int) error {
	into := (*b)[:0]
	if cap(into) <= n { // one more byte shows the end
		into = make([]byte, 0, max(n+1, 4<<10))
	}
	for {
		if len(into) == cap(into) {
			into = append(into, 0)[:len(into)]
		}
		got, err := body.Read(into[len(into):cap(into)])
		into = into[:len(into)+got]
		*b = into
		switch {
		case len(into) > maxBody:
			return errLarge
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func (b *buffer) free() {
	if cap(*b) <= trusted+1 {
		buffers.Put(b)
	}
}

// toJSON replaces the body of an error by the same in JSON. The SDK's protocol then makes an error
// of the right type. Only texts are converted: the code and the message.
func toJSON(resp *smithyhttp.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxError))
	if err != nil {
		return err
	}
	texts := map[string]string{}
	document := cboritem.NewScanner(body)
	for left := document.Map(); document.More(&left); {
		name := string(document.Text())
		if document.IsText() {
			texts[name] = string(document.Text())
		} else {
			document.Skip()
		}
	}
	if err := document.End(); err != nil {
		return err
	}
	converted, err := json.Marshal(texts)
	if err != nil {
		return err
	}
	resp.Body = replaced{bytes.NewReader(converted), resp.Body}
	return nil
}

// replaced is another body than the one that must be closed.
type replaced struct {
	io.Reader
	io.Closer
}
