package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"github.com/runnel-stream/runnel/internal/awsclient"
	"github.com/runnel-stream/runnel/internal/exit"
	"github.com/runnel-stream/runnel/keyspace/allocate"
	"github.com/runnel-stream/runnel/keytable"
	"github.com/runnel-stream/runnel/producer"
)

// keysFlag is --keys: the names and keys of runnel keys map, in a file or in a table.
type keysFlag struct{ text string }

const (
	filePrefix  = "file:"
	tablePrefix = "table:"
)

func (f *keysFlag) add(command *cobra.Command) {
	command.Flags().StringVar(&f.text, "keys", "", "give records the hash keys that their "+
		"partition keys have in this file or DynamoDB table of runnel keys map; new ones get a "+
		"key. A name with a path separator or an extension is a file; "+filePrefix+"NAME and "+
		tablePrefix+"NAME say which")
}

// source returns the file or the table that the flag names; the other is "". A name that can be
// meant as either is refused, since a table would be made on the spot.
func (f *keysFlag) source() (file, table string, err error) {
	if name, ok := strings.CutPrefix(f.text, tablePrefix); ok {
		return "", name, nil
	}
	name, asked := strings.CutPrefix(f.text, filePrefix)
	info, err := os.Stat(name)
	exists := err == nil
	looksLikeFile := asked || strings.ContainsAny(name, `/\`) || filepath.Ext(name) != ""
	switch {
	case exists && !info.Mode().IsRegular():
		return "", "", exit.Usage("--keys %s: it is no plain file; for a table of that name say "+
			"%s%s", f.text, tablePrefix, name)
	case exists && looksLikeFile:
		return name, "", nil
	case exists:
		return "", "", exit.Usage("--keys %s: there is a file of that name, and it can be a "+
			"table's: say %s%s or %s%s", name, filePrefix, name, tablePrefix, name)
	case looksLikeFile:
		return "", "", exit.Usage("--keys %s: there is no such file: runnel keys map --file %s "+
			"makes it; for a table of that name say %s%s", f.text, name, tablePrefix, name)
	}
	return "", name, nil
}

// identity returns the file or table of the flag in one spelling; "" without the flag.
func (f *keysFlag) identity() (string, error) {
	if f.text == "" {
		return "", nil
	}
	file, table, err := f.source()
	if file != "" {
		return filePrefix + filepath.Clean(file), err
	}
	return tablePrefix + table, err
}

// joinKeys returns the keys that the flag names; leave ends their use when the producer has ended.
// Without the flag there are none.
func (a *app) joinKeys(ctx context.Context, cfg aws.Config, f *keysFlag) (
	keys producer.Keys, leave func() error, err error,
) {
	nothing := func() error { return nil }
	if f.text == "" {
		return nil, nothing, nil
	}
	file, table, err := f.source()
	if err != nil {
		return nil, nothing, err
	}
	if file != "" {
		opened, err := a.openKeyFile(ctx, file, allocate.Space{})
		if err != nil {
			return nil, nothing, err
		}
		return &fileKeys{file: opened}, opened.close, nil
	}
	opened, err := keytable.Open(ctx, keytable.Config{API: awsclient.DynamoDB(cfg), Table: table})
	if err != nil {
		return nil, nothing, tableError(ctx, err)
	}
	session, err := opened.Join(ctx)
	if err != nil {
		return nil, nothing, tableError(ctx, err)
	}
	return session, func() error { return leaveKeys(ctx, session) }, nil
}

// leaveTimeout is the time to end the session of an interrupted put.
const leaveTimeout = 5 * time.Second

// leaveKeys ends the session.
func leaveKeys(ctx context.Context, session *keytable.Session) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	return exit.Outside(session.Close(ctx))
}

// fileKeys is the names of a file, which is locked meanwhile. It implements producer.Keys.
type fileKeys struct {
	mu    sync.Mutex
	file  *keyFile
	dirty bool // names were added, and are not on the disk yet
}

// Use returns the key of a name. A new name gets one that is on the disk before any record has it:
// otherwise a crash could give the name another one, and lose its order.
func (k *fileKeys) Use(ctx context.Context, name string) (key string, done func(), err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ctx.Err() != nil {
		return "", nil, context.Cause(ctx)
	}
	before := len(k.file.lines)
	line, err := k.file.assign(name, 1)
	if err != nil {
		return "", nil, err
	}
	if k.dirty = k.dirty || len(k.file.lines) > before; k.dirty {
		if err := k.file.save(); err != nil {
			return "", nil, err
		}
		k.dirty = false
	}
	return line.Key, func() {}, nil
}

// leaveWith joins the end of the keys' use to an error.
func leaveWith(err *error, leave func() error) { *err = errors.Join(*err, leave()) }
