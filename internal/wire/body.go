package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/runnel-stream/runnel/internal/budget"
)

// A body is cut off if it brings less than slowBytes in slowTime: 32 KiB/s. Time in which it waits
// for memory does not count.
const (
	slowTime  = 10 * time.Second
	slowBytes = 32 << 10 * int(slowTime/time.Second)
	// piece is the number of bytes of a body or an answer after which the budget hears of its
	// progress. It judges by the last two seconds.
	piece = 32 << 10
)

var (
	errTooLarge = errors.New("the request's body is too large")
	errSlow     = fmt.Errorf("the request's body came too slowly: want %d KiB in %v at least",
		slowBytes>>10, slowTime)
)

// incoming is a body that is read.
type incoming struct {
	io.Reader
	length int64              // -1 if it is unknown
	slow   func(by time.Time) // sets the deadline for the next reads; nil: none, and no moved
	moved  func(bytes int)    // is called with the bytes so far
	long   func() error       // is called before it gets more than budget.Free bytes
	// grow is called before it gets more memory than that; nil: it is free.
	grow func(ctx context.Context, more int) error
}

// read reads the body into a buffer of a pool. More than MaxBody is errTooLarge.
func (in *incoming) read(ctx context.Context) (*[]byte, error) {
	size := budget.Free // of the memory that the body has
	most := MaxBody + 1 // one more byte shows that an unknown length is too large
	if in.length >= 0 {
		most = int(in.length)
	}
	buffer := bufferFor(min(size, most))
	for {
		whole, err := in.fill(buffer, min(size, most))
		switch {
		case err != nil:
		case len(*buffer) > MaxBody:
			err = errTooLarge
		case whole || len(*buffer) == most:
			return buffer, nil
		default:
			buffer, size, err = in.enlarge(ctx, buffer, size, most)
		}
		if err != nil {
			giveBack(buffer)
			return nil, err
		}
	}
}

// fill reads until the buffer has n bytes, or the body ends: then it is whole.
func (in *incoming) fill(buffer *[]byte, n int) (whole bool, err error) {
	mark := len(*buffer)
	for moved := mark; len(*buffer) < n; {
		if in.slow != nil && len(*buffer) >= mark {
			in.slow(time.Now().Add(slowTime))
			mark = len(*buffer) + slowBytes
		}
		if in.slow != nil && len(*buffer) >= moved {
			in.moved(len(*buffer))
			moved = len(*buffer) + piece
		}
		got, err := in.Read((*buffer)[len(*buffer):n])
		*buffer = (*buffer)[:len(*buffer)+got]
		switch {
		case err == nil || len(*buffer) == n && in.length >= 0:
		case errors.Is(err, io.EOF) && in.length < 0:
			return true, nil
		case errors.Is(err, io.EOF):
			return false, io.ErrUnexpectedEOF
		case errors.Is(err, os.ErrDeadlineExceeded):
			return false, errSlow
		default:
			return false, err
		}
	}
	return false, nil
}

// enlarge asks for four times as much memory, since each step copies what has come.
func (in *incoming) enlarge(
	ctx context.Context, buffer *[]byte, size, most int,
) (*[]byte, int, error) {
	next := min(4*size, most)
	if size == budget.Free && in.long != nil {
		if err := in.long(); err != nil {
			return buffer, size, err
		}
	}
	if in.grow != nil {
		if err := in.grow(ctx, next-size); err != nil {
			return buffer, size, err
		}
	}
	larger := bufferFor(next)
	*larger = append(*larger, *buffer...)
	giveBack(buffer)
	return larger, next, nil
}

// take reads the request's body, if its headers are those of a call. A long body waits for memory.
func (x *Exchange) take(r *http.Request, auth *Credentials, known bool) error {
	in := incoming{Reader: r.Body, length: r.ContentLength}
	x.memory.Begin()
	in.moved = x.memory.Moved
	in.grow = x.memory.Grow
	in.long = func() error { // a body without a known key gets no memory
		x.last(r)
		if err := x.check(r, auth, known, false); err != nil {
			return err
		}
		if err := x.checkLength(r, r.ContentLength); err != nil {
			return err
		}
		if auth != nil {
			if refused := auth.checkHead(r, x.Call.Service); refused != nil {
				return x.refuseSigned(r, refused)
			}
		}
		x.w.Header().Del("Connection")
		return nil
	}
	if x.full != nil || x.headFirst {
		if err := in.long(); err != nil {
			return err
		}
	}
	if x.full != nil {
		return x.notTaken(r, x.full)
	}
	control := http.NewResponseController(x.w)
	in.slow = func(by time.Time) {
		_ = control.SetReadDeadline(by) // a test's recorder has none
		if x.memory.IsCut() {
			_ = control.SetReadDeadline(time.Unix(1, 0)) // this one came after the cut's
		}
	}
	body, err := in.read(r.Context())
	if err == nil {
		_ = control.SetReadDeadline(time.Time{}) // net/http reads on, to see the client go
		x.body, x.Call.Body = body, *body
		return nil
	}
	return x.notTaken(r, err)
}

// notTaken answers a request whose body was not read as a whole.
func (x *Exchange) notTaken(r *http.Request, err error) error {
	var refusal *Error
	switch {
	case errors.Is(err, ErrAnswered):
		return err
	case errors.Is(err, errTooLarge):
		return tooLarge(x.w, r)
	case errors.Is(err, errSlow) && x.memory.IsCut(), errors.Is(err, budget.ErrCut):
		refusal = requestTimeout(x.Call.Service, "Nothing was stored: "+budget.ErrCut.Error()+".")
	case errors.Is(err, errSlow):
		refusal = requestTimeout(x.Call.Service, "Nothing was stored: "+errSlow.Error()+".")
	case errors.Is(err, budget.ErrLate):
		refusal = Unavailable("Nothing was stored: " + err.Error() + ".")
	case errors.Is(err, budget.ErrFull):
		refusal = throttled(x.Call.Service, "Nothing was stored: "+err.Error()+".")
	default:
		return fmt.Errorf("read the request's body: %w", err)
	}
	x.last(r)
	return x.refuse(refusal)
}

// last makes the answer the connection's last one, since the rest of the body stays unread. Over
// HTTP/2 the server reads the rest and drops it.
func (x *Exchange) last(r *http.Request) {
	if r.ProtoMajor < 2 {
		x.w.Header().Set("Connection", "close")
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
	plain, err := gunzip(r.Context(), x.Call.Body, x.memory.Grow)
	switch {
	case errors.Is(err, errTooLarge):
		return tooLarge(x.w, r)
	case errors.Is(err, budget.ErrFull), errors.Is(err, budget.ErrCut),
		errors.Is(err, budget.ErrLate), r.Context().Err() != nil:
		return x.notTaken(r, err)
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

// gunzip unpacks into a buffer of a pool. An unpacked body above MaxBody is errTooLarge, however
// short the packed one was. grow is that of incoming.
func gunzip(
	ctx context.Context, packed []byte, grow func(ctx context.Context, more int) error,
) (*[]byte, error) {
	u := unzippers.Get().(*unzipper)
	defer func() {
		u.packed.Reset(nil) // the packed buffer goes back to its own pool
		unzippers.Put(u)
	}()
	u.packed.Reset(packed)
	if err := u.Reset(&u.packed); err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	return (&incoming{Reader: u, length: -1, grow: grow}).read(ctx)
}
