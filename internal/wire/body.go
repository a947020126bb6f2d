package wire

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

var errTooLarge = errors.New("the request's body is too large")

// buffers holds the buffers of past calls, so that not every call allocates 15 MiB.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// readBody reads a request's body of length bytes, or until its end if length is -1, into a
// buffer of the pool. More than MaxBody is errTooLarge.
func readBody(r io.Reader, length int64) (*[]byte, error) {
	buffer := buffers.Get().(*[]byte)
	var err error
	if length >= 0 {
		*buffer, err = readExactly(r, (*buffer)[:0], int(length))
	} else {
		*buffer, err = readAll(r, (*buffer)[:0])
	}
	if err != nil {
		buffers.Put(buffer)
		return nil, err
	}
	return buffer, nil
}

// readExactly grows the buffer as the bytes come, so that a false length reserves no more than
// firstRead.
func readExactly(r io.Reader, buffer []byte, length int) ([]byte, error) {
	const firstRead = 1 << 20
	for len(buffer) < length {
		if len(buffer) == cap(buffer) {
			room := min(length, max(firstRead, 2*cap(buffer)))
			buffer = append(make([]byte, 0, room), buffer...)
		}
		n, err := r.Read(buffer[len(buffer):min(length, cap(buffer))])
		buffer = buffer[:len(buffer)+n]
		if err != nil && len(buffer) < length {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return buffer, err
		}
	}
	return buffer, nil
}

func readAll(r io.Reader, buffer []byte) ([]byte, error) {
	for {
		if len(buffer) == cap(buffer) {
			buffer = append(make([]byte, 0, max(64<<10, 2*cap(buffer))), buffer...)
		}
		n, err := r.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		switch {
		case len(buffer) > MaxBody:
			return buffer, errTooLarge
		case errors.Is(err, io.EOF):
			return buffer, nil
		case err != nil:
			return buffer, err
		}
	}
}

// unpack decodes the body's content encoding. A packed body counts against MaxBody with its full
// length. AWS's answer to other encodings is not documented.
func (x *Exchange) unpack(r *http.Request) error {
	switch encoding := r.Header.Get("Content-Encoding"); strings.ToLower(encoding) {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
	default:
		return x.refuse(Serialization(x.Call.Service, "Content-Encoding "+
			strconv.Quote(encoding)+" is not supported: send gzip, or the body as it is"))
	}
	plain, err := gunzip(x.Call.Body)
	switch {
	case errors.Is(err, errTooLarge):
		return tooLarge(x.w, r)
	case err != nil:
		return x.refuse(Serialization(x.Call.Service, "The body is not whole in gzip: "+
			err.Error()))
	}
	x.Close()
	x.body, x.Call.Body = plain, *plain
	if len(*plain) == 0 {
		return x.refuse(Serialization(x.Call.Service, ""))
	}
	return nil
}

// unzipper holds a gzip reader for reuse: its tables take some 40 KiB. It is the standard
// library's. That of klauspost/compress takes a member that is cut off within its header's strings
// for the proper end (FuzzGunzip has the case).
type unzipper struct {
	packed bytes.Reader
	gzip.Reader
}

var unzippers = sync.Pool{New: func() any { return new(unzipper) }}

// gunzip unpacks into a buffer of the pool. An unpacked body above MaxBody is errTooLarge, however
// short the packed one was.
func gunzip(packed []byte) (*[]byte, error) {
	u := unzippers.Get().(*unzipper)
	defer func() {
		u.packed.Reset(nil) // the packed buffer goes back to its own pool
		unzippers.Put(u)
	}()
	u.packed.Reset(packed)
	if err := u.Reset(&u.packed); err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	return readBody(u, -1)
}
