package keys

import (
	"context"
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

// Flag is --keys of put and proxy: the names and keys of runnel keys map, in a file or in a table.
type Flag struct{ text string }

const (
	filePrefix  = "file:"
	tablePrefix = "table:"
)

// AddTo adds the flag to a command.
func (f *Flag) AddTo(command *cobra.Command) {
	command.Flags().StringVar(&f.text, "keys", "", "give records the hash keys that their "+
		"partition keys have in this file or DynamoDB table of runnel keys map; new ones get a "+
		"key. A name with a path separator or an extension is a file; "+filePrefix+"NAME and "+
		tablePrefix+"NAME say which")
}

// source returns the file or the table that the flag names; the other is "". A name that can be
// meant as either is refused, since a missing table would be made at once.
func (f *Flag) source() (file, table string, err error) {
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

// Given reports whether the flag was set.
func (f *Flag) Given() bool { return f.text != "" }

// Identity returns the file or table of the flag in one spelling; "" without the flag.
func (f *Flag) Identity() (string, error) {
	if f.text == "" {
		return "", nil
	}
	file, table, err := f.source()
	if file != "" {
		return filePrefix + filepath.Clean(file), err
	}
	return tablePrefix + table, err
}

// Join opens the flag's file or table for a producer. The caller calls leave when the producer has
// ended. Without the flag, keys is nil.
func (f *Flag) Join(ctx context.Context, cfg aws.Config) (
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
		opened, err := openKeyFile(ctx, file, allocate.Space{})
		if err != nil {
			return nil, nothing, err
		}
		return &fileKeys{file: opened}, opened.close, nil
	}
	opened, err := keytable.Open(ctx, keytable.Config{
		DynamoDB: awsclient.DynamoDB(cfg), Table: table,
	})
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

// fileKeys are the names and keys of a locked file. It implements producer.Keys.
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
