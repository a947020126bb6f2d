package archive

import (
	"context"
	"errors"
	"io"
)

// Store keeps named objects that never change: a folder (NewDirStore), or a bucket. Names are
// slash-separated paths, and folders are their prefixes. It is safe for concurrent use, by
// any number of processes.
//
// Everything that the archive promises rests on PutIfAbsent being atomic, here and across
// processes. A store that ignores the condition loses and doubles records.
type Store interface {
	// PutIfAbsent creates an object. After nil it stands, whole and durable, for every reader.
	// ErrExists: another one stands there, whole and durable, and was not touched; that may be
	// this very one, from an attempt whose answer was lost. After any other error the object
	// may stand, may appear later, or never; it is never seen in part.
	PutIfAbsent(ctx context.Context, name string, data []byte) error
	// Get returns an object's bytes from the first on; reading may stop early. ErrNotFound: no
	// object has the name. What PutIfAbsent acknowledged before Get began is found.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns what stands directly below a folder, in bytewise order; nothing if there is
	// no such folder. It may miss what was put recently: it is a hint, Get decides.
	List(ctx context.Context, folder string) (Listing, error)
	// Settle makes durable what Get has shown in the folder, so that it may be built on.
	Settle(ctx context.Context, folder string) error
	// Sweep removes what unfinished puts have left in the folder and no reader sees. A put
	// that is under way at that moment still succeeds or returns an error.
	Sweep(ctx context.Context, folder string) error
}

// Listing is what stands directly below a folder: base names, each list in bytewise order.
type Listing struct {
	Folders []string
	Objects []string
}

var (
	// ErrExists is returned by Store.PutIfAbsent if an object has the name already.
	ErrExists = errors.New("the object is there already")
	// ErrNotFound is returned by Store.Get if no object has the name.
	ErrNotFound = errors.New("no such object")
)
