package archive

import (
	"context"
	"errors"
	"io"
)

// Store holds named objects that never change, in a folder (NewDirStore) or a bucket. Names are
// slash-separated paths, and folders are their prefixes. It is safe for concurrent use, by any
// number of processes.
//
// Every promise of the archive depends on PutIfAbsent being atomic, here and across processes. A
// store that ignores the condition loses and doubles records.
type Store interface {
	// PutIfAbsent creates an object. After nil every reader finds the object, whole and durable.
	// ErrObjectExists: another object has the name, whole and durable, and was not touched; it may
	// be this very one, from an attempt whose answer was lost. After any other error the object may
	// exist, may appear later, or never; it is never seen in part.
	PutIfAbsent(ctx context.Context, name string, data []byte) error
	// Get returns an object's bytes from the first on; reading may stop early. ErrObjectNotFound:
	// no object has the name. Get finds every object that PutIfAbsent acknowledged before Get
	// began.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns the names directly below a folder, in bytewise order; none if there is no such
	// folder. It may miss recent objects: it is a hint, Get decides.
	List(ctx context.Context, folder string) (Listing, error)
	// After returns the first objects' names in a folder that come behind name, in bytewise order,
	// as many as the store returns at a time, and whether more follow. name need not be that of an
	// object. The names are a hint, as those of List.
	After(ctx context.Context, folder, name string) (names []string, more bool, err error)
	// Settle makes the objects that Get has returned from the folder durable, so that a writer may
	// build on them.
	Settle(ctx context.Context, folder string) error
	// Sweep removes the remains of unfinished puts from the folder. Readers do not see them. A put
	// that is under way at that moment still succeeds or returns an error.
	Sweep(ctx context.Context, folder string) error
}

// Listing holds the names directly below a folder: base names, each list in bytewise order.
type Listing struct {
	Folders []string // below the folder
	Objects []string // in the folder itself
}

var (
	// ErrObjectExists is returned by Store.PutIfAbsent if an object has the name already.
	ErrObjectExists = errors.New("the object is there already")
	// ErrObjectNotFound is returned by Store.Get if no object has the name.
	ErrObjectNotFound = errors.New("no such object")
	// ErrStoreUnavailable is wrapped by a store's errors that a later try may not have: an outage.
	// A writer waits for its end, and tries the same again, as long as its context lives.
	ErrStoreUnavailable = errors.New("the store cannot be reached")
	// ErrStoreRefused is wrapped by a store's errors that another try does not change: a right, a
	// key or the bucket is missing.
	ErrStoreRefused = errors.New("the store refuses")
)
