package awswire

import (
	"errors"
	"io"
	"sync"
)

var errTooLarge = errors.New("the request's body is too large")

// bodies holds the buffers of past requests: a body of 15 MiB is not made for every call.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

// readBody reads a request's body of length bytes, or until its end if length is -1, into a
// buffer of the pool. More than MaxBody is errTooLarge.
func readBody(r io.Reader, length int64) (*[]byte, error) {
	buffer := bodies.Get().(*[]byte)
	var err error
	if length >= 0 {
		*buffer, err = readExactly(r, (*buffer)[:0], int(length))
	} else {
		*buffer, err = readAll(r, (*buffer)[:0])
	}
	if err != nil {
		bodies.Put(buffer)
		return nil, err
	}
	return buffer, nil
}

// readExactly grows the buffer as the bytes come, so that a length that is only claimed
// reserves no more than firstRead.
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
